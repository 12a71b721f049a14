/** Slots: when a device reports unasked, as `protocol/slots.py`. The collector can recompute them. */

import { hmacSha256, toBigInt, utf8 } from "./bytes.js";

/** The length of an epoch, in windows. */
const EPOCH_WINDOWS = 16;

/** @param {number} t @param {number} window @returns {number} the epoch of a timestamp, from 0 */
export const epochOf = (t, window) => Math.floor((t - 1) / (EPOCH_WINDOWS * window));

/**
 * Return a device's slot in an epoch: it reports when t mod w equals it.
 * @param {Uint8Array} key @param {number} window @param {number} epoch
 */
export async function slotOf(key, window, epoch) {
  return Number((await fraction(key, `ldpstream slot 2\n1\n\n${epoch}`)) % BigInt(window));
}

/**
 * Return whether timestamp t is the device's. In the first window of an epoch those have no turn
 * whose last one was less than w timestamps before.
 * @param {Uint8Array} key @param {number} window @param {number} t
 */
export async function isTurn(key, window, t) {
  const epoch = epochOf(t, window);
  const slot = await slotOf(key, window, epoch);
  if (t % window !== slot) return false;
  const begins = epoch > 0 && (t - 1) % (EPOCH_WINDOWS * window) < window;
  if (!begins) return true;
  const place = (/** @type {number} */ one) => (one - 1 + window) % window;
  return place(slot) >= place(await slotOf(key, window, epoch - 1));
}

/**
 * Return the first timestamp of the device from t on.
 * @param {Uint8Array} key @param {number} window @param {number} t at least 1
 */
export async function nextTurn(key, window, t) {
  for (let from = t; ; ) {
    const epoch = epochOf(from, window);
    const slot = await slotOf(key, window, epoch);
    const turn = from + ((((slot - from) % window) + window) % window);
    if (epochOf(turn, window) !== epoch) from = (epoch + 1) * EPOCH_WINDOWS * window + 1;
    else if (await isTurn(key, window, turn)) return turn;
    else from = turn + 1;
  }
}

/**
 * Return when a device reports within its timestamps, in ms from their start: between 1/16 and 11/16
 * of the time until the deadline, and always at the same moment.
 * @param {Uint8Array} key @param {string} stream @param {number} deadlineMs
 */
export async function momentMs(key, stream, deadlineMs) {
  const drawn = await fraction(key, `ldpstream moment 2\n${stream}`);
  return Number((BigInt(deadlineMs) * ((1n << 64n) + 10n * drawn)) >> 68n);
}

/**
 * Return which of so many groups of a vocabulary a device belongs to, for good.
 * @param {Uint8Array} key @param {number} groups
 */
export async function groupOf(key, groups) {
  return Number((await fraction(key, "ldpstream group 2\n")) % BigInt(groups));
}

/** @param {number} t @param {string} [suffix] @returns {string} the one round of a stratum at a timestamp */
export const roundName = (t, suffix = "") => `${t}-publication${suffix}`;

/** @param {Uint8Array} key @param {string} message @returns {Promise<bigint>} 64 bits of an HMAC */
async function fraction(key, message) {
  return toBigInt((await hmacSha256(key, utf8(message))).slice(0, 8));
}
