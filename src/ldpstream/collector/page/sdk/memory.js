/**
 * A device's memory, and the contract of its stores.
 *
 * Every change is one transaction on the memory as the caller knows it (`commits`): if another page
 * has written meanwhile it fails with `LedgerMoved`. When the promise resolves, it is on disk.
 */

import { randomBytes } from "./bytes.js";
import { LedgerMoved } from "./problems.js";

/**
 * A debit with its report, or with none where the past is unknown.
 * @typedef {{t: number, round: string, nano: number, report: Uint8Array | null, atMs: number}} Entry
 */
/**
 * What a collector and this device agreed on.
 * @typedef {object} Enrolment
 * @property {string} url
 * @property {string} terms canonical JSON
 * @property {Uint8Array} key
 * @property {"open" | "roster"} selection
 * @property {number} offsetMs
 * @property {number} atMs
 */
/** @typedef {{code: string, times: number, lastMs: number, detail: string}} RefusalCount */
/**
 * @typedef {object} Memory
 * @property {Uint8Array} number drawn by the device; the collector knows it by this
 * @property {Uint8Array} secret under which coins are tossed; never leaves
 * @property {number} commits
 * @property {Enrolment | null} enrolment
 * @property {Entry[]} entries
 * @property {RefusalCount[]} refusals
 */
/**
 * @typedef {object} Store
 * @property {string} name
 * @property {() => Promise<Memory>} load makes the memory if there is none
 * @property {() => Promise<boolean>} isVouchedFor whether it is the one last written
 *   (a new one: whether there never was another)
 * @property {(commits: number, change: (memory: Memory) => void) => Promise<number>} commit
 *   applies a change, all or nothing; gives the new number of commits
 */

/** @returns {Memory} a device that was never enrolled */
export const newMemory = () => ({
  number: randomBytes(16),
  secret: randomBytes(32),
  commits: 0,
  enrolment: null,
  entries: [],
  refusals: [],
});

/**
 * What every store does inside its transaction.
 * @param {Memory} memory @param {number} commits @param {(memory: Memory) => void} change
 * @param {string} name
 */
export function applyChange(memory, commits, change, name) {
  if (memory.commits !== commits) throw new LedgerMoved("ledger-moved", { file: name });
  change(memory);
  memory.commits += 1;
}

/** A store that forgets everything with the page: for tests. @implements {Store} */
export class MemoryStore {
  /** @param {string} [name] */
  constructor(name = "memory") {
    this.name = name;
    /** @type {Memory} */
    this.memory = newMemory();
  }

  async load() {
    return structuredClone(this.memory);
  }

  async isVouchedFor() {
    return true;
  }

  /** @param {number} commits @param {(memory: Memory) => void} change */
  async commit(commits, change) {
    const draft = structuredClone(this.memory);
    applyChange(draft, commits, change, this.name);
    this.memory = draft;
    return draft.commits;
  }
}
