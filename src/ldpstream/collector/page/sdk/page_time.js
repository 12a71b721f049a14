/** Own time as one page, worker or process counts it, from marks that any of them may have made. */

import { OwnTime, lookAt } from "./clock.js";

/** By how much a wall clock must have been moved for that to be put on disk. */
const MOVED_MS = 1000;

export class PageTime {
  /** @type {import("./clock.js").Clock} */ #clock;
  /** @type {OwnTime | null} */ #own = null;
  /** The id of the mark in the memory that it counts from. */
  #mark = "";
  /** By how much the wall clock was ahead of the steady one when this page was opened, or marked. */
  #apart = 0;

  /** @param {import("./clock.js").Clock} clock */
  constructor(clock) {
    this.#clock = clock;
  }

  /**
   * Count own time from the memory's mark. How long ago another page made it, this page cannot tell
   * but by the wall clock, which it asks only once, when it is opened. From then on it counts from
   * the moment at which it first sees a mark: never more than has passed since the mark was made.
   * @param {import("./clock.js").Mark} mark
   */
  goOnFrom({ id, ownMs, look }) {
    const now = lookAt(this.#clock);
    const mark = new OwnTime(ownMs, look);
    if (!this.#own) {
      this.#own = new OwnTime(mark.at(now), now);
      this.#apart = apart(now);
    } else if (look.boot !== null && look.boot === now.boot) {
      this.#own = mark;
      this.#apart = apart(look);
    } else if (id !== this.#mark) this.#own = new OwnTime(ownMs, now);
    this.#mark = id;
  }

  /** @param {import("./clock.js").Look} look */
  at(look) {
    return /** @type {OwnTime} */ (this.#own).at(look);
  }

  /** Whether the next page would take a moved wall clock for time that has passed. */
  get wallWasMoved() {
    return Math.abs(apart(lookAt(this.#clock)) - this.#apart) > MOVED_MS;
  }

  /** The time since the look that it counts from, by the steady clock. */
  get passedMs() {
    return lookAt(this.#clock).steadyMs - /** @type {OwnTime} */ (this.#own).look.steadyMs;
  }
}

/** @param {import("./clock.js").Look} look by how much the wall clock is ahead of the steady one */
const apart = ({ wallMs, steadyMs }) => wallMs - steadyMs;
