/** What a device agreed to at enrolment: the terms of one stream, and the pin that names them. */

import { sha256, toHex, utf8 } from "./bytes.js";
import { LARGEST_NANO } from "./odds.js";
import { isOracle } from "./oracles.js";
import { TermsRefused, shown } from "./problems.js";

export const LATEST_MS = 2 ** 52;
const LONGEST_WINDOW = 2 ** 31;
const LONGEST_INTERVAL_MS = 2 ** 41;
const MOST_LABELS = 2 ** 16;
const STREAM = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

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

/** In the order of canonical JSON: sorted. @type {Record<string, (value: any) => boolean>} */
const CHECKS = {
  epsilon_nano: (nano) => whole(nano, 1, LARGEST_NANO),
  interval_ms: (ms) => whole(ms, 1, LONGEST_INTERVAL_MS),
  labels: areLabels,
  oracle: isOracle,
  query: (query) => query === "histogram",
  start_ms: (ms) => whole(ms, 0, LATEST_MS),
  stream: (name) => typeof name === "string" && STREAM.test(name),
  version: (version) => version === 1,
  window: (window) => whole(window, 1, LONGEST_WINDOW),
};

/** @param {any} labels strings, each once, and such as UTF-8 can write: no lone surrogates */
function areLabels(labels) {
  return (
    Array.isArray(labels) &&
    whole(labels.length, 2, MOST_LABELS) &&
    labels.every((label) => typeof label === "string" && !/\p{Surrogate}/u.test(label)) &&
    new Set(labels).size === labels.length
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
    this.canonical = canonical;
    this.pin = pin;
    Object.freeze(this);
  }

  /**
   * Check what a collector sent. A key that this version does not know may loosen another.
   * @param {unknown} sent @returns {Promise<Terms>}
   */
  static async read(sent) {
    const names = Object.keys(CHECKS);
    if (!isObject(sent) || Object.keys(sent).sort().join() !== names.join()) {
      throw new TermsRefused("terms-malformed", { what: `the keys: ${shown(sent)}` });
    }
    for (const name of names) {
      if (!CHECKS[name](sent[name])) {
        throw new TermsRefused("terms-malformed", { what: `${name}: ${shown(sent[name])}` });
      }
    }
    const canonical = JSON.stringify(Object.fromEntries(names.map((name) => [name, sent[name]])));
    return new Terms(sent, canonical, toHex(await sha256(utf8(canonical))));
  }

  /** How far clocks may disagree before it matters: an eighth of an interval. */
  get slackMs() {
    return Math.floor(this.intervalMs / 8);
  }

  /** @param {number} ms @returns {number} the timestamp of a moment; below 1 before the start */
  timestampAt(ms) {
    return Math.floor((ms - this.startMs) / this.intervalMs) + 1;
  }
}
