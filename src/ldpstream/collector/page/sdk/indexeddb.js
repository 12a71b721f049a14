/**
 * A device's memory in IndexedDB: one database a device, one record in it, written with strict
 * durability. A record is small: the entries of one window.
 *
 * Its witness is a counter in localStorage, which notices a database that was deleted or put back
 * by itself. It does not notice a whole browser profile that was rolled back.
 */

import { LedgerUnusable } from "./problems.js";
import { applyChange, newMemory } from "./memory.js";

/** @typedef {import("./memory.js").Memory} Memory */

const TABLE = "memory";
const KEY = "device";

/** @typedef {import("./memory.js").Store} Store */

/** @implements {Store} */
export class IndexedDbStore {
  /** @param {string} name of the database */
  constructor(name) {
    this.name = name;
    /** @type {Promise<IDBDatabase> | null} */
    this.opening = null;
  }

  async load() {
    return this.#transact((memory) => memory, true);
  }

  async isVouchedFor() {
    const { commits } = await this.load();
    const counted = localStorage.getItem(this.name);
    if (commits === 0 || counted === null) return commits === 0 && counted === null;
    // A crash between commit and counter leaves the ledger ahead: nothing was sent from there.
    return commits >= Number(counted);
  }

  /** @param {number} commits @param {(memory: Memory) => void} change */
  async commit(commits, change) {
    const after = await this.#transact((memory) => applyChange(memory, commits, change, this.name));
    this.#witness(after.commits);
    return after.commits;
  }

  /** @param {number} commits */
  #witness(commits) {
    try {
      const counted = Number(localStorage.getItem(this.name));
      localStorage.setItem(this.name, String(Math.max(commits, counted)));
    } catch (error) {
      throw new LedgerUnusable("ledger-file", { file: this.name, what: String(error) });
    }
  }

  /**
   * Read the record, let `act` change it, write it; resolve when that is on disk.
   * @param {(memory: Memory) => unknown} act
   * @param {boolean} [reading] write only if there was no record
   * @returns {Promise<Memory>}
   */
  async #transact(act, reading = false) {
    const database = await this.#open();
    return new Promise((resolve, reject) => {
      /** @type {Memory} */ let memory;
      /** @type {unknown} */ let fault = null;
      const transaction = database.transaction(TABLE, "readwrite", { durability: "strict" });
      const table = transaction.objectStore(TABLE);
      const request = table.get(KEY);
      request.onsuccess = () => {
        try {
          memory = request.result ?? newMemory();
          act(memory);
          if (!reading || request.result === undefined) table.put(memory, KEY);
        } catch (error) {
          fault = error;
          transaction.abort();
        }
      };
      transaction.oncomplete = () => resolve(memory);
      transaction.onabort = () => reject(fault ?? this.#unusable(transaction.error));
    });
  }

  #open() {
    this.opening ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(this.name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
      request.onerror = () => reject(this.#unusable(request.error));
      request.onsuccess = () => {
        request.result.onversionchange = () => this.close();
        resolve(request.result);
      };
    });
    this.opening.catch(() => (this.opening = null));
    return this.opening;
  }

  /** @param {unknown} error */
  #unusable(error) {
    return new LedgerUnusable("ledger-file", { file: this.name, what: String(error) });
  }

  async close() {
    const database = await this.opening;
    this.opening = null;
    database?.close();
  }
}
