/** Pauses of a device. */

/** Without a look at the clocks: a wall clock that is moved must be noticed before the page closes. */
export const LONGEST_SLEEP_MS = 60_000;

/** @typedef {(ms: number, signal?: AbortSignal) => Promise<void>} Pause */

/**
 * Return what waits, and looks at the clocks meanwhile.
 * @param {import("./insist.js").Io} io @param {import("./wallet.js").Wallet} wallet @returns {Pause}
 */
export const pausing = (io, wallet) => async (ms, signal) => {
  for (let leftMs = ms; leftMs > 0 && !signal?.aborted; leftMs -= LONGEST_SLEEP_MS) {
    await io.sleep(Math.min(leftMs, LONGEST_SLEEP_MS), signal);
    await wallet.markTime();
  }
};
