/**
 * A device's two times, as `device/clock.py`: own time, in which budgets are kept, and label time,
 * which names t.
 */

import { randomBytes, toHex } from "./bytes.js";

/**
 * @typedef {object} Clock
 * @property {() => number} wallMs since the epoch; anyone may set it
 * @property {() => number} steadyMs since the boot; nobody can set it
 * @property {() => string | null} boot names what the steady clock counts from, or null if unknown
 * @property {boolean} [endsWithPage] whether the steady clock begins anew with each page load; then
 *   nothing but the wall clock knows how long a device was closed
 */

const PAGE = toHex(randomBytes(16));

/** The clocks of a page or a worker. `performance.now()` is not rounded: own time must not run ahead. */
/** @type {Clock} */
export const pageClock = {
  wallMs: () => Date.now(),
  steadyMs: () => performance.now(),
  boot: () => PAGE,
  endsWithPage: true,
};

/**
 * All clocks at one moment.
 * @typedef {{wallMs: number, steadyMs: number, boot: string | null, endsWithPage: boolean}} Look
 */

/** @param {Clock} clock @returns {Look} */
export const lookAt = (clock) => ({
  wallMs: clock.wallMs(),
  steadyMs: clock.steadyMs(),
  boot: clock.boot(),
  endsWithPage: clock.endsWithPage ?? false,
});

/**
 * Own time as it stood at a commit, and what the clocks said then, as it is stored. No other mark
 * has its id, also if a steady clock stood still in between.
 * @typedef {{id: string, ownMs: number, look: Look}} Mark
 */

/** @param {number} ownMs @param {Look} look @returns {Mark} */
export const newMark = (ownMs, look) => ({ id: toHex(randomBytes(8)), ownMs, look });

/** Own time since a mark. */
export class OwnTime {
  /** @param {number} ownMs @param {Look} look what the clocks said then */
  constructor(ownMs, look) {
    this.ownMs = ownMs;
    this.look = look;
  }

  /**
   * Return own time at a look. Within a boot the steady clock counts. Otherwise a steady clock that
   * has gone back has started anew, and one that has not may be the same; and it is no more than
   * the wall clock says. After another page load there is nothing but the wall clock.
   * @param {Look} now
   */
  at(now) {
    const steadyPassed = now.steadyMs - this.look.steadyMs;
    if (now.boot !== null && now.boot === this.look.boot) return this.ownMs + steadyPassed;
    const since = steadyPassed >= 0 ? steadyPassed : now.steadyMs;
    const wallPassed = now.wallMs - this.look.wallMs;
    const passed = now.endsWithPage ? wallPassed : Math.min(since, wallPassed);
    return this.ownMs + Math.max(0, passed);
  }
}

/**
 * The time in the stream: the wall clock's, until the collector says otherwise. From then on a clock
 * that counts sleep tells how much has passed; that of a page may not, so there it is the wall clock.
 */
export class LabelTime {
  /** @type {number} */ #fromMs;
  /** @type {number} */ #sinceMs;

  /** @param {Clock} clock */
  constructor(clock) {
    this.clock = clock;
    [this.#fromMs, this.#sinceMs] = [clock.wallMs(), this.#countedMs()];
  }

  /** Go by the wall clock again, as if the collector had said nothing. */
  restart() {
    this.correct(this.clock.wallMs());
  }

  #countedMs() {
    return this.clock.endsWithPage ? this.clock.wallMs() : this.clock.steadyMs();
  }

  nowMs() {
    return this.#fromMs + this.#countedMs() - this.#sinceMs;
  }

  /** @param {number} nowMs what time the collector has just said it is */
  correct(nowMs) {
    [this.#fromMs, this.#sinceMs] = [nowMs, this.#countedMs()];
  }
}
