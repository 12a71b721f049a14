/**
 * The limit over all streams of a device: in any span so long of its own time, what leaves in all of them
 * together costs at most so much. It is a promise like that of a stream (`ledger.js`), over more debits.
 */

import { lengthMs } from "./durations.js";
import { NANO } from "./odds.js";
import { DeviceError, shown } from "./problems.js";
import { LATEST_MS, isObject, whole } from "./wholes.js";

/** @typedef {import("./ledger.js").Promised} Promised */
/** What an application sets: epsilon in any span, such as "24h". @typedef {{epsilon: number, span: string}} Limit */

/** @param {Limit} given @returns {Promised} */
export function readLimit(given) {
  const { epsilon, span } = isObject(given) ? given : /** @type {any} */ ({});
  const promise = { epsilonNano: nanoOf(epsilon), span: lengthMs(span) ?? 0 };
  const expected = '{ epsilon, span }: a number above 0, and a time such as "24h"';
  if (!whole(promise.epsilonNano, 1, Number.MAX_SAFE_INTEGER) || !whole(promise.span, 1, LATEST_MS)) {
    throw new DeviceError("option", { option: "the limit", given: shown(given), expected });
  }
  return promise;
}

/** @param {unknown} epsilon @returns {number} rounded down: nothing is looser than it was given */
export const nanoOf = (epsilon) =>
  typeof epsilon === "number" ? Math.floor(epsilon * NANO + 1e-6) : Number.NaN;

/**
 * Return the limits that bind from this moment on, with this one in force; null: none. One that it does
 * not imply binds until its span has passed.
 * @param {readonly Promised[]} limits @param {Promised | null} limit @param {number} moment
 * @returns {Promised[]}
 */
export function limitsAfter(limits, limit, moment) {
  const kept = limits
    .filter(({ until = Infinity }) => moment < until)
    .filter(({ epsilonNano, span }) => !limit || limit.epsilonNano > epsilonNano || limit.span < span)
    .map((one) => ({ ...one, until: one.until ?? moment + one.span }));
  return limit ? [...kept, limit] : kept;
}
