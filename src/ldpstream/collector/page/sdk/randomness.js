/** Where a device's randomness comes from, as two exact questions: a coin and a die. */

import { randomBytes, toBigInt } from "./bytes.js";

/**
 * @typedef {object} Source
 * @property {(favour: bigint, total: bigint) => boolean} coin true with probability favour/total
 * @property {(bound: bigint) => bigint} below one of 0 .. bound-1, each as likely
 */

/** The operating system's CSPRNG, by way of `crypto.getRandomValues`. @implements {Source} */
export class SystemSource {
  /** @type {Uint8Array} */ #pool = new Uint8Array(0);
  #used = 0;

  /** @param {bigint} favour @param {bigint} total */
  coin(favour, total) {
    return this.below(total) < favour;
  }

  /** @param {bigint} bound */
  below(bound) {
    const bits = bound.toString(2).length;
    const mask = (1n << BigInt(bits)) - 1n;
    for (;;) {
      // A draw that is not below the bound is thrown away whole: what is left is uniform.
      const drawn = toBigInt(this.#take(Math.ceil(bits / 8))) & mask;
      if (drawn < bound) return drawn;
    }
  }

  /** @param {number} length */
  #take(length) {
    if (this.#used + length > this.#pool.length) {
      this.#pool = randomBytes(Math.max(1024, length));
      this.#used = 0;
    }
    const taken = this.#pool.slice(this.#used, this.#used + length);
    this.#pool.fill(0, this.#used, this.#used + length);
    this.#used += length;
    return taken;
  }
}
