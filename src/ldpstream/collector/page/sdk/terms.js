/** What a device agreed to at enrolment: the terms of one stream, and the pin that names them. */

import { sha256, toHex, utf8 } from "./bytes.js";
import { LARGEST_NANO } from "./odds.js";
import { isOracle } from "./oracles.js";
import { TermsRefused, shown } from "./problems.js";

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

/** In the order of canonical JSON: sorted. */
/** @type {Record<string, (value: any, sent: Record<string, any>) => boolean>} */
const CHECKS = {
  epsilon_nano: (nano) => whole(nano, 1, LARGEST_NANO),
  interval_ms: (ms) => whole(ms, 1, LONGEST_INTERVAL_MS),
  labels: areLabels,
  oracle: isOracle,
  other: (label, { labels }) => typeof label === "string" && labels.includes(label),
  query: (query) => query === "histogram",
  start_ms: (ms) => whole(ms, 0, LATEST_MS),
  stream: isStreamName,
  version: (version) => version === 1,
  window: (window, sent) =>
    whole(window, 1, LONGEST_WINDOW) && window * sent.interval_ms <= LATEST_MS,
};

const OPTIONAL = "other";

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
    /** @type {readonly string[]} */ this.labels = Object.freeze([...fields.labels]);
    /** @type {number} */ this.epsilonNano = fields.epsilon_nano;
    /** @type {number} */ this.window = fields.window;
    /** @type {number} */ this.intervalMs = fields.interval_ms;
    /** @type {number} */ this.startMs = fields.start_ms;
    /** @type {keyof typeof import("./oracles.js").ORACLES} */
    this.oracle = fields.oracle;
    /** @type {number | null} the index of the label to report when there is no usable value */
    this.other = fields.other === undefined ? null : fields.labels.indexOf(fields.other);
    this.canonical = canonical;
    this.pin = pin;
    Object.freeze(this);
  }

  /**
   * Check what a collector sent. A key that this version does not know may loosen another.
   * @param {unknown} sent @returns {Promise<Terms>}
   */
  static async read(sent) {
    const given = isObject(sent) ? Object.keys(sent) : [];
    const names = Object.keys(CHECKS).filter((name) => name !== OPTIONAL || given.includes(name));
    if (!isObject(sent) || given.sort().join() !== names.join()) {
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

  /** @param {unknown} value a label by its name or index @returns {number | null} its index */
  place(value) {
    const index = typeof value === "string" ? this.labels.indexOf(value) : value;
    return whole(index, 0, this.labels.length - 1) ? index : null;
  }

  /** @param {number} ms @returns {number} the timestamp of a moment; below 1 before the start */
  timestampAt(ms) {
    return Math.floor((ms - this.startMs) / this.intervalMs) + 1;
  }

  /** @param {number} t @returns {number} the moment at which it is over */
  endOf(t) {
    return this.startMs + t * this.intervalMs;
  }
}
