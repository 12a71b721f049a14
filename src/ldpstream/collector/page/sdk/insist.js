/** Requests that are sent until there is an answer, with pauses that grow. */

import { exchange, noticeIn, refusalIn } from "./exchange.js";
import { Unreachable } from "./problems.js";

/** @typedef {import("./exchange.js").Answer} Answer */
/** @typedef {import("./notice.js").Notice} Notice */
/** @typedef {import("./problems.js").DeviceError} DeviceError */
/** What a device reaches the world by. @typedef {{fetcher: typeof fetch, sleep: Sleep}} Io */
/** @typedef {(ms: number, signal?: AbortSignal) => Promise<void>} Sleep */
/** @typedef {{url: string, path: string, method: string, headers: Record<string, string>, body?: BodyInit}} Message */
/**
 * @typedef {object} Manner
 * @property {number} [patienceMs] for one request
 * @property {number} [intervalMs] of the stream: pauses are short where it is
 * @property {(failures: number, pauseMs: number) => boolean} giveUp
 * @property {(notice: Notice) => void} [heed] is told of every notice, also in a refusal
 * @property {(ms: number, signal?: AbortSignal) => Promise<void>} pause
 * @property {AbortSignal} [signal]
 */

/** For a whole request, apart from what a collector is asked to hold back. */
export const PATIENCE_MS = 10_000;
/** The status of a MAC that the collector does not take. */
export const UNAUTHORIZED = 401;
const LONGEST_PAUSE_MS = 300_000;
const FIRST_PAUSE_MS = 1000;
/** Too early by the collector's clock, or too many requests. */
const TRY_AGAIN = [425, 429];

/**
 * Send the same request until there is an answer other than "later".
 * @param {Io} io @param {Message} message @param {Manner} manner @returns {Promise<Answer>}
 */
export async function insist(io, { url, path, ...request }, manner) {
  const { patienceMs = PATIENCE_MS, intervalMs, giveUp, heed, pause, signal } = manner;
  for (let failures = 1; ; failures += 1) {
    let fault;
    try {
      const response = await exchange(io.fetcher, url, path, request, patienceMs, signal);
      heed?.(noticeIn(response));
      if (!TRY_AGAIN.includes(response.status) && response.status < 500) return response;
      fault = refusalIn(response, `${request.method} ${path}`);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      fault = error;
    }
    const waitMs = pauseMs(failures, retryAfterMs(fault), intervalMs);
    if (signal?.aborted || giveUp(failures, waitMs)) throw fault;
    await pause(waitMs, signal);
    if (signal?.aborted) throw fault;
  }
}

/** Doubling, with jitter over its whole range so that a fleet does not come back as one. */
/** @param {number} failures @param {number} atLeastMs @param {number} [intervalMs] */
export function pauseMs(failures, atLeastMs, intervalMs = 10_000) {
  const first = Math.min(FIRST_PAUSE_MS, intervalMs / 10);
  const most = Math.min(LONGEST_PAUSE_MS, first * 2 ** Math.min(failures - 1, 30));
  return atLeastMs + Math.random() * most;
}

/** @param {DeviceError} fault how long the collector wants to be left alone */
export const retryAfterMs = (fault) => Number(fault.facts.retryAfterMs ?? 0);
