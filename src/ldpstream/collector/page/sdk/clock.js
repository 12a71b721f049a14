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

/** Time as the device has witnessed it since it was opened. */
export class OwnTime {
  #wall = 0;
  #steady = 0;

  /** @param {Clock} clock */
  constructor(clock) {
    this.clock = clock;
    /** Added to the wall clock: the correction that was fixed at enrolment. */
    this.offsetMs = 0;
    this.takeOverWall();
  }

  takeOverWall() {
    this.#wall = this.clock.wallMs();
    this.#steady = this.clock.steadyMs();
  }

  nowMs() {
    return this.#wall + this.clock.steadyMs() - this.#steady + this.offsetMs;
  }

  /** How far the wall clock is ahead of what was witnessed. */
  wallAheadMs() {
    return this.clock.wallMs() + this.offsetMs - this.nowMs();
  }
}

/**
 * The least correction of the own clock that agrees with the collector's, which was read at some
 * moment between request and answer.
 * @param {number} collectorMs @param {number} sentMs @param {number} receivedMs
 */
export const offsetAtEnrolment = (collectorMs, sentMs, receivedMs) =>
  Math.max(collectorMs - receivedMs, Math.min(0, collectorMs - sentMs));
