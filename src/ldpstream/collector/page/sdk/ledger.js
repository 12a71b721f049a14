/**
 * The ledger of one user, as `privacy/ledger.py`: what was spent when, and whether more may be.
 * Moments are milliseconds of a device's own time. A browser's clock has fractions: a ledger counts in whole
 * ones, debits and ends rounded up, and the moment that is asked about rounded down. With fractions
 * (at + span) - span may be less than at, and a debit would never leave the window.
 */

/**
 * At most so much in any span so long. One that has ended binds until a span after its end.
 * @typedef {{epsilonNano: number, span: number, until?: number}} Promised
 */
/** @typedef {readonly [number, number]} Debit moment and nano-epsilon */
/**
 * A part of every promise that is kept free for one stream, as long as it has not spent it.
 * @typedef {object} Reserve
 * @property {number} nano
 * @property {readonly Debit[]} debits what the stream has spent, which is among the ledger's debits
 * @property {boolean} asks whether it is the stream that asks to spend
 */

export class Ledger {
  /**
   * @param {readonly Promised[]} promises
   * @param {Iterable<Debit>} [debits] in any order, whether or not they keep a promise
   * @param {number | null} [forgotten] the newest moment whose debits were left out
   * @param {readonly Reserve[]} [reserves]
   */
  constructor(promises, debits = [], forgotten = null, reserves = []) {
    /** @type {readonly Promised[]} */
    this.promises = promises.map(({ until, ...rest }) =>
      until === undefined ? rest : { ...rest, until: Math.ceil(until) },
    );
    this.reserves = reserves.map((one) => ({ ...one, debits: one.debits.map(roundedUp) }));
    this.debits = [...debits].map(roundedUp).sort(([one], [other]) => one - other);
    this.forgotten = forgotten === null ? null : Math.ceil(forgotten);
  }

  /** @param {number} moment @returns {number} what may be spent at this moment */
  left(moment) {
    const left = this.binding(moment).map((promise) => this.#leftOf(promise, moment));
    return Math.max(0, Math.min(Infinity, ...left));
  }

  /** @param {number} moment @returns {readonly Promised[]} the promises that bind then */
  binding(moment) {
    return this.promises.filter(({ until }) => Math.floor(moment) < (until ?? Infinity));
  }

  /** @param {Promised} promise @param {number} moment */
  #leftOf({ epsilonNano, span }, moment) {
    const begin = Math.floor(moment) - span;
    if (this.forgotten !== null && this.forgotten > begin) return 0;
    let [left, own] = [epsilonNano - spentAfter(this.debits, begin), 0];
    for (const { nano, debits, asks } of this.reserves) {
      const unfilled = Math.max(0, nano - spentAfter(debits, begin));
      if (asks) own += unfilled;
      else left -= unfilled;
    }
    return left >= own ? left : 0; // a reserve that does not fit allows nothing yet
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
  #freeOf(promise, nano) {
    // What is left changes at these moments only, and never falls.
    const bound = this.debits.map(([at]) => at);
    if (this.forgotten !== null) bound.push(this.forgotten);
    const moments = [0, ...bound.map((at) => at + promise.span).sort((one, other) => one - other)];
    let [low, high] = [0, moments.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#leftOf(promise, moments[middle]) >= nano) high = middle;
      else low = middle + 1;
    }
    return moments[low] ?? Infinity;
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

  /** @param {number} moment @param {number} nano whether or not a promise allows it */
  withDebit(moment, nano) {
    return new Ledger(this.promises, [...this.debits, [moment, nano]], this.forgotten, this.reserves);
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
    return new Ledger(this.promises, this.debits.slice(old.length), newest, this.reserves);
  }
}

/** @param {Debit} debit @returns {Debit} */
const roundedUp = ([at, nano]) => [Math.ceil(at), nano];

/** @param {readonly Debit[]} debits @param {number} begin @returns {number} nano-epsilon */
const spentAfter = (debits, begin) =>
  debits.reduce((sum, [at, nano]) => (at > begin ? sum + nano : sum), 0);

/** Ledgers that all have to allow a spend: a stream's own, and that of a limit over streams. */
export class Budget {
  /** @param {...Ledger} ledgers */
  constructor(...ledgers) {
    this.ledgers = ledgers;
  }

  /** @param {number} moment @returns {number} what may be spent at this moment */
  left(moment) {
    return Math.min(...this.ledgers.map((ledger) => ledger.left(moment)));
  }

  /** @param {number} moment @param {number} nano whether a spend checked then keeps every promise */
  allows(moment, nano) {
    return this.ledgers.every((ledger) => ledger.allows(moment, nano));
  }

  /** @param {number} nano @returns {number | null} the first moment at which this is free; null: never */
  freeFrom(nano) {
    const moments = this.ledgers.map((ledger) => ledger.freeFrom(nano) ?? Infinity);
    const free = Math.max(...moments);
    return free === Infinity ? null : free;
  }

  /** @param {number} moment @param {number} nano */
  check(moment, nano) {
    for (const ledger of this.ledgers) ledger.spend(moment, nano);
  }
}
