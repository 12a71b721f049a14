/**
 * The ledger of one user, as `privacy/ledger.py`: what was spent when, and whether more may be.
 * Moments are milliseconds of a device's own time.
 */

/**
 * At most so much in any span so long. One that has ended binds until a span after its end.
 * @typedef {{epsilonNano: number, span: number, until?: number}} Promised
 */
/** @typedef {readonly [number, number]} Debit moment and nano-epsilon */

export class Ledger {
  /**
   * @param {readonly Promised[]} promises
   * @param {Iterable<Debit>} [debits] in any order, whether or not they keep a promise
   * @param {number | null} [forgotten] the newest moment whose debits were left out
   */
  constructor(promises, debits = [], forgotten = null) {
    this.promises = promises;
    this.debits = [...debits].sort(([one], [other]) => one - other);
    this.forgotten = forgotten;
  }

  /** @param {number} moment @returns {number} what may be spent at this moment */
  left(moment) {
    const binding = this.binding(moment);
    if (!binding.length) return 0; // nothing was agreed on
    return Math.max(0, Math.min(...binding.map((promise) => this.#leftOf(promise, moment))));
  }

  /** @param {number} moment @returns {readonly Promised[]} the promises that bind then */
  binding(moment) {
    return this.promises.filter(({ until }) => moment < (until ?? Infinity));
  }

  /** @param {Promised} promise @param {number} moment */
  #leftOf({ epsilonNano, span }, moment) {
    const begin = moment - span;
    if (this.forgotten !== null && this.forgotten > begin) return 0;
    return this.debits.reduce((left, [at, nano]) => (at > begin ? left - nano : left), epsilonNano);
  }

  /** @param {number} moment @param {number} nano whether a spend checked then keeps every promise */
  allows(moment, nano) {
    return nano > 0 && nano <= this.left(moment);
  }

  /**
   * Return the first moment at which this much may be spent if nothing is spent before; null if
   * never, since a promise is smaller.
   * @param {number} nano @returns {number | null}
   */
  freeFrom(nano) {
    let first = 0;
    for (const promise of this.promises) {
      const { until = Infinity } = promise;
      const free = Math.min(this.#freeOf(promise, nano), until);
      if (free === Infinity) return null;
      first = Math.max(first, free);
    }
    return first;
  }

  /** @param {Promised} promise @param {number} nano @returns {number} Infinity: never */
  #freeOf({ epsilonNano, span }, nano) {
    if (nano > epsilonNano) return Infinity;
    const free = this.forgotten === null ? 0 : this.forgotten + span;
    let room = epsilonNano - nano;
    for (const [at, spent] of [...this.debits].reverse()) {
      room -= spent;
      if (room < 0) return Math.max(free, at + span);
    }
    return free;
  }

  /**
   * Return the ledger after a debit that is entered at `moment`, and was checked at an earlier one
   * if the value was read in between.
   * @param {number} moment @param {number} nano @param {number} [checked]
   */
  spend(moment, nano, checked = moment) {
    if (!this.allows(checked, nano)) throw new Error("a report that the ledger does not allow");
    return this.withDebit(moment, nano);
  }

  /**
   * Return the ledger after anything may have been spent up to this moment. It is as if debits of then
   * were forgotten: no promise allows any more for its span, not even one that is made later.
   * @param {number} moment
   */
  exhausted(moment) {
    return new Ledger(this.promises, this.debits, Math.max(moment, this.forgotten ?? moment));
  }

  /** @param {number} moment @param {number} nano whether or not a promise allows it */
  withDebit(moment, nano) {
    return new Ledger(this.promises, [...this.debits, [moment, nano]], this.forgotten);
  }

  get longestSpan() {
    return Math.max(0, ...this.promises.map(({ span }) => span));
  }

  /** @param {number} moment @returns {Ledger} without what no promise depends on at this moment */
  forget(moment) {
    const end = moment - this.longestSpan;
    const old = this.debits.filter(([at]) => at <= end);
    if (!old.length) return this;
    const newest = Math.max(old[old.length - 1][0], this.forgotten ?? -Infinity);
    return new Ledger(this.promises, this.debits.slice(old.length), newest);
  }
}
