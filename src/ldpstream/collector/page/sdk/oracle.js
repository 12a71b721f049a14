/** What the device halves of all oracles share: randomise a value, write the report down. */

import { fraction } from "./fraction.js";

/** @typedef {import("./fraction.js").Fraction} Fraction */
/** @typedef {import("./randomness.js").Source} Source */

const WIRE_VERSION = 1;

/** @abstract */
export class Oracle {
  /** @param {number} labels @param {number} nano epsilon of a report, in nano-units */
  constructor(labels, nano) {
    this.labels = labels;
    this.nano = nano;
    /** max over values and reports of Pr[report | v] / Pr[report | v'] @type {Fraction} */
    this.worstRatio = fraction(1);
  }

  /**
   * The bytes to send for a value: a version byte, then a payload of fixed length.
   * @param {number} value the index of a label
   * @param {Source} source
   * @returns {Uint8Array}
   */
  report(value, source) {
    if (!Number.isInteger(value) || value < 0 || value >= this.labels) {
      throw new RangeError(`value ${value} is outside the domain of ${this.labels} labels`);
    }
    const payload = this.payload(value, source);
    const wire = new Uint8Array(1 + payload.length);
    wire[0] = WIRE_VERSION;
    wire.set(payload, 1);
    return wire;
  }

  /**
   * @abstract
   * @param {number} value @param {Source} source @returns {Uint8Array}
   */
  payload(value, source) {
    throw new Error(`no payload for ${value} from ${source}`);
  }
}

/** @param {number} choices @returns {number} the least number of bytes that hold 0 .. choices-1 */
export const bytesFor = (choices) => Math.ceil((choices - 1).toString(2).length / 8);

/** @param {number} number @param {number} length @returns {Uint8Array} */
export function littleEndian(number, length) {
  const bytes = new Uint8Array(length);
  for (let at = 0, rest = number; at < length; at += 1, rest = Math.floor(rest / 256)) {
    bytes[at] = rest % 256;
  }
  return bytes;
}

/**
 * Variance of one report's estimate at the mean frequency, as `oracles/noise.py`.
 * @param {Fraction} p @param {Fraction} q @param {number} labels @returns {number}
 */
export function meanNoise(p, q, labels) {
  const one = fraction(1);
  const gain = p.minus(q);
  const noise = q.times(one.minus(q)).over(gain.times(gain));
  return noise
    .plus(
      one
        .minus(p)
        .minus(q)
        .over(gain.times(fraction(labels))),
    )
    .toNumber();
}

/**
 * The first of the choices with the least noise.
 * @param {number[]} choices in ascending order @param {(choice: number) => number} noise
 */
export function leastNoisy(choices, noise) {
  return choices.reduce((best, choice) => (noise(choice) < noise(best) ? choice : best));
}
