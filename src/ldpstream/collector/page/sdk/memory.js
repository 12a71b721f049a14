/**
 * All that a device remembers: its enrolments, what they have spent, and the limit over all of them.
 *
 * A debit, a promise that has ended and a forgotten moment each say whose they are: of the enrolment with
 * this id or, once that was left, of every enrolment that is made later. Ids only grow. So to leave a
 * stream and join it again, or another one, is no way around what was spent.
 */

import { randomBytes } from "./bytes.js";
import { newMark } from "./clock.js";
import { LARGEST_NANO } from "./odds.js";
import { NO_POLICY } from "./succession.js";
import { LATEST_MS, isObject, whole } from "./wholes.js";

export const FORMAT = 4;
/** That of release 0.2.0: one enrolment, to which everything belongs. */
const SINGLE = 3;
/** The id of no enrolment: what has it, and was left, counts for all of them. */
const NOBODY = 0;
const MOST = Number.MAX_SAFE_INTEGER;

/**
 * Whose something is: of this enrolment or, if it was left, of that with this id and all later ones.
 * @typedef {{enrolment: number, left: boolean}} Owned
 */
/**
 * A debit with its report; with none where the past is unknown, or its stream was left.
 * @typedef {Owned & Spent} Entry
 */
/**
 * @typedef {object} Spent
 * @property {number} t 0 where the past is unknown, or its stream was left
 * @property {string} round "" where the past is unknown
 * @property {number} version of the terms that it was made under
 * @property {number} nano
 * @property {Uint8Array | null} report
 * @property {number} ownMs
 * @property {number} atMs
 */
/** A promise that binds until then. @typedef {Owned & Required<import("./ledger.js").Promised>} Ended */
/** The newest own time whose debits were left out. @typedef {Owned & {ownMs: number}} Forgotten */
/** @typedef {Owned & {pin: string}} Former */
/**
 * What a collector and this device agreed on.
 * @typedef {object} Enrolment
 * @property {number} id
 * @property {string} url
 * @property {string} terms canonical JSON
 * @property {string} level of privacy; "": the stream's own
 * @property {Successor | null} successor terms that the device has accepted, for timestamps from their start
 *   on; those of before are kept beside them until others follow, since label time may be wrong
 * @property {Record<string, string>} renamed what labels of earlier terms are called in those in force
 * @property {string[]} earlier pins of terms that it has had, and of those that they followed
 * @property {Uint8Array} number that the collector knows the device by, in this stream
 * @property {Uint8Array} key that signs
 * @property {Uint8Array} slotKey that slots and moments come from: it outlives `key`
 * @property {Keys | null} [otherKeys] of before or after a renewal, while it is not known which are good
 * @property {Uint8Array} secret of coins, and of what was shown to enrol; never leaves
 * @property {number} rejoins as they were when it was shown
 * @property {number} atMs
 * @property {Agreed} policy which successors the application agrees to
 * @property {number} reserveNano how much of the limit is kept free for this stream
 * @property {boolean} doubtful whether reports may have left under it that this memory does not know of
 */
/** A policy as it is stored. @typedef {import("./succession.js").Agreed} Agreed */
/** @typedef {{terms: string}} Successor */
/** @typedef {{key: Uint8Array, slotKey: Uint8Array}} Keys */
/** @typedef {{enrolment: number, code: string, times: number, lastMs: number, detail: string}} RefusalCount */
/**
 * At most so much in any span so long, over all streams. One that was loosened binds until a span later.
 * @typedef {import("./ledger.js").Promised} Bound
 */
/**
 * @typedef {object} Memory
 * @property {number} format
 * @property {Uint8Array} secret from which those of new enrolments are derived; never leaves
 * @property {number} rejoins how often the device has left a stream
 * @property {number} nextId of an enrolment
 * @property {boolean} pastKnown whether no debits are missing, or a forgotten moment stands for them
 * @property {import("./clock.js").Mark} own
 * @property {number} commits what a witness counts
 * @property {Enrolment[]} enrolments
 * @property {Entry[]} entries
 * @property {Ended[]} ended of streams that were left, of levels that were changed, and of successors: these
 *   bind spans that hold a report under them
 * @property {Forgotten[]} forgotten
 * @property {Former[]} former terms of streams that were left: who has not inherited the debits may not have them
 * @property {Bound[]} limits over all streams; that in force has no end
 * @property {RefusalCount[]} refusals
 */

/** @param {boolean} pastKnown @param {import("./clock.js").Look} look @returns {Memory} own time begins */
export const newMemory = (pastKnown, look) => ({
  format: FORMAT,
  secret: randomBytes(32),
  rejoins: 0,
  nextId: 1,
  pastKnown,
  own: newMark(0, look),
  commits: 0,
  enrolments: [],
  entries: [],
  ended: [],
  forgotten: [],
  former: [],
  limits: [],
  refusals: [],
});

/** @param {Owned} owned @param {number} id whether it counts for the enrolment with this id */
export const countsFor = ({ enrolment, left }, id) => (left ? enrolment <= id : enrolment === id);

/** @param {Memory} memory @param {(owned: Owned) => boolean} counts @returns {number | null} the newest */
export function forgottenOf({ forgotten }, counts) {
  const moments = forgotten.filter(counts).map(({ ownMs }) => ownMs);
  return moments.length ? Math.max(...moments) : null;
}

/** @param {Memory} memory @returns {import("./ledger.js").Promised | undefined} the limit over all streams */
export const inForce = ({ limits }) => limits.find(({ until }) => until === undefined);

/** @param {Memory} memory @returns {number} nano-epsilon of the limit that are kept free for streams */
export const reservedIn = ({ enrolments }) => enrolments.reduce((sum, { reserveNano }) => sum + reserveNano, 0);

/**
 * Remember that debits up to this moment are not known any more.
 * @param {Memory} memory @param {Owned} whose @param {number} ownMs
 */
export function forget(memory, { enrolment, left }, ownMs) {
  const known = memory.forgotten.find((one) => one.enrolment === enrolment && one.left === left);
  if (known) known.ownMs = Math.max(known.ownMs, ownMs);
  else memory.forgotten.push({ enrolment, left, ownMs });
}

/** Remember that anything may have left up to this moment, in whichever stream. */
/** @param {Memory} memory @param {number} ownMs */
export const forgetAll = (memory, ownMs) => forget(memory, { enrolment: NOBODY, left: true }, ownMs);

/**
 * Hand what an enrolment has spent, promised and forgotten over to those that are made later.
 * @param {Memory} memory @param {number} id of the enrolment that is left @param {string[]} pins it has had
 */
export function handOver(memory, id, pins) {
  const heir = { enrolment: memory.nextId, left: true };
  const own = (/** @type {Owned} */ one) => !one.left && one.enrolment === id;
  memory.entries = memory.entries.map((one) => {
    const { round, version, nano, ownMs } = one;
    const kept = { ...heir, t: 0, round: round && LEFT, version, nano, report: null, ownMs, atMs: 0 };
    return own(one) ? kept : one;
  });
  memory.ended = memory.ended.map((one) => (own(one) ? { ...one, ...heir } : one));
  const moment = forgottenOf(memory, own);
  memory.forgotten = memory.forgotten.filter((one) => !own(one));
  if (moment !== null) forget(memory, heir, moment);
  joinForgotten(memory);
  const kept = memory.former.filter(({ pin }) => !pins.includes(pin));
  const isDenied = (/** @type {Former} */ one) => memory.enrolments.some((other) => !countsFor(one, other.id));
  memory.former = [...kept, ...pins.map((pin) => ({ ...heir, pin }))].filter(isDenied);
}

/** In place of the name of a round: a debit of a stream that was left. */
const LEFT = "left";

/** Make one of the forgotten moments that count for the same enrolments: there is no end of leaving. */
/** @param {Memory} memory */
function joinForgotten(memory) {
  const seenBy = (/** @type {Forgotten} */ one) =>
    one.left && one.enrolment !== NOBODY
      ? memory.enrolments.filter(({ id }) => countsFor(one, id)).length
      : -1;
  const all = memory.forgotten;
  memory.forgotten = all.filter((one) => seenBy(one) < 0);
  for (const one of all.filter((other) => seenBy(other) >= 0)) {
    const same = memory.forgotten.find((other) => seenBy(other) === seenBy(one));
    if (!same) memory.forgotten.push(one);
    else {
      same.enrolment = Math.max(same.enrolment, one.enrolment);
      same.ownMs = Math.max(same.ownMs, one.ownMs);
    }
  }
}

/** @param {unknown} ms @param {number} [least] @param {number} [most] */
const within = (ms, least = 0, most = LATEST_MS) =>
  typeof ms === "number" && ms >= least && ms <= most;

/** @param {any} promise whether it can be one that binds until some moment, if it has one */
const isBound = (promise) =>
  whole(promise?.epsilonNano, 1, MOST) &&
  whole(promise.span, 1, LATEST_MS) &&
  (promise.until === undefined || within(promise.until, 0, 2 * LATEST_MS));

/** @param {any} one whether it says whose it is */
const isOwned = (one) => whole(one?.enrolment, 0, MOST) && typeof one.left === "boolean";

/** @param {any} promise */
const isEnded = (promise) =>
  isOwned(promise) && promise.until !== undefined && isBound(promise);

/** @param {any} one @param {number} lastId */
const isEnrolment = (one, lastId) => whole(one?.id, 1, lastId) && whole(one.reserveNano, 0, MOST);

/** @param {any} memory whether its debits, and the times that they hang on, can be such as were stored */
function isSound({ rejoins, nextId, own, enrolments, entries, ended, forgotten, former, limits }) {
  const ofPast = (/** @type {any} */ one) => isOwned(one) && within(one.ownMs, 0, own.ownMs);
  return (
    whole(rejoins, 0, MOST) &&
    whole(nextId, 1, MOST) &&
    within(own?.ownMs) &&
    typeof own.id === "string" &&
    within(own.look?.wallMs, -LATEST_MS) &&
    within(own.look.steadyMs, -LATEST_MS) &&
    [enrolments, entries, ended, forgotten, former, limits].every(Array.isArray) &&
    enrolments.every((/** @type {any} */ one) => isEnrolment(one, nextId - 1)) &&
    entries.every((/** @type {any} */ one) => ofPast(one) && whole(one.nano, 1, LARGEST_NANO)) &&
    ended.every(isEnded) &&
    forgotten.every(ofPast) &&
    former.every((/** @type {any} */ one) => isOwned(one) && typeof one.pin === "string") &&
    limits.every(isBound)
  );
}

/**
 * Return a stored memory in this format, and whether it could be taken as it was. If not, own time begins
 * anew, and everything counts as spent.
 * @param {any} memory @param {import("./clock.js").Look} look @returns {{memory: Memory, sound: boolean}}
 */
export function current(memory, look) {
  const several = memory.format === SINGLE ? severalOf(memory) : memory;
  // Before streams that were left were remembered by their pins.
  const lifted = several.format === FORMAT && !("former" in several) ? { ...several, former: [] } : several;
  const sound = lifted.format === FORMAT && isSound(lifted);
  return { memory: sound ? lifted : begunAnew(lifted, look), sound };
}

/**
 * Return a memory of release 0.2.0 in this format: everything in it is of its one enrolment, or was left
 * before. Which of the two a forgotten moment is, it does not say: it counts for all.
 * @param {any} memory @returns {any}
 */
function severalOf({ enrolment, entries, ended, forgottenMs, refusals, ...rest }) {
  const id = 1;
  const all = { enrolment: id, left: true };
  const own = { enrolment: id, left: !enrolment };
  const tagged = (/** @type {any} */ list, /** @type {(one: any) => Owned} */ whose) =>
    Array.isArray(list) ? list.map((one) => isObject(one) && { ...whose(one), ...one }) : list;
  return {
    ...newMemory(false, rest.own?.look),
    ...rest,
    format: FORMAT,
    secret: enrolment ? randomBytes(32) : rest.secret,
    nextId: enrolment ? id + 1 : id,
    pastKnown: enrolment ? true : rest.pastKnown, // a forgotten moment stands for what is missing
    enrolments: enrolment ? [{ id, ...withoutLevels(enrolment), ...shownWith(rest) }] : [],
    entries: tagged(entries, ({ t }) => ({ ...(t ? own : all), version: 1 })),
    ended: tagged(ended, () => all),
    forgotten: forgottenMs === null ? [] : [{ enrolment: NOBODY, left: true, ownMs: forgottenMs }],
    refusals: tagged(refusals, () => ({ enrolment: enrolment ? id : NOBODY, left: false })),
  };
}

/** @param {any} memory what an enrolment of release 0.2.0 was made with */
const shownWith = ({ secret, rejoins }) => ({ secret, rejoins });

/** @param {any} enrolment of release 0.2.0 */
const withoutLevels = (enrolment) => ({
  ...enrolment,
  level: "",
  successor: null,
  renamed: {},
  earlier: [],
  slotKey: enrolment.key,
  policy: NO_POLICY,
  reserveNano: 0,
});

/**
 * Return a memory that is not sound, or of a format before that of release 0.2.0, as one whose past is
 * unknown. Keys of those formats are not valid any more: such a device has left its stream.
 * @param {any} memory @param {import("./clock.js").Look} look @returns {Memory}
 */
function begunAnew(memory, look) {
  const { format, secret, rejoins, commits, limits } = memory;
  const isCurrent = format === FORMAT;
  const made = {
    ...newMemory(false, look),
    secret,
    rejoins: whole(rejoins, 0, MOST) ? rejoins : 0,
    commits,
    enrolments: isCurrent ? enrolmentsIn(memory) : [],
    refusals: Array.isArray(memory.refusals)
      ? memory.refusals.map((/** @type {any} */ one) => ({ enrolment: NOBODY, ...one }))
      : [],
    limits: isCurrent && Array.isArray(limits) ? limits.filter(isBound) : [],
  };
  const ids = made.enrolments.map(({ id }) => id);
  // No id is given out twice, as far as that is known: something may still bear it.
  made.nextId = Math.max(whole(memory.nextId, 1, LATEST_MS) ? memory.nextId : 1, ...ids.map((id) => id + 1));
  made.limits = made.limits.map((one) => ("until" in one ? { ...one, until: one.span } : one));
  const ended = isCurrent && Array.isArray(memory.ended) ? memory.ended.filter(isEnded) : [];
  const left = isCurrent ? null : endedBy(memory.enrolment?.terms);
  for (const promise of left ? [left] : ended) {
    const { epsilonNano, span, ...owned } = { enrolment: NOBODY, left: true, ...promise };
    const { enrolment, left: wasLeft } = owned;
    const isOwn = !wasLeft && ids.includes(enrolment);
    // What was left counts for all: which of them are later is not certain any more.
    const whose = isOwn ? { enrolment, left: false } : { enrolment: NOBODY, left: true };
    made.ended.push({ ...whose, epsilonNano, span, until: span });
    const spent = { t: 0, round: "", version: 1, nano: epsilonNano, report: null, ownMs: 0, atMs: 0 };
    made.entries.push({ ...whose, ...spent });
  }
  forgetAll(made, 0); // binds promises of any size
  return made;
}

/** @param {any} memory @returns {Enrolment[]} those that can be gone on with */
const enrolmentsIn = ({ enrolments }) =>
  (Array.isArray(enrolments) ? enrolments : [])
    .filter((one) => whole(one?.id, 1, MOST))
    .map((one) => (isEnrolment(one, MOST) ? one : { ...one, reserveNano: 0 }));

/** @param {string} terms of an earlier format @returns {import("./ledger.js").Promised | null} */
function endedBy(terms) {
  try {
    const { epsilon_nano: epsilonNano, window, interval_ms: intervalMs } = JSON.parse(terms);
    const promise = { epsilonNano, span: window * intervalMs };
    return isBound(promise) ? promise : null;
  } catch {
    return null; // a new enrolment counts as spent all the same
  }
}
