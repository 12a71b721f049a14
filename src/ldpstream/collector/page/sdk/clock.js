/** A device's own sense of time: the wall clock where it starts, a steady clock from there on. */

/**
 * @typedef {object} Clock
 * @property {() => number} wallMs since the epoch; anyone may set it
 * @property {() => number} steadyMs since whenever; nobody can set it
 */

/** @type {Clock} */
export const systemClock = {
  wallMs: () => Date.now(),
  steadyMs: () => Math.floor(performance.now()),
};

/** @typedef {{wallMs: number, steadyMs: number}} Look both clocks at one moment */

/** Time as the device has witnessed it since it was opened. */
export class OwnTime {
  /** @type {Look} */ #start;

  /** @param {Clock} clock */
  constructor(clock) {
    this.clock = clock;
    /** Added to the wall clock: the correction that was fixed at enrolment. */
    this.offsetMs = 0;
    this.#start = this.look();
  }

  /** @returns {Look} */
  look() {
    return { wallMs: this.clock.wallMs(), steadyMs: this.clock.steadyMs() };
  }

  /** Go on from what the wall clock said then: at a price that is for the caller to pay first. */
  /** @param {Look} seen */
  takeOver(seen) {
    this.#start = seen;
  }

  nowMs() {
    return this.#witnessedAt(this.clock.steadyMs());
  }

  /** @param {Look} seen @returns {number} what time it was by the wall clock then */
  byWallMs(seen) {
    return seen.wallMs + this.offsetMs;
  }

  /** @param {Look} seen @returns {number} how far the wall clock was ahead of what was witnessed */
  wallAheadMs(seen) {
    return this.byWallMs(seen) - this.#witnessedAt(seen.steadyMs);
  }

  /** @param {number} steadyMs */
  #witnessedAt(steadyMs) {
    return this.#start.wallMs + steadyMs - this.#start.steadyMs + this.offsetMs;
  }
}

/**
 * The least correction of the own clock that agrees with the collector's, which was read at some
 * moment between request and answer.
 * @param {number} collectorMs @param {number} sentMs @param {number} receivedMs
 */
export const offsetAtEnrolment = (collectorMs, sentMs, receivedMs) =>
  Math.max(collectorMs - receivedMs, Math.min(0, collectorMs - sentMs));
