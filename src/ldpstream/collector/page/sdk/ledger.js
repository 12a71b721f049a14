/** The ledger of one user, as `privacy/ledger.py`: what was spent when, and what may be spent. */

export class Ledger {
  /** @type {Map<number, number>} nano-epsilon by timestamp */
  #spends = new Map();

  /**
   * @param {number} limit nano-epsilon for any `window` consecutive timestamps
   * @param {number} window
   * @param {Iterable<{t: number, nano: number}>} [entries]
   */
  constructor(limit, window, entries = []) {
    this.limit = limit;
    this.window = window;
    for (const { t, nano } of entries) this.#spends.set(t, (this.#spends.get(t) ?? 0) + nano);
  }

  /** @param {number} t @returns {number} the most that any window containing t holds already */
  most(t) {
    const near = [...this.#spends.keys()].filter((one) => Math.abs(one - t) < this.window);
    near.sort((one, other) => one - other);
    let [most, held, entered] = [0, 0, 0];
    // A window loses nothing by moving up until it starts with a spend, or with t itself.
    for (const start of [...near.filter((one) => one < t), t]) {
      for (; entered < near.length && near[entered] < start + this.window; entered += 1) {
        held += this.#at(near[entered]);
      }
      most = Math.max(most, held);
      held -= this.#at(start);
    }
    return most;
  }

  /** @param {number} t */
  #at(t) {
    return this.#spends.get(t) ?? 0;
  }

  /** @param {number} t @returns {number} what may still be spent at t */
  left(t) {
    return Math.max(0, this.limit - this.most(t));
  }

  /** @param {number} t @param {number} nano whether every window stays within the limit */
  allows(t, nano) {
    return nano > 0 && nano <= this.left(t);
  }

  /** @returns {number} the first timestamp at which all of the limit can be spent; 0: any */
  get fullAt() {
    return Math.max(0, ...[...this.#spends.keys()].map((t) => t + this.window));
  }
}
