/** What the collector is waiting for, and why. */

import { fill, h } from "./dom.js";
import { capitalised, duration, epsilon, grouped, percent } from "./format.js";

/** @type {Record<string, string>} */
const WHY = {
  dissimilarity:
    "A few devices are asked first, to see whether anything has changed since the last release. If not, that release is carried over, and epsilon is saved.",
  publication:
    "Something has changed, or it is time: devices are asked for the figures that will be released.",
};
const UNASKED =
  "Nobody is asked: each device reports by its own clock, once in a window, at a timestamp that the collector can recompute.";

export class RoundPanel {
  #deadline = 0;
  #offset = 0;

  /** @param {boolean} unasked whether devices report in slots */
  constructor(unasked) {
    this.unasked = unasked;
    this.sentence = h("p", { class: "doing" }, "…");
    this.rounds = h("div", {});
    this.health = h("dl", { class: "facts" });
    this.element = h("div", {}, this.sentence, this.rounds, this.health);
  }

  /** @param {any} status as of /v1/streams/{stream}/status */
  heard(status) {
    this.#offset = status.now_ms - Date.now();
    this.sentence.textContent = capitalised(String(status.doing ?? ""));
    const rounds = status.rounds.map((/** @type {any} */ round) => this.#round(round));
    fill(this.rounds, ...(rounds.length ? rounds : [between(status)]));
    fill(this.health, ...health(status).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  }

  /** @param {string} why */
  lost(why) {
    this.sentence.textContent = why;
    fill(this.rounds);
    fill(this.health);
  }

  /** @param {any} round */
  #round(round) {
    const share = round.asked ? Math.min(1, round.received / round.asked) : 0;
    const [favour, total] = round.rate;
    this.#deadline = round.deadline_ms;
    return h(
      "div",
      { class: "round" },
      h("progress", {
        max: 1,
        value: share,
        "aria-label": `Reports received in round ${round.round}`,
      }),
      h(
        "dl",
        { class: "facts" },
        h("dt", {}, "Round"),
        h("dd", {}, round.round),
        h("dt", {}, "Reports"),
        h("dd", {}, `${grouped(round.received)} of about ${grouped(round.asked)}`),
        h("dt", {}, "Each with"),
        h("dd", {}, `ε = ${epsilon(round.epsilon_nano)}`),
        h("dt", {}, this.unasked ? "Share whose turn it is" : "Share asked"),
        h("dd", {}, percent(favour / total)),
        h("dt", {}, "Closes in"),
        h(
          "dd",
          {},
          `${Math.max(0, (this.#deadline - Date.now() - this.#offset) / 1000).toFixed(1)} s`,
        ),
      ),
      h("p", { class: "note" }, this.unasked ? UNASKED : (WHY[round.purpose] ?? "")),
    );
  }
}

/** @param {any} status */
function between({ last_release: last, state }) {
  const goesOn = state !== "paused" && state !== "retired";
  const next = goesOn ? "; the next round opens when the next timestamp begins" : "";
  return h(
    "p",
    { class: "note" },
    last
      ? `No round is open. Timestamp ${grouped(last)} is released and will not change${next}.`
      : "No round is open, and nothing is released yet.",
  );
}

/**
 * How late the collector is, and the engine that counts for it, if there is one.
 * @param {any} status @returns {[string, string][]}
 */
export function health({ behind_seconds: behind = 0, engine }) {
  /** @type {[string, string][]} */ const facts = [];
  if (behind > 0) facts.push(["Releases are late by", duration(1000 * behind)]);
  if (engine) {
    facts.push(["Engine", engine.alive ? "running" : "does not run"]);
    facts.push(["Messages that it has not counted", grouped(engine.waiting)]);
  }
  return facts;
}
