/**
 * A device's memory in a file, for Node: one JSON document, readable by its owner only. A commit writes
 * a new file, syncs it, moves it into place, and syncs the folder. One process at a time has the file:
 * from the first use until `close`.
 *
 * Its witness is the file system, as `ChangeTime` in `device/witness.py`: what is found must be the very
 * file (inode) that was written last, with the change time of that commit. So a copy that is brought
 * back is noticed, and one of a whole file system or virtual machine is not.
 */

import { closeSync, fsyncSync, openSync, readFileSync, realpathSync, renameSync } from "node:fs";
import { fstatSync, rmSync, writeSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import { fromHex, toHex } from "../bytes.js";
import { DeviceError, LedgerUnusable } from "../problems.js";
import { Change, existing } from "../store.js";
import { isObject } from "../wholes.js";
import { bootClock } from "./boot_clock.js";
import { lockFile } from "./file_lock.js";

/** @typedef {import("../memory.js").Memory} Memory */
/** @typedef {import("node:fs").BigIntStats} Stats */
/** What is stored with each commit. @typedef {{atNs: string, inode: string, device: string, boot: string | null}} Stamp */

const OWNER_ONLY = 0o600;
const SLOWEST_COMMIT_NS = 5_000_000_000n;
/** Kernels stamp files with the time of the last tick, up to 10 ms ago; `Date.now()` cuts off 1 ms. */
const COARSENESS_NS = 20_000_000n;

/** @typedef {import("../store.js").Store} Store */

/** @implements {Store} */
export class FileStore {
  clock = bootClock;
  /** @type {Promise<{path: string, release: () => void}> | null} */ #opening = null;

  /** @param {string} path */
  constructor(path) {
    this.name = path;
  }

  /** @param {Memory} memory */
  async create(memory) {
    const { path } = await this.#open();
    this.#guarded(() => {
      if (read(path)) throw new DeviceError("ledger-exists", { file: this.name });
      write(path, memory);
    });
  }

  async load() {
    const { path } = await this.#open();
    return this.#guarded(() => existing(read(path)?.memory, this.name));
  }

  /** @template T @param {(change: Change) => T} act @returns {Promise<T>} */
  async change(act) {
    const { path } = await this.#open();
    return this.#guarded(() => {
      const found = read(path);
      const memory = existing(found?.memory, this.name);
      const change = new Change(memory, vouches(/** @type {Found} */ (found)));
      const result = act(change);
      if (change.made) write(path, change.memory);
      return result;
    });
  }

  async close() {
    const opening = this.#opening;
    this.#opening = null;
    (await opening)?.release();
  }

  /** Take the file for this process, once. Symbolic links are resolved then. */
  #open() {
    this.#opening ??= this.#lock();
    this.#opening.catch(() => (this.#opening = null));
    return this.#opening;
  }

  async #lock() {
    let release;
    const path = this.#guarded(() => resolved(this.name));
    try {
      release = await lockFile(path);
    } catch (error) {
      throw this.#unusable(error);
    }
    if (!release) throw this.#unusable("is in use by another process");
    return { path, release };
  }

  /** Call `act`; whatever the file system says against it is told as one kind of fault. */
  /** @template T @param {() => T} act @returns {T} */
  #guarded(act) {
    try {
      return act();
    } catch (error) {
      const ofSystem = error instanceof Error && "syscall" in error;
      throw ofSystem || error instanceof Damaged ? this.#unusable(error) : error;
    }
  }

  /** @param {unknown} error */
  #unusable(error) {
    const what = error instanceof Error ? error.message : String(error);
    return new LedgerUnusable("ledger-file", { file: this.name, what });
  }
}

/** @typedef {{memory: Memory, stamp: Stamp, stats: Stats}} Found */

/** @param {string} path of a file that need not be there yet */
function resolved(path) {
  try {
    return realpathSync(path);
  } catch {
    return join(realpathSync(dirname(path)), basename(path));
  }
}

/** @param {string} path @returns {Found | null} null if there is no file */
function read(path) {
  let handle;
  try {
    handle = openSync(path, "r");
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") return null;
    throw error;
  }
  try {
    const stats = fstatSync(handle, { bigint: true });
    const { stamp, ...memory } = parsed(readFileSync(handle, "utf8"));
    return { memory, stamp, stats };
  } finally {
    closeSync(handle);
  }
}

class Damaged extends Error {}

/** @param {string} text @returns {any} the object in it */
function parsed(text) {
  try {
    const found = JSON.parse(text, revived);
    if (isObject(found)) return found;
  } catch {
    // told below
  }
  throw new Damaged("is no device's, or is damaged");
}

/** @param {string} path @param {Memory} memory on disk, under its name, when this returns */
function write(path, memory) {
  const draft = `${path}.new`;
  rmSync(draft, { force: true }); // of a process that was killed
  const handle = openSync(draft, "wx", OWNER_ONLY);
  try {
    const stamp = stampOf(fstatSync(handle, { bigint: true }));
    const bytes = Buffer.from(`${JSON.stringify({ ...memory, stamp }, replaced)}\n`);
    for (let at = 0; at < bytes.length; ) at += writeSync(handle, bytes, at);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(draft, path);
  syncFolder(dirname(path));
}

/** @param {string} path */
function syncFolder(path) {
  if (process.platform === "win32") return; // it has no such thing
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** @param {Stats} file that is about to be written @returns {Stamp} */
const stampOf = ({ ino, dev }) => ({
  atNs: String(BigInt(Date.now()) * 1_000_000n),
  inode: String(ino),
  device: String(dev),
  boot: bootClock.boot(),
});

/** @param {Found} found whether nothing was committed after what it holds */
function vouches({ stamp, stats }) {
  if (!/^\d{1,20}$/.test(stamp?.atNs)) return false;
  const sinceNs = stats.ctimeNs - BigInt(stamp.atNs);
  const sameDevice = stamp.device === String(stats.dev) || stamp.boot !== bootClock.boot();
  const sameFile = stamp.inode === String(stats.ino) && sameDevice;
  return sameFile && sinceNs >= -COARSENESS_NS && sinceNs <= SLOWEST_COMMIT_NS;
}

/** @param {string} _ @param {unknown} value bytes as digits */
const replaced = (_, value) => (value instanceof Uint8Array ? { hex: toHex(value) } : value);

/** @param {string} key of a member; the names of labels, which a collector chooses, are no bytes @param {any} value */
const revived = (key, value) =>
  key !== "renamed" && typeof value?.hex === "string" ? fromHex(value.hex) : value;
