/**
 * From what an application hands over to the index of a value, whatever it hands over, as
 * `device/values.py`. A device without a usable value reports the stream's `other` label or, where
 * there is none, a value drawn uniformly: silence, or an old value, would tell something.
 */

import { DeviceError } from "./problems.js";

/** @typedef {import("./terms.js").Terms} Terms */
/** @typedef {(problem: DeviceError) => unknown} Warn told, once for each kind, what to mend */

/**
 * See to it that what becomes of a promise, of whichever kind, does not end the program.
 * @param {unknown} given by the application
 */
export function unheeded(given) {
  try {
    Promise.prototype.then.call(given, undefined, () => undefined);
  } catch {
    // None of the engine's; if it has a `then` of its own, it is told here.
    new Promise((done) => done(given)).catch(() => undefined);
  }
}

/** The UTF-16 units of a text that are read: a label has fewer, and of other texts fewer count. */
const MOST_READ = 2001;

/** @param {unknown} value that is no longer: a longer one must not take longer to be looked up */
const cut = (value) => (typeof value === "string" ? value.slice(0, MOST_READ) : value);

/** Reads the value that a device holds now; until it is told of one, the device has none. */
export class HeldValue {
  /** @type {() => unknown} */ #read = () => null;
  /** @type {Set<string>} */ #told = new Set();
  /** @type {DeviceError | null} */ #untold = null;

  /** @param {Warn} [warn] */
  constructor(warn = (problem) => console.warn(problem.message)) {
    this.warn = warn;
  }

  /** @param {unknown} value held from now on: a label by its name or index, or a number */
  observe(value) {
    const held = cut(value); // now: the engine may put a long text together when it is read first
    this.#read = () => held;
  }

  /** @param {() => unknown} read asked for the value whenever one is reported */
  follow(read) {
    this.#read = read;
  }

  /**
   * Return the index of the value held now, or of what stands in for it.
   * @param {Terms} terms @param {import("./randomness.js").Source} source
   * @param {Record<string, string>} [renamed] what labels of earlier terms are called now
   */
  place(terms, source, renamed = {}) {
    // Drawn for every report, used or not: the draws of a report do not depend on its value.
    const drawn = Number(source.below(BigInt(terms.size)));
    let what;
    try {
      const value = cut(this.#read());
      const isRenamed = typeof value === "string" && Object.hasOwn(renamed, value);
      const place = terms.place(isRenamed ? renamed[value] : value);
      if (place !== null) return place;
      what = value === null || value === undefined ? "missing" : "none of the stream's";
      unheeded(value); // of an asynchronous function
    } catch {
      what = "unknown: an exception was thrown";
    }
    if (!this.#told.has(what)) {
      this.#told.add(what);
      const instead = terms.other === null ? "a value drawn at random" : "the label for others";
      this.#untold = new DeviceError("value-unusable", { what, instead });
    }
    return terms.other ?? drawn;
  }

  /**
   * Tell, once, that there was no value, without showing what was given. Not while a report is made: it
   * must not depend on who is told, and its time must not tell of the value.
   */
  tell() {
    const problem = this.#untold;
    this.#untold = null;
    try {
      if (problem) unheeded(this.warn(problem));
    } catch {
      // A report must not depend on who is told.
    }
  }
}
