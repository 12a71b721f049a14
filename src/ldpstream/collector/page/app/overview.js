/** All streams at a glance. */

import { badgeText, stateMark } from "./alerts.js";
import * as api from "./api.js";
import { showCondition } from "./condition.js";
import { fill, h, oncePerFrame } from "./dom.js";
import { duration, epsilon, grouped } from "./format.js";
import { pause } from "./feed.js";
import { historyOf, kindOf, largest } from "./history.js";
import { drawSparkline } from "./sparkline.js";
import { curveColour, onTheme } from "./theme.js";

const SHOWN = 120;
const CURVES = 3;
const FASTEST_MS = 1000;
const SLOWEST_MS = 15_000;

/** @param {HTMLElement} main @param {AbortSignal} signal */
export async function showOverview(main, signal) {
  const grid = h("div", { class: "cards" });
  fill(main, h("h1", { class: "page-title" }, "Streams"), grid);
  const streams = await api.streams(signal);
  if (!streams.length) {
    fill(
      grid,
      h(
        "p",
        { class: "card" },
        "There is no public stream here. With the admin's token, or a link that was shared with you, you see more.",
      ),
    );
    return;
  }
  for (const stream of streams) grid.append(new Card(stream, signal).element);
}

class Card {
  /** @param {api.Stream} stream @param {AbortSignal} signal */
  constructor(stream, signal) {
    const { terms } = stream;
    this.stream = stream;
    this.history = historyOf(stream);
    this.canvas = h("canvas", { class: "spark", "aria-hidden": "true" });
    this.state = h("span", { class: "pill" }, "…");
    this.badge = h("span", { class: "pill", hidden: true });
    this.alerts = h("ul", { class: "card-alerts", hidden: true, "aria-label": "Alerts" });
    this.top = h("ul", { class: "top-labels" });
    this.last = h("p", { class: "note" }, "No release yet.");
    this.element = h(
      "article",
      { class: "card stream-card" },
      h(
        "header",
        {},
        h(
          "h2",
          {},
          h("a", { href: `#/streams/${encodeURIComponent(terms.stream)}` }, terms.stream),
        ),
        h("span", { class: "pills" }, this.badge, this.state),
      ),
      this.alerts,
      this.canvas,
      this.top,
      this.last,
      h(
        "p",
        { class: "note terms" },
        `${stream.unit.about} every ${duration(terms.interval_ms)} · ε ${epsilon(terms.epsilon_nano)} in ${duration(terms.window * terms.interval_ms)} · ${stream.mechanism}`,
      ),
    );
    this.draw = oncePerFrame(() => this.#draw());
    onTheme(this.draw, signal);
    new ResizeObserver(this.draw).observe(this.canvas);
    this.#start(signal);
  }

  /**
   * Ask for what is new, at the pace of the stream. Not by events: browsers open six connections to
   * one collector, and there may be more streams than that.
   * @param {AbortSignal} signal
   */
  async #start(signal) {
    const { stream, interval_ms: interval } = this.stream.terms;
    const pace = Math.max(FASTEST_MS, Math.min(SLOWEST_MS, interval));
    let since = 0;
    for (; !signal.aborted; await pause(pace, signal)) {
      if (document.hidden) continue;
      try {
        const { last_release: last, state, why } = await api.status(stream, signal);
        Object.assign(this.stream, { state, why });
        if (!since) {
          since = Math.max(1, last - Math.min(SHOWN, this.history.page) + 1);
        }
        const found = await api.releasesBetween(stream, since, last, signal);
        if (!found.every((one) => this.history.knows(one))) await this.#learnTerms(signal);
        this.history.add(found);
        since = Math.max(since, this.history.lastT + 1);
        this.#alerted((await api.alerts(stream, signal)).alerts);
        this.#show("live");
        this.draw();
      } catch (error) {
        if (signal.aborted) return;
        this.#show(error instanceof api.Unavailable && error.status === 404 ? "no access" : "lost");
      }
    }
  }

  /** The terms have changed, and with them the labels. @param {AbortSignal} signal */
  async #learnTerms(signal) {
    this.stream = await api.stream(this.stream.terms.stream, signal);
    const { rows } = this.history;
    this.history = historyOf(this.stream);
    if (rows.length)
      this.history.add(
        await api.releasesBetween(this.stream.terms.stream, rows[0].t, rows[rows.length - 1].t, signal),
      );
  }

  /** @param {"live" | "lost" | "no access"} state */
  #show(state) {
    showCondition(this.state, state, this.stream);
  }

  /** What fires, or is about to, stands on the card itself. @param {import("./alerts.js").Alert[]} alerts */
  #alerted(alerts) {
    const urgent = alerts.filter(({ state }) => state === "firing" || state === "pending");
    const firing = urgent.some(({ state }) => state === "firing");
    this.badge.hidden = !urgent.length;
    this.badge.textContent = badgeText(alerts);
    this.badge.className = `pill ${firing ? "firing" : "pending"}`;
    this.element.classList.toggle("burning", firing);
    this.alerts.hidden = !urgent.length;
    fill(
      this.alerts,
      ...urgent.slice(0, 3).map((one) => h("li", {}, stateMark(one), h("span", {}, one.name))),
    );
  }

  #draw() {
    const { labels } = this.stream;
    const rows = this.history.rows.slice(-SHOWN);
    const last = rows.at(-1);
    if (!last) return;
    const ranked = largest(this.stream, rows.slice(-30), CURVES);
    drawSparkline(this.canvas, rows, ranked, this.stream.unit);
    fill(
      this.top,
      ...ranked.map((label, slot) => {
        const dot = h("i", { class: "dot" });
        dot.style.background = curveColour(slot);
        return h(
          "li",
          {},
          dot,
          h("span", {}, labels[label]),
          h("b", {}, this.stream.unit.show(last.data[label])),
        );
      }),
      this.stream.texts && !ranked.length ? h("li", { class: "note" }, "No text is listed yet.") : null,
    );
    this.last.textContent = `Last release: t ${grouped(last.t)}, ${kindOf(last)}, ${grouped(last.received)} of ${grouped(last.asked)} reports`;
  }
}
