/** How a device turns a text into the bucket that it reports, as `vocabulary/device.py`. */

import { utf8 } from "./bytes.js";
import { whole } from "./wholes.js";

/** The bytes of a text that count; what is longer is cut. */
export const LONGEST_TEXT = 256;
/** The code points of a text that are composed: more could take so long that a device is late. */
const LONGEST_COMPOSED = 400;
const [LEAST_BITS, MOST_BITS] = [16, 24];
const MOST_PREFIXES = 7;
const LONGEST_PREFIX = 16;
/** Hash functions for each length: two texts that share a bucket under one differ by the other. */
const HASHES = 2;
const SALT = /^[0-9a-f]{16}$/;
const WORD = (1n << 64n) - 1n;
const GAMMA = 0x9e3779b97f4a7c15n;

/**
 * A part of the fleet, whose devices all report a prefix of the same length, hashed alike.
 * @typedef {{length: number | null, seed: bigint}} Group length in bytes, or null for the whole text
 */

/** The parameters of the reports of texts, all of which are pinned by the terms. */
export class Vocabulary {
  /** @param {string} salt 64 bits in hex @param {number} bits @param {readonly number[]} prefixes lengths in bytes */
  constructor(salt, bits, prefixes) {
    this.salt = salt;
    this.bits = bits;
    this.prefixes = Object.freeze([...prefixes]);
    Object.freeze(this);
  }

  /** @param {any} sent terms @returns {Vocabulary | null} null if they have none */
  static read({ salt, bits, prefixes }) {
    const sound = isSalt(salt) && whole(bits, LEAST_BITS, MOST_BITS) && arePrefixes(prefixes);
    return sound ? new Vocabulary(salt, bits, prefixes) : null;
  }

  /** One less than a power of two: row 0 of the matrix is no bucket's. */
  get buckets() {
    return 2 ** this.bits - 1;
  }

  /** @returns {readonly Group[]} all groups by number; those of whole texts come last */
  get groups() {
    const lengths = [...this.prefixes, null].flatMap((length) => Array(HASHES).fill(length));
    const salt = BigInt(`0x${this.salt}`);
    return lengths.map((length, number) => ({
      length,
      seed: mixed((salt + BigInt(number + 1) * GAMMA) & WORD),
    }));
  }

  /**
   * Return the bucket of a text in a group.
   * @param {unknown} text @param {number} group its number @returns {number | null} null if it is no text
   */
  bucket(text, group) {
    if (typeof text !== "string") return null;
    const { length, seed } = this.groups[group];
    return bucketOf(encoded(text).slice(0, length ?? LONGEST_TEXT), seed, this.buckets);
  }
}

/** @param {unknown} salt @returns {salt is string} */
const isSalt = (salt) => typeof salt === "string" && SALT.test(salt);

/** @param {any} lengths whether they are ascending, few and short */
const arePrefixes = (lengths) =>
  Array.isArray(lengths) &&
  lengths.length <= MOST_PREFIXES &&
  lengths.every((length, at) => whole(length, at ? lengths[at - 1] + 1 : 1, LONGEST_PREFIX));

/**
 * Return the bytes that a text is hashed by: UTF-8 of its composed form (NFC), cut. It is cut before it is
 * composed, too. A lone surrogate, which UTF-8 cannot encode, becomes a question mark.
 * @param {string} text
 */
export function encoded(text) {
  const read = [...text.slice(0, 2 * LONGEST_COMPOSED)].slice(0, LONGEST_COMPOSED).join("");
  return utf8(read.normalize("NFC").replaceAll(/\p{Surrogate}/gu, "?")).slice(0, LONGEST_TEXT);
}

/**
 * Return the hash of some bytes: SplitMix64 absorbs them in little-endian words of eight, the length first,
 * so that padding cannot make two texts equal. Every text takes the same steps: zeros are absorbed up to the
 * longest one, and the state before them counts.
 * @param {Uint8Array} data @param {bigint} seed @param {number} buckets
 */
export function bucketOf(data, seed, buckets) {
  const states = [mixed(seed ^ BigInt(data.length))];
  const padded = new Uint8Array(LONGEST_TEXT);
  padded.set(data);
  const words = new DataView(padded.buffer);
  for (let at = 0; at < LONGEST_TEXT / 8; at += 1) {
    states.push(mixed(((states[at] ^ words.getBigUint64(8 * at, true)) + GAMMA) & WORD));
  }
  return Number(((states[Math.ceil(data.length / 8)] >> 32n) * BigInt(buckets)) >> 32n);
}

/** The output function of SplitMix64. @param {bigint} state */
function mixed(state) {
  const once = ((state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n) & WORD;
  const twice = ((once ^ (once >> 27n)) * 0x94d049bb133111ebn) & WORD;
  return twice ^ (twice >> 31n);
}
