/** What a collector announces, read with suspicion. */

import { LARGEST_NANO } from "./odds.js";
import { Refused, shown } from "./problems.js";
import { LATEST_MS, isObject, whole } from "./wholes.js";

const MOST_ROUNDS = 64;
const ROUND = /^[a-z0-9][a-z0-9-]{0,63}$/;
// Numbers beyond this are not exact in JavaScript. Of a rate's, the Python SDK takes up to 2^63.
const MOST = Number.MAX_SAFE_INTEGER;

/**
 * An ask: a report at t, with this epsilon, of a share `rate` of the devices.
 * @typedef {object} Round
 * @property {string} name
 * @property {number} t
 * @property {number} epsilonNano
 * @property {number} deadlineMs
 * @property {[number, number]} rate
 */

/**
 * The rounds that are open now, and what time it is by the collector's clock, if it says so.
 * @typedef {object} Announcement
 * @property {number} serial
 * @property {string} pin
 * @property {(Round | Refused)[]} rounds
 * @property {number | null} nowMs says which timestamp it is; no budget depends on it
 */

/** @param {{t: number, name: string}} round @returns {string} what makes it the same round */
export const keyOf = (round) => `${round.t} ${round.name}`;

/** @type {Record<string, (value: any) => boolean>} */
const CHECKS = {
  round: (name) => typeof name === "string" && ROUND.test(name),
  t: (t) => whole(t, 1, LATEST_MS),
  epsilon_nano: (nano) => whole(nano, 1, LARGEST_NANO),
  deadline_ms: (ms) => whole(ms, 0, LATEST_MS),
  rate: (rate) =>
    Array.isArray(rate) &&
    rate.length === 2 &&
    whole(rate[1], 1, MOST) &&
    whole(rate[0], 0, rate[1]),
};

/** @param {unknown} sent @returns {Round | Refused} one bad round does not take good ones with it */
export function readRound(sent) {
  if (!isObject(sent)) return new Refused("round-malformed", { field: "form", given: shown(sent) });
  for (const [field, holds] of Object.entries(CHECKS)) {
    if (!holds(sent[field])) {
      const given = shown(sent[field] ?? "missing");
      return new Refused("round-malformed", { field, given });
    }
  }
  return Object.freeze({
    name: sent.round,
    t: sent.t,
    epsilonNano: sent.epsilon_nano,
    deadlineMs: sent.deadline_ms,
    rate: /** @type {[number, number]} */ ([...sent.rate]),
  });
}

/** @param {unknown} sent @returns {Announcement} */
export function readAnnouncement(sent) {
  if (
    !isObject(sent) ||
    !whole(sent.serial, 0, MOST) ||
    typeof sent.pin !== "string" ||
    !Array.isArray(sent.rounds) ||
    sent.rounds.length > MOST_ROUNDS
  ) {
    throw new Refused("answer-malformed", { what: "rounds", given: shown(sent) });
  }
  const nowMs = whole(sent.now_ms, 0, LATEST_MS) ? sent.now_ms : null;
  return { serial: sent.serial, pin: sent.pin, rounds: sent.rounds.map(readRound), nowMs };
}
