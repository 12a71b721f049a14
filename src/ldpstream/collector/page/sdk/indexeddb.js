/**
 * A device's memory in IndexedDB, for pages, workers and extensions: one database a device, one record
 * in it, written with strict durability. A record is small: the entries of one window. A Web Lock keeps
 * all others out for as long as a transaction lasts.
 *
 * Its witness is a counter of commits in a database of its own, which notices a device's database that
 * was deleted or put back by itself. It does not notice a whole browser profile that was rolled back.
 */

import { pageClock } from "./clock.js";
import { FORMAT } from "./memory.js";
import { DeviceError, LedgerUnusable } from "./problems.js";
import { Change, existing } from "./store.js";
import { whole } from "./wholes.js";

/** @typedef {import("./memory.js").Memory} Memory */
/** @typedef {import("./store.js").Store} Store */

const TABLE = "memory";
const KEY = "device";
const WITNESS = "ldpstream witness";
const MOST_COMMITS = 10 ** 15 - 2;

/** One table in a database of its own, with transactions that end on disk. */
class Table {
  /** @type {Promise<IDBDatabase> | null} */ #opening = null;

  /** @param {string} name of the database @param {number} version @param {(error: unknown) => Error} fault */
  constructor(name, version, fault) {
    this.name = name;
    this.version = version;
    this.fault = fault;
  }

  /**
   * Call `act` with the record of a key; resolve when what it wrote is on disk.
   * @template T @param {string} key @param {(found: any, table: IDBObjectStore) => T} act
   * @returns {Promise<T>}
   */
  async transact(key, act) {
    const transaction = await this.#begin();
    return new Promise((resolve, reject) => {
      /** @type {T} */ let result;
      /** @type {unknown} */ let fault = null;
      const table = transaction.objectStore(TABLE);
      const request = table.get(key);
      request.onsuccess = () => {
        try {
          result = act(request.result, table);
        } catch (error) {
          fault = error;
          transaction.abort();
        }
      };
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = () => reject(fault ?? this.fault(transaction.error));
    });
  }

  async #begin() {
    const database = await this.#open();
    try {
      return database.transaction(TABLE, "readwrite", { durability: "strict" });
    } catch (error) {
      this.#opening = null; // closed meanwhile
      throw this.fault(error);
    }
  }

  #open() {
    this.#opening ??= new Promise((resolve, reject) => {
      // A page of an older release that is still open loses its connection by this, for good.
      const request = indexedDB.open(this.name, this.version);
      request.onupgradeneeded = ({ oldVersion }) => {
        if (!oldVersion) request.result.createObjectStore(TABLE);
      };
      request.onerror = () => reject(this.fault(request.error));
      request.onsuccess = () => {
        request.result.onversionchange = () => this.close();
        request.result.onclose = () => (this.#opening = null);
        resolve(request.result);
      };
    });
    this.#opening.catch(() => (this.#opening = null));
    return this.#opening;
  }

  async close() {
    const opening = this.#opening;
    this.#opening = null;
    (await opening)?.close();
  }
}

/** @implements {Store} */
export class IndexedDbStore {
  #memory;
  #witness;
  clock = pageClock;

  /** @param {string} name of the database */
  constructor(name) {
    this.name = name;
    const fault = (/** @type {unknown} */ error) => this.#unusable(error);
    this.#memory = new Table(name, FORMAT, fault);
    this.#witness = new Table(WITNESS, 1, fault);
  }

  /** @param {Memory} memory whose past is unknown if the witness remembers another */
  async create(memory) {
    await this.#alone(async () => {
      const commits = (await this.#counted()) ?? 0;
      await this.#memory.transact(KEY, (found) => {
        if (found) throw new DeviceError("ledger-exists", { file: this.name });
      });
      // Before there is a memory: without a counter, nobody would vouch for it. Not beside one that
      // there is: it may be an older copy.
      await this.#count(commits);
      const pastKnown = memory.pastKnown && commits === 0;
      await this.#memory.transact(KEY, (_, table) => table.put({ ...memory, pastKnown, commits }, KEY));
    });
  }

  /** Delete a memory that was never enrolled: it has nothing to remember. */
  async discard() {
    await this.#alone(() =>
      this.#memory.transact(KEY, (found, table) => {
        const joined = found?.enrolments?.length || found?.enrolment; // release 0.2.0 had one
        if (found && !joined && !found.rejoins && !found.entries?.length) table.delete(KEY);
      }),
    );
  }

  load() {
    return this.#alone(async () => {
      const memory = await this.#memory.transact(KEY, (found) => existing(found, this.name));
      // A crash between commit and counter leaves it behind; something may be sent now.
      if (((await this.#counted()) ?? Infinity) < memory.commits) await this.#count(memory.commits);
      return memory;
    });
  }

  /** @template T @param {(change: Change) => T} act @returns {Promise<T>} */
  change(act) {
    return this.#alone(async () => {
      const counted = await this.#counted();
      const { change, result } = await this.#memory.transact(KEY, (found, table) => {
        const memory = existing(found, this.name);
        const commits = whole(memory.commits, 0, MOST_COMMITS) ? memory.commits : -1;
        const change = new Change(memory, counted !== null && commits >= counted);
        const result = act(change);
        if (change.made) {
          change.memory.commits = Math.max(commits, counted ?? 0) + 1;
          table.put(change.memory, KEY);
        }
        return { change, result };
      });
      if (change.made) await this.#count(change.memory.commits);
      return result;
    });
  }

  async close() {
    await Promise.all([this.#memory.close(), this.#witness.close()]);
  }

  /** Call `act` while every other page and worker is locked out. */
  /** @template T @param {() => Promise<T>} act @returns {Promise<T>} */
  async #alone(act) {
    const { locks } = globalThis.navigator ?? {};
    if (!locks || !globalThis.indexedDB) {
      throw this.#unusable("this needs Web Locks and IndexedDB: a page over https, or a worker of one");
    }
    return locks.request(`ldpstream ${this.name}`, act);
  }

  /** @returns {Promise<number | null>} the commits that were counted; null if nobody has */
  #counted() {
    return this.#witness.transact(this.name, (found) => (whole(found, 0, MOST_COMMITS + 1) ? found : null));
  }

  /** @param {number} commits */
  #count(commits) {
    return this.#witness.transact(this.name, (_, table) => void table.put(commits, this.name));
  }

  /** @param {unknown} error */
  #unusable(error) {
    return new LedgerUnusable("ledger-file", { file: this.name, what: String(error) });
  }
}
