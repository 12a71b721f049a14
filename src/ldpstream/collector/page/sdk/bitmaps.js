/** The oracles whose report is a set of labels: SUE, OUE and subset selection. */

import { Fraction, fraction } from "./fraction.js";
import { oddsWithin } from "./odds.js";
import { Oracle, leastNoisy, meanNoise } from "./oracle.js";

/** @typedef {import("./randomness.js").Source} Source */

/** @param {Uint8Array} bitmap @param {number} label @param {boolean} set */
function put(bitmap, label, set) {
  const bit = 1 << (label & 7);
  if (set) bitmap[label >> 3] |= bit;
  else bitmap[label >> 3] &= ~bit;
}

/**
 * Independent coins, that of the last label tossed first.
 * @param {Source} source @param {number} labels @param {bigint} favour @param {bigint} total
 */
function coins(source, labels, favour, total) {
  const bitmap = new Uint8Array(Math.ceil(labels / 8));
  for (let label = labels - 1; label >= 0; label -= 1) {
    put(bitmap, label, source.coin(favour, total));
  }
  return bitmap;
}

/** Write the value as d bits, one of them set, and flip each with probability b / (a + b). */
export class Sue extends Oracle {
  /** @param {number} labels @param {number} nano */
  constructor(labels, nano) {
    super(labels, nano);
    const odds = oddsWithin(nano, 2);
    this.against = odds.against;
    this.total = odds.favour + odds.against;
    this.worstRatio = odds.ratio.times(odds.ratio);
  }

  /** @param {number} value @param {Source} source */
  payload(value, source) {
    const bitmap = coins(source, this.labels, this.against, this.total);
    bitmap[value >> 3] ^= 1 << (value & 7);
    return bitmap;
  }
}

/** Set the bit of the value with probability 1/2, every other bit with b / (a + b). */
export class Oue extends Oracle {
  /** @param {number} labels @param {number} nano */
  constructor(labels, nano) {
    super(labels, nano);
    const odds = oddsWithin(nano);
    this.against = odds.against;
    this.total = odds.favour + odds.against;
    this.worstRatio = odds.ratio;
  }

  /** @param {number} value @param {Source} source */
  payload(value, source) {
    // The noise of the true label is drawn too, and dropped: the draws do not tell the value.
    const bitmap = coins(source, this.labels, this.against, this.total);
    put(bitmap, value, source.coin(1n, 2n));
    return bitmap;
  }
}

/** Report a set of k labels, those with the value at odds a : b to those without. */
export class Subset extends Oracle {
  /** @param {number} labels @param {number} nano */
  constructor(labels, nano) {
    super(labels, nano);
    this.odds = oddsWithin(nano);
    this.worstRatio = this.odds.ratio;
    const near = Number(
      fraction(labels)
        .over(this.odds.ratio.plus(fraction(1)))
        .floor(),
    );
    const sizes = [near, near + 1].map((size) => Math.min(Math.max(size, 1), labels - 1));
    this.size = leastNoisy(sizes, (size) => this.#noise(size));
  }

  /** @param {number} size the chance, [favour, total], that the value is in the set */
  #inclusion(size) {
    const favour = BigInt(size) * this.odds.favour;
    return [favour, favour + BigInt(this.labels - size) * this.odds.against];
  }

  /** @param {number} size */
  #noise(size) {
    const [favour, total] = this.#inclusion(size);
    const p = new Fraction(favour, total);
    const others = p.times(fraction(size - 1)).plus(fraction(1).minus(p).times(fraction(size)));
    return meanNoise(p, others.over(fraction(this.labels - 1)), this.labels);
  }

  /** @param {number} value @param {Source} source */
  payload(value, source) {
    const [favour, total] = this.#inclusion(this.size);
    const included = source.coin(favour, total);
    const members = distinct(source, this.labels - 1, this.size).map(
      (other) => other + Number(other >= value),
    );
    // They come in random order, so this leaves out any of them.
    if (included) members[members.length - 1] = value;
    const bitmap = new Uint8Array(Math.ceil(this.labels / 8));
    for (const member of members) put(bitmap, member, true);
    return bitmap;
  }
}

/**
 * `number` distinct ones of 0 .. bound-1 in random order: a shuffle, stopped early.
 * @param {Source} source @param {number} bound @param {number} number @returns {number[]}
 */
function distinct(source, bound, number) {
  const moved = new Map();
  return Array.from({ length: number }, (_, place) => {
    const pick = place + Number(source.below(BigInt(bound - place)));
    const drawn = moved.get(pick) ?? pick;
    moved.set(pick, moved.get(place) ?? place);
    return drawn;
  });
}
