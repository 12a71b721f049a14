/** What is promised to the devices, in plain words, and whether it looks kept. */

import { OTHER } from "../sdk/attributes.js";
import { noticeOf } from "./api.js";
import { fill, h, sharpen } from "./dom.js";
import { grouped, percent, short } from "./format.js";
import { colour } from "./theme.js";

const DAY_MS = 86_400_000;
const SHOWN = 60;

/** Codes of errors.py that reports are refused with. @type {Record<string, string>} */
const REASONS = {
  "report-mac": "wrong signature",
  "report-conflict": "a second, different report",
  "report-length": "wrong length",
  "report-version": "unknown version",
  "report-range": "impossible content",
  "report-not-asked": "device was not asked",
  "round-closed": "came too late",
  "round-unknown": "no such round",
  "round-early": "came too early",
  "terms-ended": "made under terms that have ended",
  "key-ended": "signed with a key that is no longer valid",
  "device-denied": "device is on the deny list",
  "device-version": "made by a program that is too old",
  "rate-limited": "too many at once",
  unavailable: "could not be stored at the time; devices send them again",
  "stream-paused": "came while the stream was paused",
  "stream-retired": "came after the stream had ended",
  "device-number": "malformed device number",
  token: "missing or wrong token",
};

export class Privacy {
  /** @param {import("./api.js").Stream} stream @param {import("./history.js").History} history */
  constructor(stream, history) {
    this.stream = stream;
    this.history = history;
    this.canvas = h("canvas", { class: "asked", role: "img" });
    this.facts = h("dl", { class: "facts" });
    this.refused = h("ul", { class: "reasons" });
    this.element = h(
      "div",
      { class: "halves" },
      h("div", {}, ...promise(stream)),
      h("div", {}, this.facts, h("h3", {}, "Reports refused"), this.refused),
      h(
        "div",
        { class: "whole" },
        h("h3", {}, "Asked (outline) and received (filled), per timestamp"),
        this.canvas,
      ),
    );
    this.heard({ refused: {} });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  draw() {
    const { terms, population, mechanism, selection } = this.stream;
    const window = this.history.rows.slice(-terms.window);
    const asked = window.reduce((sum, row) => sum + row.asked, 0);
    // With slots each device reports once in a window, however many are expected.
    const often = selection === "slots" ? 1 / terms.window : asked / window.length / population;
    const daily = often * (DAY_MS / terms.interval_ms);
    const last = this.history.last;
    fill(
      this.facts,
      ...fact("Reports a day, by one device", window.length ? `about ${short(daily)}` : "–"),
      ...fact("Epsilon used in this window, by design", used(mechanism, asked, population)),
      ...fact(
        "Last timestamp",
        last ? `${grouped(last.received)} of ${grouped(last.asked)} asked` : "–",
      ),
      ...fact("Devices expected", expectedOf(this.stream, last?.devices)),
      ...fact("Devices heard in the last window", heardOf(last?.devices)),
    );
    this.#drawAsked();
  }

  #drawAsked() {
    const rows = this.history.rows.slice(-SHOWN);
    const { context, width, height } = sharpen(this.canvas, 64);
    const most = Math.max(1, ...rows.map((row) => Math.max(row.asked, row.received)));
    const step = width / SHOWN;
    rows.forEach((row, at) => {
      const x = width - (rows.length - at) * step;
      const tall = (/** @type {number} */ number) => (number / most) * (height - 2);
      context.fillStyle = colour("accent");
      context.fillRect(x + 1, height - tall(row.received), step - 2, tall(row.received));
      context.strokeStyle = colour("muted");
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, height - tall(row.asked) + 0.5, step - 1, tall(row.asked));
    });
    const last = rows.at(-1);
    const words = last
      ? `At timestamp ${last.t}, ${last.asked} devices were asked and ${last.received} reports came.`
      : "No timestamp yet.";
    this.canvas.setAttribute(
      "aria-label",
      `Devices asked and reports received over the last ${rows.length} timestamps. ${words}`,
    );
  }

  /** @param {{accepted?: number, refused: Record<string, number>}} status */
  heard({ accepted = 0, refused }) {
    const reasons = Object.entries(refused).filter(([, times]) => times > 0);
    reasons.sort((a, b) => b[1] - a[1]);
    const lines = reasons.map(([code, times]) =>
      h(
        "li",
        {},
        h("b", {}, grouped(times)),
        ` ${Object.hasOwn(REASONS, code) ? REASONS[code] : code}`,
      ),
    );
    const none = h("li", {}, `None, of ${grouped(accepted)} since the collector started`);
    fill(this.refused, ...(lines.length ? lines : [none]));
  }
}

/** @param {string} name @param {string} value */
const fact = (name, value) => [h("dt", {}, name), h("dd", {}, value)];

/** @param {import("./api.js").Stream} stream */
function promise(stream) {
  const { terms, promises } = stream;
  const [own, ...others] = promises;
  return [
    h("p", { class: "promise" }, own.sentence),
    h("p", { class: "note" }, own.explanation),
    ...(others.length ? [h("p", { class: "note" }, inOtherLevels(others))] : []),
    ...toldOf(stream).map((words) => h("p", { class: "note" }, words)),
    h("p", { class: "note" }, h("a", { href: noticeOf(terms.stream) }, "For participants: what is asked, and what leaves a device")),
  ];
}

/** What a report says in the clear. @param {import("./api.js").Stream} stream @returns {string[]} */
function toldOf({ attributes, texts }) {
  if (texts) return ["A report says to which half of all buckets of a public hash a text belongs, more likely than not. No text leaves a device."];
  if (!attributes.length) return [];
  const each = attributes.map(({ name, values }) => `${name} (${[...values, OTHER].join(", ")})`);
  return [`Each report also states openly: ${each.join("; ")}. That is public, and the promise does not cover it.`];
}

/** @param {import("./api.js").Promised[]} levels other than the stream's own */
function inOtherLevels(levels) {
  const each = levels.map(({ called, summary }) => `${called} (${summary})`);
  return (
    `That is the level "standard". People may choose another one: ${each.join("; ")}. ` +
    "Which level a device has is not secret: it must not depend on the value."
  );
}

/** @param {string} mechanism @param {number} asked in the window @param {number} population */
function used(mechanism, asked, population) {
  // With a population that is divided, who is asked spends all of epsilon, once a window.
  if (/^lp/.test(mechanism)) return percent(Math.min(1, asked / population), 0);
  return "up to 100 %, in small shares";
}

/**
 * A population that follows the fleet is counted, and as sure as its interval says.
 * @param {import("./api.js").Stream} stream @param {import("./api.js").Devices | undefined} devices
 */
function expectedOf({ population, population_follows: follows, population_interval: known }, devices) {
  if (!follows) return grouped(population);
  const { expected = population, expected_low: low = known?.[0], expected_high: high = known?.[1] } = devices ?? {};
  if (low === undefined || high === undefined) return `${grouped(expected)}, until reports tell`;
  return `about ${grouped(expected)} (${grouped(low)} to ${grouped(high)}), counted from reports`;
}

/**
 * Devices that were not heard bias a figure, and its interval does not know it.
 * @param {import("./api.js").Devices | undefined} devices
 */
function heardOf(devices) {
  if (!devices) return "–";
  const { heard, enrolled, expected } = devices;
  return enrolled === undefined
    ? `${grouped(heard)} of ${grouped(expected ?? 0)} expected`
    : `${grouped(heard)} of ${grouped(enrolled)} enrolled`;
}
