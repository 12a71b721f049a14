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
    // A window loses nothing by moving up until it starts with a spend, or with t itself.
    const starts = [...near.filter((one) => one <= t), t];
    return Math.max(...starts.map((start) => this.#sum(near, start)));
  }

  /** @param {number[]} times @param {number} start */
  #sum(times, start) {
    return times
      .filter((one) => start <= one && one < start + this.window)
      .reduce((sum, one) => sum + (this.#spends.get(one) ?? 0), 0);
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
