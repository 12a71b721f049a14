/** What a device agreed to at enrolment: the terms of one stream, and the pin that names them. */

import { sha256, toHex, utf8 } from "./bytes.js";
import { LARGEST_NANO } from "./odds.js";
import { TermsRefused, shown } from "./problems.js";
import { isRandomiser, randomiserOf } from "./randomisers.js";
import { Range } from "./range.js";

export const LATEST_MS = 2 ** 52;
const LONGEST_WINDOW = 2 ** 31;
const LONGEST_INTERVAL_MS = 2 ** 41;
const MOST_LABELS = 2 ** 16;
const LONGEST_LABEL = 1000;
const STREAM = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/**
 * @param {unknown} value @param {number} least @param {number} most
 * @returns {value is number} whether it is an integer in this range that is held exactly
 */
export const whole = (value, least, most) =>
  Number.isSafeInteger(value) &&
  /** @type {number} */ (value) >= least &&
  /** @type {number} */ (value) <= most;

/** @param {unknown} value @returns {value is Record<string, any>} */
export const isObject = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** @type {Record<string, (value: any, sent: Record<string, any>) => boolean>} */
const CHECKS = {
  deadline_ms: (ms, sent) => whole(ms, 1, sent.interval_ms),
  epsilon_nano: (nano) => whole(nano, 1, LARGEST_NANO),
  high: (_, sent) => Range.read(sent) !== null,
  interval_ms: (ms) => whole(ms, 1, LONGEST_INTERVAL_MS),
  labels: areLabels,
  low: (_, sent) => Range.read(sent) !== null,
  oracle: (name, { query }) => isRandomiser(query, name),
  other: (label, { labels }) => typeof label === "string" && labels.includes(label),
  query: (query) => Object.hasOwn(VALUE_KEYS, query),
  selection: (selection) => SELECTIONS.includes(selection),
  start_ms: (ms) => whole(ms, 0, LATEST_MS),
  steps: (_, sent) => Range.read(sent) !== null,
  stream: isStreamName,
  // Terms of the first version do not say how devices are reached.
  version: (version, sent) => version === (Object.hasOwn(sent, "selection") ? 2 : 1),
  window: (window, sent) =>
    whole(window, 1, LONGEST_WINDOW) && window * sent.interval_ms <= LATEST_MS,
};

const COMMON_KEYS = "epsilon_nano interval_ms oracle query start_ms stream version window".split(" ");
/** @type {Record<string, string[]>} */
const VALUE_KEYS = { histogram: ["labels"], mean: ["high", "low", "steps"] };
const SELECTIONS = ["slots", "open", "roster"];

/**
 * The keys that terms must have, in the order of canonical JSON, given those on which others depend.
 * @param {Record<string, any>} sent
 */
function keysOf(sent) {
  const { query } = sent;
  if (typeof query !== "string" || !Object.hasOwn(VALUE_KEYS, query)) return [];
  const keys = [...COMMON_KEYS, ...VALUE_KEYS[query]];
  if (query === "histogram" && Object.hasOwn(sent, "other")) keys.push("other");
  if (Object.hasOwn(sent, "selection")) keys.push("selection");
  if (sent.selection === "slots") keys.push("deadline_ms");
  return keys.sort();
}

/** @param {unknown} name @returns {name is string} */
export function isStreamName(name) {
  return typeof name === "string" && STREAM.test(name);
}

/** @param {any} labels strings, each once */
function areLabels(labels) {
  return (
    Array.isArray(labels) &&
    whole(labels.length, 2, MOST_LABELS) &&
    labels.every(isLabel) &&
    new Set(labels).size === labels.length
  );
}

/** @param {any} label no lone surrogates, which UTF-8 cannot write; its length is in code points */
function isLabel(label) {
  return (
    typeof label === "string" &&
    label.length <= 2 * LONGEST_LABEL &&
    !/\p{Surrogate}/u.test(label) &&
    [...label].length <= LONGEST_LABEL
  );
}

/** The public terms of a stream; they never change. */
export class Terms {
  /** @param {Record<string, any>} fields @param {string} canonical @param {string} pin */
  constructor(fields, canonical, pin) {
    /** @type {string} */ this.stream = fields.stream;
    /** @type {"histogram" | "mean"} */ this.query = fields.query;
    /** @type {readonly string[] | null} null in a stream of numbers */
    this.labels = fields.labels ? Object.freeze([...fields.labels]) : null;
    /** @type {Range | null} null in a stream of labels */
    this.range = fields.labels ? null : Range.read(/** @type {any} */ (fields));
    /** @type {number} */ this.epsilonNano = fields.epsilon_nano;
    /** @type {number} */ this.window = fields.window;
    /** @type {number} */ this.intervalMs = fields.interval_ms;
    /** @type {number} */ this.startMs = fields.start_ms;
    /** @type {string} */ this.oracle = fields.oracle;
    /** @type {number | null} the index of the label to report when there is no usable value */
    this.other = fields.other === undefined ? null : fields.labels.indexOf(fields.other);
    /** @type {"slots" | "open" | "roster" | null} null in terms of version 1, which do not say */
    this.selection = fields.selection ?? null;
    /** @type {number | null} with slots: how long after its start a timestamp takes reports */
    this.deadlineMs = fields.deadline_ms ?? null;
    this.canonical = canonical;
    this.pin = pin;
    Object.freeze(this);
  }

  /**
   * Check what a collector sent. A key that this version does not know may loosen another.
   * @param {unknown} sent @returns {Promise<Terms>}
   */
  static async read(sent) {
    const names = isObject(sent) ? keysOf(sent) : [];
    if (!isObject(sent) || !names.length || Object.keys(sent).sort().join() !== names.join()) {
      throw new TermsRefused("terms-malformed", { what: `the keys: ${shown(sent)}` });
    }
    for (const name of names) {
      if (!CHECKS[name](sent[name], sent)) {
        throw new TermsRefused("terms-malformed", { what: `${name}: ${shown(sent[name])}` });
      }
    }
    const canonical = JSON.stringify(Object.fromEntries(names.map((name) => [name, sent[name]])));
    return new Terms(sent, canonical, toHex(await sha256(utf8(canonical))));
  }

  /** What the device keeps to: epsilon in any span of w intervals of its own time, in ms. */
  /** @returns {import("./ledger.js").Promised} */
  get promise() {
    // Exact up to 2^53 ms; no difference of two moments reaches a longer span.
    return { epsilonNano: this.epsilonNano, span: this.window * this.intervalMs };
  }

  /** How many values there are: labels, or levels of the range. */
  get size() {
    return this.labels?.length ?? /** @type {Range} */ (this.range).levels;
  }

  /** @param {unknown} value a label by its name or index, or a number @returns {number | null} */
  place(value) {
    if (this.range) return this.range.level(value);
    const labels = /** @type {readonly string[]} */ (this.labels);
    const index = typeof value === "string" ? labels.indexOf(value) : value;
    return whole(index, 0, labels.length - 1) ? index : null;
  }

  /** @param {number} nano @returns {import("./oracle.js").Oracle} what makes reports with this epsilon */
  randomiser(nano) {
    return randomiserOf(this.query, this.oracle, this.size, nano);
  }

  /** @param {number} ms @returns {number} the timestamp of a moment; below 1 before the start */
  timestampAt(ms) {
    return Math.floor((ms - this.startMs) / this.intervalMs) + 1;
  }

  /** @param {number} t @returns {number} the moment at which it begins */
  startOf(t) {
    return this.startMs + (t - 1) * this.intervalMs;
  }

  /** @param {number} t @returns {number} the moment at which it is over */
  endOf(t) {
    return this.startOf(t + 1);
  }

  /** @param {number} t @returns {number} the moment at which it takes no more reports, with slots */
  deadlineOf(t) {
    return this.startOf(t) + (this.deadlineMs ?? this.intervalMs);
  }
}
