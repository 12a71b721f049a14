/**
 * A device's memory, and the contract of its stores.
 *
 * To read the memory, decide and commit is one transaction (`change`), in which every other page is
 * locked out. What it resolves with is on disk.
 */

import { randomBytes } from "./bytes.js";
import { newMark } from "./clock.js";
import { LARGEST_NANO } from "./odds.js";
import { DeviceError, LedgerUnusable } from "./problems.js";
import { LATEST_MS, whole } from "./terms.js";

export const FORMAT = 2;

/**
 * A debit with its report, or with none where the past is unknown.
 * @typedef {object} Entry
 * @property {number} t
 * @property {string} round
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
 * @property {Uint8Array} key
 * @property {"open" | "roster"} selection
 * @property {number} atMs
 */
/** @typedef {{code: string, times: number, lastMs: number, detail: string}} RefusalCount */
/**
 * @typedef {object} Memory
 * @property {number} format
 * @property {Uint8Array} number drawn by the device; the collector knows it by this
 * @property {Uint8Array} secret under which coins are tossed; never leaves
 * @property {boolean} first whether an installer said that there is no past; until enrolment
 * @property {import("./clock.js").Mark} own
 * @property {number | null} forgottenMs the newest own time whose debits were left out
 * @property {number} commits what a witness counts
 * @property {Enrolment | null} enrolment
 * @property {Entry[]} entries
 * @property {RefusalCount[]} refusals
 */
/**
 * @typedef {object} Store
 * @property {string} name
 * @property {(memory: Memory) => Promise<void>} create keeps a new memory; refuses if there is one
 * @property {() => Promise<Memory>} load
 * @property {<T>(act: (change: Change) => T) => Promise<T>} change calls `act`, which must not
 *   wait, with the memory; if it fails, it may still be on disk: send nothing
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

/** @param {boolean} first @param {import("./clock.js").Look} look @returns {Memory} own time begins */
export const newMemory = (first, look) => ({
  format: FORMAT,
  number: randomBytes(16),
  secret: randomBytes(32),
  first,
  own: newMark(0, look),
  forgottenMs: null,
  commits: 0,
  enrolment: null,
  entries: [],
  refusals: [],
});

/** @param {Memory} memory whether it is one of release 0.1.0 */
const isOfFirstRelease = ({ format }) => format === undefined;

/** @param {any} memory whether its debits, and the times that they hang on, can be such as were stored */
export function isSound({ format, own, forgottenMs, entries }) {
  const within = (/** @type {unknown} */ ms, least = 0, most = LATEST_MS) =>
    typeof ms === "number" && ms >= least && ms <= most;
  return (
    format === FORMAT &&
    within(own?.ownMs) &&
    typeof own.id === "string" &&
    within(own.look?.wallMs, -LATEST_MS) &&
    within(own.look.steadyMs, -LATEST_MS) &&
    (forgottenMs === null || within(forgottenMs, 0, own.ownMs)) &&
    Array.isArray(entries) &&
    entries.every((one) => within(one?.ownMs, 0, own.ownMs) && whole(one.nano, 1, LARGEST_NANO))
  );
}

/**
 * Return a memory of release 0.1.0, or one that is not sound, in this format. Own time begins anew,
 * debits are left out, and the caller counts everything as spent: those of 0.1.0 were entered by
 * label time, and more than they say may have left.
 * @param {any} memory @param {import("./clock.js").Look} look @returns {Memory}
 */
export function takenOver({ number, secret, commits, enrolment, refusals }, look) {
  if (enrolment) delete enrolment.offsetMs;
  const counts = Array.isArray(refusals) ? refusals : [];
  return { ...newMemory(false, look), number, secret, commits, enrolment, refusals: counts };
}

/** @param {Memory | null | undefined} memory @param {string} name @returns {Memory} */
export function existing(memory, name) {
  if (!memory) throw new LedgerUnusable("ledger-missing", { file: name });
  if (isOfFirstRelease(memory) || memory.format === FORMAT) return memory;
  const what = `has format ${memory.format}, and this program knows ${FORMAT}`;
  throw new LedgerUnusable("ledger-file", { file: name, what });
}

/** A store that forgets everything with the page: for tests. @implements {Store} */
export class MemoryStore {
  /** @type {Memory | null} */ memory = null;
  vouchedFor = true;

  /** @param {string} [name] */
  constructor(name = "memory") {
    this.name = name;
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
}
