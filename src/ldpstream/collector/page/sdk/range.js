/** The range of a number, and the levels that readings are rounded to, as `numeric/range.py`. */

import { Fraction, fraction } from "./fraction.js";

const MOST_STEPS = 2 ** 16 - 1;
/** The levels of a range in bins: this many, or up to twice as many. */
export const FINEST = 256;
const END = /^-?[0-9]{1,18}(\.[0-9]{1,18})?$/;

/** Equally spaced levels 0 .. steps from `low` to `high`. */
export class Range {
  /** @param {number} low @param {number} high @param {number} steps */
  constructor(low, high, steps) {
    this.low = low;
    this.high = high;
    this.steps = steps;
    Object.freeze(this);
  }

  /** @param {any} sent terms with the ends as texts @returns {Range | null} null if it is none */
  static read({ low, high, steps }) {
    const whole = Number.isSafeInteger(steps) && steps >= 1 && steps <= MOST_STEPS;
    if (!whole || !isEnd(low) || !isEnd(high)) return null;
    return Number(low) < Number(high) ? new Range(Number(low), Number(high), steps) : null;
  }

  get levels() {
    return this.steps + 1;
  }

  /**
   * Return the level nearest to a number, ties to even; beyond the range, that of the nearer end.
   * @param {unknown} reading @returns {number | null} null if it is no number
   */
  level(reading) {
    if (typeof reading !== "number" || Number.isNaN(reading)) return null;
    const [low, high] = [Fraction.of(this.low), Fraction.of(this.high)];
    const inside = Math.min(Math.max(reading, this.low), this.high); // no branch: an end takes as long
    const share = Fraction.of(inside).minus(low).over(high.minus(low));
    return Number(share.times(fraction(this.steps)).round());
  }
}

/** @param {number} bins @returns {number} the levels that a range in bins has: bins, halved again and again */
export function cellsOf(bins) {
  let cells = bins;
  while (cells < FINEST) cells *= 2;
  return cells;
}

/** @param {Range | null} range @param {number} bins whether their ends are different numbers */
export function areApart(range, bins) {
  if (range === null) return false;
  const { low, high } = range;
  const ends = Array.from({ length: bins + 1 }, (_, place) => low + ((high - low) * place) / bins);
  return new Set(ends).size > bins;
}

/** @param {unknown} text whether it is an end of a range, in the one spelling that a pin may cover */
const isEnd = (text) => typeof text === "string" && END.test(text) && decimal(Number(text)) === text;

/** @param {number} number @returns {string} the shortest text that is read as it, with no exponent */
function decimal(number) {
  if (Object.is(number, -0)) return "-0";
  const [, sign, digits, exponent] = /** @type {RegExpExecArray} */ (
    /^(-?)(.*?)(?:e([+-]\d+))?$/.exec(String(number))
  );
  if (exponent === undefined) return sign + digits;
  // Below 1e-6; above 1e21 there are no ends.
  return `${sign}0.${"0".repeat(-Number(exponent) - 1)}${digits.replace(".", "")}`;
}
