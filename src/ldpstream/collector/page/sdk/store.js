/**
 * The contract of a device's stores.
 *
 * To read the memory, decide and commit is one transaction (`change`), in which every other page or
 * process is locked out. What it resolves with is on disk.
 */

import { pageClock } from "./clock.js";
import { FORMAT } from "./memory.js";
import { DeviceError, LedgerUnusable } from "./problems.js";

/** @typedef {import("./memory.js").Memory} Memory */
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
