/** The alerts of a stream: what they look for, how they stand, and when they fired. */

import * as api from "./api.js";
import { announce, fill, h } from "./dom.js";
import { clock, duration, grouped, percent } from "./format.js";
import { adminToken } from "./tokens.js";

/** @typedef {"firing" | "pending" | "resolved" | "inactive"} State */
/**
 * @typedef {object} Alert
 * @property {string} id
 * @property {string} name
 * @property {string} kind
 * @property {string | null} label null if it is about the stream
 * @property {Rule} rule
 * @property {State} state
 * @property {number | null} since_ms
 * @property {number | null} value
 * @property {number | null} probability
 * @property {number | null} [silenced_until_ms] nothing is sent about it until then
 */
/**
 * As the configuration spells it; of the conditions it has one.
 * @typedef {object} Rule
 * @property {number} [above]
 * @property {number} [below]
 * @property {string} [no_reports] in milliseconds
 * @property {number} [reports_below]
 * @property {number} [wider_than]
 * @property {number} [changed_by]
 * @property {number} [within] timestamps
 * @property {string} [on]
 * @property {number} [probability]
 * @property {string} for in milliseconds
 * @property {string} [group] of devices, such as "country:de"; without it, it is about the whole fleet
 */
/** @typedef {{t: number, at_ms: number, id: string, name: string, label: string | null, state: State}} Change */
/** @typedef {{at: number, state: State | null}} Limit a threshold; the state is null if nobody watches it */
/** @typedef {{from: number, to: number | null}} Span timestamps; `to` is null if it goes on */

const ORDER = /** @type {State[]} */ (["firing", "pending", "resolved", "inactive"]);
const NAMES = { firing: "Firing", pending: "Pending", resolved: "Resolved", inactive: "Quiet" };
const MOST_CHANGES = 500;
const LISTED = 5;
const SILENCES = ["1h", "8h", "1d", "7d"];

export class Alerts {
  /** @type {Alert[]} */ alerts = [];
  /** @type {Change[]} in order of t */ changes = [];
  #spoken = "";

  /** @param {import("./api.js").Stream} stream */
  constructor(stream) {
    this.stream = stream;
    this.badge = h("span", { class: "pill", hidden: true });
    this.list = h("ul", { class: "alerts" });
    this.past = h("ol", { class: "alert-log", "aria-label": "Alerts that fired or were resolved" });
    this.pastTitle = h("h3", {}, "Recently");
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

  /**
   * The thresholds of a label.
   * @param {string} label @param {string} [group] of devices, as rules name it; without it, of the whole fleet
   * @returns {Limit[]}
   */
  limits(label, group = "") {
    const watched = this.alerts
      .filter(({ label: own, rule }) => own === label && isThreshold(rule) && (rule.group ?? "") === group)
      .map(({ rule, state }) => ({ at: limitOf(rule), state }));
    const shown = group ? null : thresholdOf(this.stream, label);
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
    const held = document.activeElement?.closest(".silence");
    if (!held || !this.list.contains(held))  // whoever chooses is not interrupted
      fill(this.list, ...this.alerts.map((one) => line(one, this.stream)));
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

/** @param {Rule} rule */
const isThreshold = ({ above, below }) => above !== undefined || below !== undefined;

/** @param {Rule} rule */
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

/** @param {Alert} alert @param {import("./api.js").Stream} stream */
function line(alert, stream) {
  const { rule, name, since_ms: since, value, probability, silenced_until_ms: silent } = alert;
  const { unit } = stream;
  const asked = rule.probability === undefined ? "" : `, ${percent(rule.probability, 0)} sure`;
  const hold = Number.parseInt(rule.for, 10); // the collector says it in milliseconds
  const shown = alert.label === null ? percent : unit.show;
  const figures = [
    value === null ? "" : `now ${shown(value)}`,
    probability === null ? "" : `${sure(probability)} sure`,
    since === null ? "" : `since ${clock(since)}`,
    silent ? `silenced until ${clock(silent, true)}` : "",
  ];
  return h(
    "li",
    { class: `alert ${alert.state}${silent ? " silenced" : ""}` },
    stateMark(alert),
    h("b", {}, name),
    h("p", {}, `${condition(alert, unit)}${asked}${hold ? `, for ${duration(hold)}` : ""}`),
    h("p", { class: "note" }, figures.filter(Boolean).join(" · ")),
    adminToken() ? silencer(alert, stream.terms.stream) : null,
  );
}

/** @param {Pick<Alert, "label" | "rule">} alert @param {import("./unit.js").Unit} unit @returns {string} in words */
export function condition({ label, rule }, unit) {
  if (rule.group) return `in ${rule.group}, ${condition({ label, rule: { ...rule, group: undefined } }, unit)}`;
  if (rule.no_reports !== undefined)
    return `nobody reports for ${duration(Number.parseInt(rule.no_reports, 10))}`;
  if (rule.reports_below !== undefined)
    return `fewer than ${percent(rule.reports_below, 0)} of the planned reports`;
  if (rule.wider_than !== undefined) return `${label}: interval wider than ${unit.show(rule.wider_than)}`;
  if (rule.changed_by !== undefined)
    return `${label} changed by more than ${unit.show(rule.changed_by)} within ${rule.within} timestamps`;
  return `${label} ${rule.above === undefined ? "below" : "above"} ${unit.show(limitOf(rule))}`;
}

/** What an administrator can do about a rule. @param {Alert} alert @param {string} stream */
function silencer(alert, stream) {
  const said = h("span", { class: "note bad", role: "alert" });
  const act = async (/** @type {string} */ length) => {
    /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
    try {
      if (length) await api.silence(stream, alert.id, length);
      else await api.endSilence(stream, alert.id);
    } catch (error) {
      said.textContent = /** @type {Error} */ (error).message;
    }
  };
  if (alert.silenced_until_ms)
    return h(
      "p",
      { class: "silence" },
      h("button", { type: "button", onclick: () => act("") }, "End silence"),
      said,
    );
  const lengths = h(
    "select",
    { "aria-label": `Silence ${alert.name}`, onchange: () => act(lengths.value) },
    h("option", { value: "" }, "Silence …"),
    ...SILENCES.map((one) => h("option", { value: one }, `for ${one}`)),
  );
  return h("p", { class: "silence" }, lengths, said);
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
