/** What the page asks of the collector. */

import { adminToken, sharedStreams, tokenFor } from "./tokens.js";
import { withUnit } from "./unit.js";

/**
 * @typedef {object} Terms
 * @property {string} stream
 * @property {string[]} labels
 * @property {number} epsilon_nano
 * @property {number} window
 * @property {number} interval_ms
 * @property {number} start_ms
 * @property {string} oracle
 * @property {"slots" | "open" | "roster"} [selection] how devices are reached
 * @property {string} [other] the label that is reported where there is no value
 * @property {number} [bins] of a distribution
 * @property {number[]} [prefixes] of an open vocabulary: the lengths, in bytes, by which texts are found
 * @property {{name: string, epsilon_nano: number, window: number}[]} [levels] other than the stream's own
 * @property {{version: number}} [succeeds] the terms of before
 */
/**
 * What is promised at a level of privacy, in words of the collector's (`protocol/promise.py`).
 * @typedef {object} Promised
 * @property {string} level its name; empty for the stream's own
 * @property {string} called
 * @property {number} epsilon_nano
 * @property {number} window
 * @property {string} time
 * @property {string} sentence
 * @property {string} explanation
 * @property {string} summary
 */
/**
 * @typedef {object} Stream
 * @property {Terms} terms
 * @property {string} pin
 * @property {string} selection
 * @property {string} mechanism
 * @property {string} state in one word
 * @property {string} why it is in it
 * @property {number} population
 * @property {boolean} [population_follows] whether it is counted from the reports
 * @property {[number, number] | null} [population_interval] (0.9), if it is
 * @property {Record<string, number>} thresholds
 * @property {"token" | "public"} enrolment
 * @property {Promised[]} promises at each level of privacy, the stream's own first
 * @property {import("./versions.js").Version[]} versions of its terms, the first one first
 * @property {number} version that of `terms`, which are in force
 * @property {string[]} labels of all versions: those of the latest first; of an open vocabulary, the texts known
 * @property {import("./texts.js").Texts | null} texts of an open vocabulary
 * @property {{name: string, values: string[]}[]} attributes by which figures are broken down
 * @property {import("./unit.js").Unit} unit
 */
/**
 * Distinct devices that reported in the last window, at least, and how many there are.
 * @typedef {object} Devices
 * @property {number} heard
 * @property {number} [enrolled]
 * @property {number} [expected]
 * @property {number} [expected_low] the ends of an interval (0.9), if the collector counts the fleet
 * @property {number} [expected_high]
 * @property {Record<string, number>} [levels]
 */
/**
 * @typedef {object} Release
 * @property {number} t
 * @property {number} at_ms
 * @property {number[]} values
 * @property {number[]} variance
 * @property {number[]} [low]
 * @property {number[]} [high]
 * @property {boolean} fresh
 * @property {boolean} missed
 * @property {number} asked
 * @property {number} received
 * @property {Devices} [devices]
 * @property {string[]} [labels] of an open vocabulary: the texts that it lists
 * @property {{value: number, low: number, high: number}} [rest] what it does not list
 * @property {GroupFigures[]} [groups] of devices
 * @property {number} [heard_t] the last timestamp with a report; 0: there was none
 * @property {number} [terms_version] the version of its terms, if it is not the first
 */

/**
 * The figures of the devices that have the same value of an attribute.
 * @typedef {object} GroupFigures
 * @property {string} attribute
 * @property {string} value
 * @property {number} share of the reports in the last window
 * @property {number} devices heard in the last window
 * @property {number[]} values
 * @property {number[]} variance
 * @property {number[]} [low]
 * @property {number[]} [high]
 * @property {string[]} [merged] values that are too small to be shown by themselves
 */

/** @typedef {{version: number, values: number[], low: number[], high: number[]}} Revised by the labels of its version */
/**
 * A label went from one level to another at once.
 * @typedef {object} Change
 * @property {number} t the first timestamp after it; it may be any from `first_t` to `last_t`
 * @property {number} first_t
 * @property {number} last_t
 * @property {string} label
 * @property {number} size
 * @property {number} low
 * @property {number} high
 */

/** The collector said no, or nothing (status 0). */
export class Unavailable extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @param {string | undefined} token @returns {Record<string, string>} */
export const authorised = (token) => (token ? { Authorization: `Bearer ${token}` } : {});

const BUSY = 429; // the collector gives one address so many long reads at a time; there may be other tabs
const READS = 3;
const RETRIES = 5;
const MOST_SECONDS = 10;

/** The API is beside the page, also behind a proxy that serves both below a path. */
export const base = () => new URL("..", import.meta.url).pathname.replace(/\/$/, "");

/**
 * @param {string} path @param {string | undefined} token @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
const get = (path, token, signal) => call(path, token, { signal });

/**
 * @param {string} path @param {string | undefined} token
 * @param {{method?: string, content?: object, signal?: AbortSignal}} given
 * @returns {Promise<any>}
 */
async function call(path, token, { method = "GET", content, signal }, retries = RETRIES) {
  let response;
  try {
    response = await fetch(base() + path, {
      method,
      headers: {
        Accept: "application/json",
        ...(content ? { "Content-Type": "application/json" } : {}),
        ...authorised(token),
      },
      body: content && JSON.stringify(content),
      cache: "no-store",
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unavailable(0, "the collector does not answer");
  }
  if (response.status === BUSY && method === "GET" && retries) {
    const seconds = Number(response.headers.get("Retry-After")) || 1;
    await new Promise((done) => setTimeout(done, 1000 * Math.min(seconds, MOST_SECONDS) * (0.5 + Math.random())));
    return call(path, token, { signal }, retries - 1);
  }
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Unavailable(response.status, String(body?.detail ?? response.status));
  if (body === null && response.status !== 204) throw new Unavailable(0, "the collector's answer was cut off");
  return body;
}

let free = READS;
/** @type {(() => void)[]} */ const waiting = [];

/** A long read, in its turn. @param {string} path @param {string | undefined} token @param {AbortSignal} [signal] */
async function read(path, token, signal) {
  if (free) free -= 1;
  else await new Promise((done) => waiting.push(() => done(null)));
  try {
    return await get(path, token, signal);
  } finally {
    const next = waiting.shift();
    if (next) next();
    else free += 1;
  }
}

/** @param {string} name */
const at = (name) => `/v1/streams/${encodeURIComponent(name)}`;

/** The streams that this tab may read. @param {AbortSignal} [signal] @returns {Promise<Stream[]>} */
export async function streams(signal) {
  const { streams: described } = await get("/v1/streams", undefined, signal);
  const open = described.map(withUnit);
  const known = new Set(open.map((/** @type {Stream} */ one) => one.terms.stream));
  const more = new Set(sharedStreams());
  if (adminToken()) {
    for (const name of Object.keys(await allStatuses(signal))) more.add(name);
  }
  const hidden = [...more].filter((name) => !known.has(name));
  const found = await Promise.allSettled(hidden.map((name) => stream(name, signal)));
  return [...open, ...found.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []))];
}

/** @param {string} name @param {AbortSignal} [signal] @returns {Promise<Stream>} */
export const stream = async (name, signal) => withUnit(await get(at(name), tokenFor(name), signal));

/** @param {string} name the address of the page for participants */
export const noticeOf = (name) => `${base()}/privacy/${encodeURIComponent(name)}`;

/** @param {string} name @returns {Promise<import("./notice.js").Notice>} what participants are told */
export const notice = (name) => get(`/privacy/${encodeURIComponent(name)}`, tokenFor(name));

/** @param {string} name @param {AbortSignal} [signal] */
export const status = (name, signal) => get(`${at(name)}/status`, tokenFor(name), signal);

/** @param {string} name @param {AbortSignal} [signal] @returns {Promise<{alerts: import("./alerts.js").Alert[], changes: import("./alerts.js").Change[]}>} */
export const alerts = (name, signal) => read(`${at(name)}/alerts`, tokenFor(name), signal);

/**
 * One answer: the collector may give fewer, though there are more.
 * @param {string} name @param {number} since @param {number} limit @param {AbortSignal} [signal]
 * @returns {Promise<Release[]>}
 */
export async function releases(name, since, limit, signal) {
  const path = `${at(name)}/releases?since=${Math.max(since, 1)}&limit=${limit}`;
  return (await read(path, tokenFor(name), signal)).releases;
}

/**
 * All of them, in as many answers as it takes.
 * @param {string} name @param {number} from @param {number} to both included
 * @param {AbortSignal} [signal] @returns {Promise<Release[]>}
 */
export async function releasesBetween(name, from, to, signal) {
  /** @type {Release[]} */ const found = [];
  for (let since = from; since <= to; ) {
    const more = await releases(name, since, to - since + 1, signal);
    if (!more.length) break;
    for (const one of more) if (one.t <= to) found.push(one);
    since = more[more.length - 1].t + 1;
  }
  return found;
}

/**
 * Revised figures, by timestamp if there are any, and the changes among them.
 * @param {string} name @param {number} from @param {number} to both included
 * @param {AbortSignal} [signal]
 * @returns {Promise<{figures: Map<number, Revised>, changes: Change[]}>}
 */
export async function revisedBetween(name, from, to, signal) {
  /** @type {Map<number, Revised>} */ const figures = new Map();
  /** @type {Change[]} */ const changes = [];
  for (let since = Math.max(from, 1); since <= to; ) {
    const asked = `since=${since}&limit=${to - since + 1}`;
    const { releases: more } = await read(
      `${at(name)}/releases?${asked}&revised=true`,
      tokenFor(name),
      signal,
    );
    if (!more.length) break;
    for (const { t, terms_version: version = 1, revised: values, ...rest } of more)
      if (t <= to && values)
        figures.set(t, { version, values, low: rest.revised_low, high: rest.revised_high });
    const last = more[more.length - 1].t;
    const told = await read(
      `${at(name)}/changes?since=${since}&limit=${more.length}`,
      tokenFor(name),
      signal,
    );
    changes.push(...told.changes);
    since = last + 1;
  }
  return { figures, changes };
}

/**
 * What the reports of the last windows say of any text of an open vocabulary.
 * @param {string} name @param {string} text @param {AbortSignal} [signal]
 * @returns {Promise<{t: number, texts: {text: string, value: number, low: number, high: number}[]}>}
 */
export const figuresOf = (name, text, signal) =>
  get(`${at(name)}/texts?text=${encodeURIComponent(wellFormed(text))}`, tokenFor(name), signal);

/** A lone surrogate counts as a question mark, as on a device. @param {string} text */
const wellFormed = (text) => text.replaceAll(/\p{Surrogate}/gu, "?");

/** @param {string} name @returns {Promise<string>} a token that can be given away */
export const readToken = async (name) => (await get(`${at(name)}/share`, adminToken())).token;

/** @param {string} stream */
const silences = (stream) => `/v1/admin/silences/${encodeURIComponent(stream)}`;

/** Silence a rule for a time. @param {string} stream @param {string} rule @param {string} length */
export const silence = (stream, rule, length) =>
  call(silences(stream), adminToken(), { method: "POST", content: { rule, for: length } });

/** @param {string} stream @param {string} rule */
export const endSilence = (stream, rule) =>
  call(`${silences(stream)}/${encodeURIComponent(rule)}`, adminToken(), { method: "DELETE" });

/**
 * Pause or resume a stream.
 * @param {string} stream @param {boolean} paused
 * @returns {Promise<import("./condition.js").Condition>}
 */
export const setPaused = (stream, paused) =>
  call(`/v1/admin/streams/${encodeURIComponent(stream)}/${paused ? "pause" : "resume"}`, adminToken(), {
    method: "POST",
  });

/** @param {AbortSignal} [signal] @returns {Promise<Record<string, any>>} the status of each stream */
export const allStatuses = async (signal) =>
  (await get("/v1/admin/status", adminToken(), signal)).streams;

/**
 * @typedef {object} EnrolmentToken
 * @property {string} name
 * @property {string | null} stream null if it is valid for all
 * @property {number} made_ms
 * @property {number | null} expires_ms
 * @property {number | null} most_uses
 * @property {number} uses
 * @property {number | null} revoked_ms
 */
/** @param {AbortSignal} [signal] @returns {Promise<EnrolmentToken[]>} including those that have ended */
export const enrolmentTokens = async (signal) =>
  (await get("/v1/admin/tokens", adminToken(), signal)).tokens;

/** @param {string} name */
export const revokeToken = (name) =>
  call(`/v1/admin/tokens/${encodeURIComponent(name)}`, adminToken(), { method: "DELETE" });

/** @typedef {{number: number, at_ms: number, who: string, action: string, details: Record<string, unknown>}} LogEntry */
/** The whole admin log, in order. @param {AbortSignal} [signal] @returns {Promise<LogEntry[]>} */
export async function adminLog(signal) {
  /** @type {LogEntry[]} */ const found = [];
  for (;;) {
    const after = found.at(-1)?.number ?? 0;
    const { entries } = await get(`/v1/admin/log?after=${after}`, adminToken(), signal);
    if (!entries.length) return found;
    found.push(...entries);
  }
}

/** @param {string} token whether it is the admin's */
export const isAdmin = (token) => opens("/v1/admin/status", token);

/** @param {string} name @param {string} token whether it opens this stream */
export const isReader = (name, token) => opens(at(name), token);

/** @param {string} path @param {string} token @returns {Promise<boolean>} */
async function opens(path, token) {
  try {
    await get(path, token);
    return true;
  } catch (error) {
    // What a token does not open looks like what is not there.
    if (error instanceof Unavailable && [401, 404].includes(error.status)) return false;
    throw error;
  }
}

/** @param {string} name */
export const feedAddress = (name) => `${base()}${at(name)}/feed`;
