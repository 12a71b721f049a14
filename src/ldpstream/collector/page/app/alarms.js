/** The alerts of a stream: what they look for, how they stand, and when they fired. */

import { announce, fill, h } from "./dom.js";
import { clock, duration, grouped, percent } from "./format.js";

/** @typedef {"firing" | "pending" | "resolved" | "inactive"} State */
/**
 * @typedef {object} Alert
 * @property {string} id
 * @property {string} name
 * @property {string} label
 * @property {{above?: number, below?: number, on: string, probability?: number, for: string}} rule
 * @property {State} state
 * @property {number | null} since_ms
 * @property {number | null} value
 * @property {number | null} probability
 */
/** @typedef {{t: number, at_ms: number, id: string, name: string, label: string, state: State}} Change */
/** @typedef {{at: number, state: State | null}} Limit a threshold; null: nobody watches it */
/** @typedef {{from: number, to: number | null}} Span timestamps; null: it goes on */

const ORDER = /** @type {State[]} */ (["firing", "pending", "resolved", "inactive"]);
const NAMES = { firing: "Firing", pending: "Pending", resolved: "Resolved", inactive: "Quiet" };
const MOST_CHANGES = 500;
const LISTED = 5;

export class Alarms {
  /** @type {Alert[]} */ alerts = [];
  /** @type {Change[]} in order of t */ changes = [];
  #spoken = "";

  /** @param {import("./api.js").Stream} stream */
  constructor(stream) {
    this.stream = stream;
    this.badge = h("span", { class: "pill", hidden: true });
    this.list = h("ul", { class: "alarms" });
    this.past = h("ol", { class: "alarm-log", "aria-label": "What fired and what was resolved" });
    this.pastTitle = h("h3", {}, "Lately");
    this.element = h("div", {}, this.list, this.pastTitle, this.past);
  }

  /** @param {{alerts: Alert[], changes: Change[]}} told as of /v1/streams/{stream}/alerts */
  heard({ alerts, changes }) {
    this.alerts = [...alerts].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
    const known = new Map([...this.changes, ...changes].map((one) => [keyOf(one), one]));
    this.changes = [...known.values()].sort((a, b) => a.t - b.t).slice(-MOST_CHANGES);
    this.#draw();
    this.#speak();
  }

  get firing() {
    return this.alerts.filter(({ state }) => state === "firing").length;
  }

  /** @param {string} label @returns {Limit[]} the thresholds of a label */
  limits(label) {
    const watched = this.alerts
      .filter((one) => one.label === label)
      .map(({ rule, state }) => ({ at: limitOf(rule), state }));
    const shown = thresholdOf(this.stream, label);
    const known = shown === null || watched.some(({ at }) => at === shown);
    return known ? watched : [...watched, { at: shown, state: null }];
  }

  /** When something was firing, joined where it overlaps. @returns {Span[]} */
  get spans() {
    /** @type {Span[]} */ const spans = [];
    const burning = new Set();
    for (const { t, id, state } of this.changes) {
      const before = burning.size;
      if (state === "firing") burning.add(id);
      else burning.delete(id);
      if (!before && burning.size) spans.push({ from: t, to: null });
      else if (before && !burning.size) spans[spans.length - 1].to = t;
    }
    const last = spans.at(-1);
    if (last && last.to === null && !this.firing) spans.pop(); // its end is not known
    return spans;
  }

  #draw() {
    const title = badgeText(this.alerts);
    this.badge.hidden = !title;
    this.badge.textContent = title;
    this.badge.className = `pill ${this.firing ? "firing" : "pending"}`;
    fill(this.list, ...this.alerts.map((one) => line(one, this.stream.unit)));
    const recent = this.changes.slice(-LISTED).reverse();
    this.pastTitle.hidden = !recent.length;
    fill(this.past, ...recent.map(pastLine));
  }

  /** Tell those who listen what fires now, once. */
  #speak() {
    const now = this.alerts.filter(({ state }) => state === "firing").map(({ name }) => name);
    const text = now.join(", ");
    if (text === this.#spoken) return;
    announce(text ? `Firing: ${text}` : "Nothing is firing any more");
    this.#spoken = text;
  }
}

/** @param {Change} change */
const keyOf = ({ t, id, state }) => `${t} ${id} ${state}`;

/** @param {Alert["rule"]} rule */
const limitOf = ({ above, below }) => Number(above ?? below);

/** @param {Alert[]} alerts @returns {string} what a glance must catch; empty if nothing */
export function badgeText(alerts) {
  for (const state of /** @type {State[]} */ (["firing", "pending"])) {
    const number = alerts.filter((one) => one.state === state).length;
    if (number) return `${grouped(number)} ${state}`;
  }
  return "";
}

/** @param {Alert} alert */
export const stateMark = ({ state }) =>
  h("span", { class: `state ${state}` }, Object.hasOwn(NAMES, state) ? NAMES[state] : state);

/** @param {Alert} alert @param {import("./unit.js").Unit} unit */
function line(alert, unit) {
  const { rule, label, name, since_ms: since, value, probability } = alert;
  const side = rule.above === undefined ? "below" : "above";
  const condition = `${label} ${side} ${unit.show(limitOf(rule))}`;
  const asked = rule.probability === undefined ? "" : `, ${percent(rule.probability, 0)} sure`;
  const hold = Number.parseInt(rule.for, 10); // the collector says it in milliseconds
  const figures = [
    value === null ? "" : `now ${unit.show(value)}`,
    probability === null ? "" : `${sure(probability)} sure`,
    since === null ? "" : `since ${clock(since)}`,
  ];
  return h(
    "li",
    { class: `alarm ${alert.state}` },
    stateMark(alert),
    h("b", {}, name),
    h("p", {}, `${condition}${asked}${hold ? `, for ${duration(hold)}` : ""}`),
    h("p", { class: "note" }, figures.filter(Boolean).join(" · ")),
  );
}

/** @param {number} probability never rounded to what it is not */
const sure = (probability) =>
  probability > 0.999 ? "over 99.9 %" : probability < 0.001 ? "under 0.1 %" : percent(probability);

/** @param {Change} change */
function pastLine({ t, at_ms: at, name, state }) {
  return h(
    "li",
    { class: state },
    h("time", {}, clock(at)),
    ` ${name} `,
    h("span", { class: "note" }, `${state === "firing" ? "fired" : "resolved"} at t ${grouped(t)}`),
  );
}

/**
 * @param {import("./api.js").Stream} stream @param {string} label
 * @returns {number | null} only own members: a label may be called "constructor"
 */
const thresholdOf = (stream, label) =>
  Object.hasOwn(stream.thresholds ?? {}, label) ? Number(stream.thresholds[label]) : null;
