/** The oracles that hash the value first: BLH and OLH (docs/oracles.md, "The hash"). */

import { Fraction, fraction } from "./fraction.js";
import { oddsWithin } from "./odds.js";
import { Oracle, bytesFor, leastNoisy, meanNoise } from "./oracle.js";

/** @typedef {import("./randomness.js").Source} Source */
/** @typedef {import("./odds.js").Odds} Odds */
/**
 * A strongly universal hash family: widths in bits, and what a label is hashed as.
 * @typedef {{keyBits: number, hashBits: number, key: (label: number) => number}} Family
 */

const MOST_BUCKETS = 1 << 15;

/** @param {number} label @returns {number} a bijection of 0 .. 65535 */
export function scatter(label) {
  let x = label ^ 0x9e37;
  x ^= x >>> 7;
  x = Math.imul(x, 0x2993) & 0xffff;
  x ^= x >>> 5;
  x = Math.imul(x, 0xe877) & 0xffff;
  x ^= x >>> 9;
  x = Math.imul(x, 0x0235) & 0xffff;
  return x ^ (x >>> 10);
}

/** @type {Family} */
export const FAMILY = { keyBits: 16, hashBits: 17, key: scatter };

/** Hash the value into g buckets under a fresh seed, then randomise the bucket like GRR. */
export class LocalHash extends Oracle {
  /**
   * @param {number} labels @param {number} nano @param {number} buckets
   * @param {Family} [family] another one only in tests
   */
  constructor(labels, nano, buckets, family = FAMILY) {
    super(labels, nano);
    const odds = oddsWithin(nano);
    this.buckets = buckets;
    this.family = family;
    this.wordBits = BigInt(family.keyBits + family.hashBits - 1);
    this.favour = odds.favour;
    this.total = odds.favour + odds.against * BigInt(buckets - 1);
    this.worstRatio = odds.ratio;
  }

  /** @param {bigint} multiplier @param {bigint} increment @param {number} label */
  bucketOf(multiplier, increment, label) {
    const { keyBits, hashBits, key } = this.family;
    const word = (multiplier * BigInt(key(label)) + increment) & ((1n << this.wordBits) - 1n);
    return Number(((word >> BigInt(keyBits - 1)) * BigInt(this.buckets)) >> BigInt(hashBits));
  }

  /** @param {number} value @param {Source} source */
  payload(value, source) {
    const multiplier = source.below(1n << this.wordBits);
    const increment = source.below(1n << this.wordBits);
    const truthful = source.coin(this.favour, this.total);
    const other = Number(source.below(BigInt(this.buckets - 1)));
    const hashed = this.bucketOf(multiplier, increment, value);
    const bucket = truthful ? hashed : other + Number(other >= hashed);
    return this.#packed(multiplier, increment, bucket);
  }

  /** @param {bigint} multiplier @param {bigint} increment @param {number} bucket */
  #packed(multiplier, increment, bucket) {
    const seed = multiplier | (increment << this.wordBits);
    let rest = seed | (BigInt(bucket) << (2n * this.wordBits));
    const seedBytes = Math.ceil(Number(2n * this.wordBits) / 8);
    return Uint8Array.from({ length: seedBytes + bytesFor(this.buckets) }, () => {
      const byte = Number(rest & 0xffn);
      rest >>= 8n;
      return byte;
    });
  }
}

export class Blh extends LocalHash {
  /** @param {number} labels @param {number} nano @param {Family} [family] */
  constructor(labels, nano, family) {
    super(labels, nano, 2, family);
  }
}

export class Olh extends LocalHash {
  /** @param {number} labels @param {number} nano @param {Family} [family] */
  constructor(labels, nano, family) {
    super(labels, nano, bestBuckets(labels, oddsWithin(nano)), family);
  }
}

/** @param {number} labels @param {Odds} odds */
function bestBuckets(labels, odds) {
  const near = Number(odds.ratio.floor()) + 1;
  const choices = [near, near + 1].map((buckets) => Math.min(buckets, MOST_BUCKETS));
  return leastNoisy(choices, (buckets) => {
    const p = new Fraction(odds.favour, odds.favour + odds.against * BigInt(buckets - 1));
    const same = collision(buckets);
    const other = fraction(1)
      .minus(p)
      .times(fraction(1).minus(same))
      .over(fraction(buckets - 1));
    return meanNoise(p, p.times(same).plus(other), labels);
  });
}

/** @param {number} buckets @returns {Fraction} Pr[two labels share a bucket] */
function collision(buckets) {
  const hashes = 2 ** FAMILY.hashBits;
  const size = Math.floor(hashes / buckets);
  const larger = hashes % buckets;
  const pairs =
    BigInt(larger) * BigInt(size + 1) ** 2n + BigInt(buckets - larger) * BigInt(size) ** 2n;
  return new Fraction(pairs, 1n << BigInt(2 * FAMILY.hashBits));
}
