/** Requests to a collector, and its answers. Nothing in an answer is trusted, not even its length. */

import { fromHex, toHex } from "./bytes.js";
import { readNotice } from "./notice.js";
import { Refused, Unreachable, shown } from "./problems.js";
import { isObject } from "./wholes.js";

/** Bytes of an answer that are read at most: the terms of 65,536 labels fit. */
export const LARGEST_ANSWER = 8 << 20;
/** Of any answer but an enrolment's that is read as JSON: parsed, it is many times larger. */
const LARGEST_SHORT = 1 << 17;
const LONGEST_RETRY_SECONDS = 3600;
/** The most characters of a refusal that are shown: it says what to do at its end. */
const LONGEST_DETAIL = 300;
/** Timers that are set for longer go off at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** @typedef {{status: number, retryAfterMs: number, text: string}} Answer */

/**
 * Send a request and read all of its answer, within a time; rejects with `Unreachable` otherwise.
 * @param {typeof fetch} fetcher @param {string} url @param {string} path
 * @param {RequestInit} request @param {number} patienceMs @param {AbortSignal} [signal] ends it early
 * @returns {Promise<Answer>}
 */
export async function exchange(fetcher, url, path, request, patienceMs, signal) {
  // Not AbortSignal.timeout, nor any: they may be collected as garbage while a body is read.
  const given = new AbortController();
  const stop = () => given.abort(signal?.reason);
  const tooLong = () => given.abort(new Error("it takes too long"));
  const timer = setTimeout(tooLong, Math.min(Math.ceil(patienceMs), LONGEST_TIMER_MS));
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  try {
    return await Promise.race([
      ended(given.signal),
      converse(fetcher, url + path, { ...request, signal: given.signal }),
    ]);
  } catch (error) {
    throw new Unreachable("unreachable", { url, what: String(error) });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}

/** @param {AbortSignal} signal @returns {Promise<never>} rejects when it says stop */
function ended(signal) {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

/**
 * @param {typeof fetch} fetcher @param {string} address
 * @param {RequestInit & {signal: AbortSignal}} request @returns {Promise<Answer>}
 */
async function converse(fetcher, address, request) {
  // No cookies, no cache, and no redirect that would carry the token elsewhere.
  const response = await fetcher(address, {
    ...request,
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    referrerPolicy: "no-referrer",
  });
  const seconds = response.headers.get("retry-after") ?? "";
  return {
    status: response.status,
    retryAfterMs: /^\d+$/.test(seconds)
      ? Math.min(Number(seconds), LONGEST_RETRY_SECONDS) * 1000
      : 0,
    text: await readText(response, request.signal),
  };
}

/**
 * @param {Response} response whose body may be much longer than what was sent of it
 * @param {AbortSignal} signal ends it in the middle
 */
async function readText(response, signal) {
  const reader = response.body?.getReader();
  const cancel = () => reader?.cancel().catch(() => undefined);
  signal.addEventListener("abort", cancel);
  if (signal.aborted) cancel();
  let [bytes, size] = [new Uint8Array(1 << 14), 0];
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    if (size + value.length > LARGEST_ANSWER) {
      cancel();
      throw new Error("its answer has no end");
    }
    if (size + value.length > bytes.length) {
      const longer = new Uint8Array(2 * (size + value.length));
      longer.set(bytes);
      bytes = longer;
    }
    bytes.set(value, size);
    size += value.length;
  }
  signal.throwIfAborted(); // else half an answer would be taken for a whole one
  return new TextDecoder().decode(bytes.subarray(0, size));
}

/**
 * Wait so long (24 days at most), or until the signal says stop.
 * @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>}
 */
export function sleep(ms, signal) {
  return new Promise((done) => {
    if (signal?.aborted) return done();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, Math.min(Math.ceil(ms), LONGEST_TIMER_MS));
    signal?.addEventListener("abort", end);
  });
}

/**
 * @param {Answer} answer @param {string} what @param {number} [most] characters that are read
 * @returns {Record<string, any>} the object in it
 */
export function readObject({ text }, what, most = LARGEST_SHORT) {
  try {
    const answer = text.length <= most ? JSON.parse(text) : null;
    if (isObject(answer)) return answer;
  } catch {
    // told below
  }
  throw new Refused("answer-malformed", { what, given: shown(text.slice(0, 8)) }); // no part of a key
}

/** @param {Answer} answer @returns {import("./notice.js").Notice} which every answer to a report should have */
export function noticeIn({ text }) {
  try {
    return readNotice(text.length <= LARGEST_SHORT ? JSON.parse(text) : null);
  } catch {
    return readNotice(null);
  }
}

/**
 * Return the keys that the device with this number is given.
 * @param {Record<string, any>} answer @param {Uint8Array} number
 */
export function readKeys({ device, key, slot_key: slotKey }, number) {
  if (device !== toHex(number)) {
    throw new Refused("answer-malformed", { what: "device", given: shown(device) });
  }
  return { key: readKey(key), slotKey: readKey(slotKey === undefined ? key : slotKey) };
}

/** @param {unknown} sent @returns {Uint8Array} */
function readKey(sent) {
  if (typeof sent !== "string" || !/^[0-9a-fA-F]{64}$/.test(sent)) {
    throw new Refused("answer-malformed", { what: "key", given: "not 64 hex digits" });
  }
  return fromHex(sent);
}

/** What a problem body (RFC 9457) says, as an error of this device's. */
/** @param {Answer} answer @param {string} what */
export function refusalIn({ status, retryAfterMs, text }, what) {
  let [code, detail] = ["", ""];
  try {
    const body = JSON.parse(text);
    // A type is a URI, by whichever scheme, that ends in the code.
    if (body.type) code = String(body.type).split(/[/:#]/).pop() ?? "";
    detail = String(body.detail ?? "");
  } catch {
    // a body that says nothing
  }
  return new Refused("collector-refused", {
    what,
    status,
    code: unquoted(code),
    detail: unquoted(detail, LONGEST_DETAIL) || "see the collector's log",
    retryAfterMs,
  });
}

/** @param {string} text @param {number} [most] */
const unquoted = (text, most) => shown(text, most).replace(/^"|"$/g, "");
