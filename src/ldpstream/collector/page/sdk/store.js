/**
 * A device's memory, and the contract of its stores.
 *
 * To read the memory, decide and commit is one transaction (`change`), in which every other page or
 * process is locked out. What it resolves with is on disk.
 */

import { randomBytes } from "./bytes.js";
import { newMark, pageClock } from "./clock.js";
import { LARGEST_NANO } from "./odds.js";
import { DeviceError, LedgerUnusable } from "./problems.js";
import { LATEST_MS, whole } from "./wholes.js";

export const FORMAT = 3;

/**
 * A debit with its report; with none where the past is unknown, or its stream was left.
 * @typedef {object} Entry
 * @property {number} t 0 where the past is unknown, or its stream was left
 * @property {string} round "" where the past is unknown
 * @property {number} nano
 * @property {Uint8Array | null} report
 * @property {number} ownMs
 * @property {number} atMs
 */
/**
 * What a collector and this device agreed on.
 * @typedef {object} Enrolment
 * @property {string} url
 * @property {string} terms canonical JSON
 * @property {Uint8Array} number that the collector knows the device by, in this stream
 * @property {Uint8Array} key
 * @property {number} atMs
 * @property {boolean} doubtful whether reports may have left under it that this memory does not know of
 */
/** @typedef {{code: string, times: number, lastMs: number, detail: string}} RefusalCount */
/**
 * @typedef {object} Memory
 * @property {number} format
 * @property {Uint8Array} secret of coins, moments and numbers; never leaves
 * @property {number} rejoins how often the device has left a stream
 * @property {boolean} pastKnown whether no debits are missing: an installer said so, or it has left
 * @property {import("./clock.js").Mark} own
 * @property {number | null} forgottenMs the newest own time whose debits were left out
 * @property {number} commits what a witness counts
 * @property {Enrolment | null} enrolment
 * @property {Required<import("./ledger.js").Promised>[]} ended of streams that were left
 * @property {Entry[]} entries
 * @property {RefusalCount[]} refusals
 */
/**
 * @typedef {object} Store
 * @property {string} name
 * @property {import("./clock.js").Clock} clock by which a device that lives here counts time
 * @property {(memory: Memory) => Promise<void>} create keeps a new memory; refuses if there is one
 * @property {() => Promise<Memory>} load
 * @property {<T>(act: (change: Change) => T) => Promise<T>} change calls `act`, which must not
 *   wait, with the memory; if it fails, it may still be on disk: send nothing
 * @property {() => Promise<void>} close lets go of it; whoever uses it again opens it again
 */

/** A transaction under way, alone on the memory. */
export class Change {
  /** @param {Memory} memory may be changed @param {boolean} vouchedFor whether it is no older copy */
  constructor(memory, vouchedFor) {
    this.memory = memory;
    this.vouchedFor = vouchedFor;
    /** Whether there is something to commit. */
    this.made = false;
  }
}

/** @param {boolean} pastKnown @param {import("./clock.js").Look} look @returns {Memory} own time begins */
export const newMemory = (pastKnown, look) => ({
  format: FORMAT,
  secret: randomBytes(32),
  rejoins: 0,
  pastKnown,
  own: newMark(0, look),
  forgottenMs: null,
  commits: 0,
  enrolment: null,
  ended: [],
  entries: [],
  refusals: [],
});

/** @param {unknown} ms @param {number} [least] @param {number} [most] */
const within = (ms, least = 0, most = LATEST_MS) =>
  typeof ms === "number" && ms >= least && ms <= most;

/** @param {any} promise whether it can be one that has ended */
const isEnded = (promise) =>
  whole(promise?.epsilonNano, 1, LARGEST_NANO) &&
  whole(promise.span, 1, LATEST_MS) &&
  within(promise.until, 0, 2 * LATEST_MS);

/** @param {any} memory whether its debits, and the times that they hang on, can be such as were stored */
export function isSound({ format, rejoins, own, forgottenMs, ended, entries }) {
  return (
    format === FORMAT &&
    whole(rejoins, 0, Number.MAX_SAFE_INTEGER) &&
    within(own?.ownMs) &&
    typeof own.id === "string" &&
    within(own.look?.wallMs, -LATEST_MS) &&
    within(own.look.steadyMs, -LATEST_MS) &&
    (forgottenMs === null || within(forgottenMs, 0, own.ownMs)) &&
    Array.isArray(ended) &&
    ended.every(isEnded) &&
    Array.isArray(entries) &&
    entries.every((one) => within(one?.ownMs, 0, own.ownMs) && whole(one.nano, 1, LARGEST_NANO))
  );
}

/**
 * Return a memory of an earlier format, or one that is not sound, in this format. Own time begins
 * anew, and everything counts as spent. Keys of earlier formats are not valid any more: such a device
 * has left its stream, and enrols again.
 * @param {any} memory @param {import("./clock.js").Look} look @returns {Memory}
 */
export function takenOver({ format, secret, rejoins, commits, enrolment, refusals, ended }, look) {
  const made = newMemory(false, look);
  const counts = Array.isArray(refusals) ? refusals : [];
  const current = format === FORMAT;
  const promises = current && Array.isArray(ended) ? ended.filter(isEnded) : [];
  const left = enrolment && !current ? endedBy(enrolment.terms) : null;
  for (const { epsilonNano, span } of left ? [left] : promises) {
    made.ended.push({ epsilonNano, span, until: span });
    made.entries.push({ t: 0, round: "", nano: epsilonNano, report: null, ownMs: 0, atMs: 0 });
  }
  return {
    ...made,
    forgottenMs: 0, // binds promises of any size
    secret,
    rejoins: whole(rejoins, 0, Number.MAX_SAFE_INTEGER) ? rejoins : 0,
    commits,
    enrolment: current ? enrolment : null,
    refusals: counts,
  };
}

/** @param {string} terms of an earlier format @returns {import("./ledger.js").Promised | null} */
function endedBy(terms) {
  try {
    const { epsilon_nano: epsilonNano, window, interval_ms: intervalMs } = JSON.parse(terms);
    const promise = { epsilonNano, span: window * intervalMs, until: 0 };
    return isEnded(promise) ? promise : null;
  } catch {
    return null; // a new enrolment counts as spent all the same
  }
}

/** @param {Memory | null | undefined} memory @param {string} name @returns {Memory} */
export function existing(memory, name) {
  if (!memory) throw new LedgerUnusable("ledger-missing", { file: name });
  // Release 0.1.0 wrote none.
  if ((memory.format ?? 1) <= FORMAT) return memory;
  const what = `has format ${memory.format}, and this program knows ${FORMAT}`;
  throw new LedgerUnusable("ledger-file", { file: name, what });
}

/** A store that forgets everything with the page: for tests. @implements {Store} */
export class MemoryStore {
  /** @type {Memory | null} */ #memory = null;
  vouchedFor = true;
  clock = pageClock;

  /** @param {string} [name] */
  constructor(name = "memory") {
    this.name = name;
  }

  /** Not a field: neither JSON nor a console shows the secrets in it. */
  get memory() {
    return this.#memory;
  }

  set memory(memory) {
    this.#memory = memory;
  }

  /** @param {Memory} memory */
  async create(memory) {
    if (this.memory) throw new DeviceError("ledger-exists", { file: this.name });
    this.memory = structuredClone(memory);
  }

  async load() {
    return structuredClone(existing(this.memory, this.name));
  }

  /** @template T @param {(change: Change) => T} act */
  async change(act) {
    const draft = structuredClone(existing(this.memory, this.name));
    const change = new Change(draft, this.vouchedFor);
    const result = act(change);
    if (change.made) [this.memory, this.vouchedFor] = [change.memory, true];
    return result;
  }

  async close() {
    // There is nothing to let go of.
  }
}
