/**
 * Streams that are paused or retired, as `device/halting.py`: what a device hears of it, and when it asks
 * again. Nothing is drawn or spent for a stream that takes no reports. A device cannot be called, so it asks
 * before its next turn whether a paused stream was resumed; it hardly ever asks a retired one.
 */

/** After so many windows a device asks whether a retired stream goes on after all. */
const RETIRED_WINDOWS = 64;

export class Halting {
  #notBeforeMs = 0;
  /** @type {import("./notice.js").Notice["halt"]} why the stream takes no reports, as far as was heard */
  halt = null;

  /** @param {import("./account.js").Account} account */
  constructor(account) {
    this.account = account;
  }

  /** @param {import("./notice.js").Notice} notice */
  hear({ halt }) {
    this.halt = halt;
    if (halt !== "retired" || !this.account.id) return;
    const { span } = this.account.enrolled.promise;
    this.#notBeforeMs = this.account.clock.steadyMs() + RETIRED_WINDOWS * span;
  }

  /** For how long nothing is tried: that of a retired stream. */
  get restsMs() {
    return this.halt === "retired" ? Math.max(0, this.#notBeforeMs - this.account.clock.steadyMs()) : 0;
  }
}
