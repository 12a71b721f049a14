/**
 * A device's memory in IndexedDB: one database a device, one record in it, written with strict
 * durability. A record is small: the entries of one window.
 *
 * Its witness is a counter of commits in localStorage, which notices a database that was deleted or
 * put back by itself. It does not notice a whole browser profile that was rolled back.
 */

import { DeviceError, LedgerUnusable } from "./problems.js";
import { Change, FORMAT, existing } from "./store.js";
import { whole } from "./terms.js";

/** @typedef {import("./store.js").Memory} Memory */
/** @typedef {import("./store.js").Store} Store */

const TABLE = "memory";
const KEY = "device";
const MOST_COMMITS = 10 ** 15 - 2;

/** @implements {Store} */
export class IndexedDbStore {
  /** @type {Promise<IDBDatabase> | null} */ #opening = null;

  /** @param {string} name of the database */
  constructor(name) {
    this.name = name;
  }

  /** @param {Memory} memory no first one if the witness remembers another */
  async create(memory) {
    await this.#transact((found, table) => {
      if (found) throw new DeviceError("ledger-exists", { file: this.name });
      const commits = this.#counted() ?? 0;
      // Before there is a memory: without a counter, nobody would vouch for it. Not beside one that
      // there is: it may be an older copy.
      this.#count(commits);
      table.put({ ...memory, first: memory.first && commits === 0, commits }, KEY);
    });
  }

  /** Delete a memory that was never enrolled. */
  async discard() {
    await this.#transact((found, table) => {
      if (found && !found.enrolment) table.delete(KEY);
    });
  }

  async load() {
    const memory = await this.#transact((found) => existing(found, this.name));
    // A crash between commit and counter leaves it behind; something may be sent now.
    if ((this.#counted() ?? Infinity) < memory.commits) this.#count(memory.commits);
    return memory;
  }

  /** @template T @param {(change: Change) => T} act */
  async change(act) {
    const { change, result } = await this.#transact((found, table) => {
      const memory = existing(found, this.name);
      const counted = this.#counted();
      const commits = whole(memory.commits, 0, MOST_COMMITS) ? memory.commits : -1;
      const change = new Change(memory, counted !== null && commits >= counted);
      const result = act(change);
      if (change.made) {
        change.memory.commits = Math.max(commits, counted ?? 0) + 1;
        table.put(change.memory, KEY);
      }
      return { change, result };
    });
    if (change.made) this.#count(Math.max(change.memory.commits, this.#counted() ?? 0));
    return result;
  }

  #counted() {
    try {
      const counted = localStorage.getItem(this.name) ?? "";
      return /^\d{1,15}$/.test(counted) ? Number(counted) : null;
    } catch (error) {
      throw this.#unusable(error);
    }
  }

  /** @param {number} commits */
  #count(commits) {
    try {
      localStorage.setItem(this.name, String(commits));
    } catch (error) {
      throw this.#unusable(error);
    }
  }

  /**
   * Call `act` with the record, alone on the database; resolve when what it wrote is on disk.
   * @template T @param {(found: Memory | undefined, table: IDBObjectStore) => T} act
   * @returns {Promise<T>}
   */
  async #transact(act) {
    const transaction = await this.#begin();
    return new Promise((resolve, reject) => {
      /** @type {T} */ let result;
      /** @type {unknown} */ let fault = null;
      const table = transaction.objectStore(TABLE);
      const request = table.get(KEY);
      request.onsuccess = () => {
        try {
          result = act(request.result, table);
        } catch (error) {
          fault = error;
          transaction.abort();
        }
      };
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = () => reject(fault ?? this.#unusable(transaction.error));
    });
  }

  async #begin() {
    const database = await this.#open();
    try {
      return database.transaction(TABLE, "readwrite", { durability: "strict" });
    } catch (error) {
      this.#opening = null; // closed meanwhile
      throw this.#unusable(error);
    }
  }

  #open() {
    this.#opening ??= new Promise((resolve, reject) => {
      // A page of an older release that is still open loses its connection by this, for good.
      const request = indexedDB.open(this.name, FORMAT);
      request.onupgradeneeded = ({ oldVersion }) => {
        if (!oldVersion) request.result.createObjectStore(TABLE);
      };
      request.onerror = () => reject(this.#unusable(request.error));
      request.onsuccess = () => {
        request.result.onversionchange = () => this.close();
        request.result.onclose = () => (this.#opening = null);
        resolve(request.result);
      };
    });
    this.#opening.catch(() => (this.#opening = null));
    return this.#opening;
  }

  /** @param {unknown} error */
  #unusable(error) {
    return new LedgerUnusable("ledger-file", { file: this.name, what: String(error) });
  }

  async close() {
    const database = await this.#opening;
    this.#opening = null;
    database?.close();
  }
}
