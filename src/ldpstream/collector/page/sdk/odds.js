/**
 * The exact odds that keep to an epsilon, as `privacy/epsilon.py`: a device never computes with
 * Math.exp. It uses odds a : 2^64 with a = floor(2^64 e^epsilon), so that the epsilon it really has
 * is never more than the one asked for.
 */

import { Fraction } from "./fraction.js";

export const NANO = 1_000_000_000;
export const LARGEST_NANO = 32 * NANO;
const ODDS_BITS = 64n;

/** @typedef {{favour: bigint, against: bigint, ratio: Fraction}} Odds */

/**
 * The largest odds over 2^64 with ratio <= e^(epsilon/parts).
 * @param {number} nano epsilon in nano-units
 * @param {number} [parts]
 * @returns {Odds}
 */
export function oddsWithin(nano, parts = 1) {
  const favour = expFloor(BigInt(nano), BigInt(NANO) * BigInt(parts));
  const against = 1n << ODDS_BITS;
  return { favour, against, ratio: new Fraction(favour, against) };
}

/**
 * floor(2^64 e^(over/under)), exactly. e^x is irrational for every rational x > 0, so some
 * precision tells the floor.
 * @param {bigint} over @param {bigint} under @returns {bigint}
 */
function expFloor(over, under) {
  for (let precision = 192n; ; precision *= 2n) {
    const [low, high] = expBounds(over, under, precision);
    const cut = precision - ODDS_BITS;
    if (low >> cut === high >> cut) return low >> cut;
  }
}

/**
 * Integers around 2^precision e^(over/under), by the series of the exponential: every term is
 * rounded down in the one sum and up in the other.
 * @param {bigint} over @param {bigint} under @param {bigint} precision
 * @returns {[bigint, bigint]}
 */
export function expBounds(over, under, precision) {
  let [lowTerm, highTerm] = [1n << precision, 1n << precision];
  let [low, high] = [lowTerm, highTerm];
  for (let n = 1n; ; n += 1n) {
    lowTerm = (lowTerm * over) / (under * n);
    highTerm = (highTerm * over + under * n - 1n) / (under * n);
    low += lowTerm;
    high += highTerm;
    // From here on each term is at most half the one before: all that is left is below this one.
    if (highTerm <= 1n && 2n * over <= under * (n + 1n)) return [low, high + highTerm];
  }
}
