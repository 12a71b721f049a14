/**
 * A lock on a file that the system gives back when its process ends, however it ends: a Unix socket
 * beside the file, to which others can connect for as long as the process lives. Containers that share
 * the folder are kept out too, other machines (a network file system) are not.
 *
 * Who wants the file puts a socket of its own there first, and looks for others then. So of two, the
 * one that looks last sees the other, and gives way.
 */

import { closeSync, openSync, readdirSync, renameSync, unlinkSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { basename, dirname, join } from "node:path";
import { createHash, randomBytes } from "node:crypto";

const TRIES = 4;
const PAUSE_MS = 50;

/** @typedef {() => void} Release */

/** @param {string} file @returns {Promise<Release | null>} null if somebody else has it */
export async function lockFile(file) {
  if (process.platform === "win32") return lockPipe(file);
  for (let tries = 1; ; tries += 1) {
    const release = await tryLock(file);
    if (release || tries === TRIES) return release;
    // The other one may be about to give way, or to end.
    await new Promise((done) => setTimeout(done, PAUSE_MS * (1 + Math.random())));
  }
}

/** @param {string} file @returns {Promise<Release | null>} */
async function tryLock(file) {
  const folder = openFolder(dirname(file));
  const prefix = `.${basename(file)}.lock-`;
  const own = prefix + randomBytes(6).toString("hex");
  try {
    const draft = join(folder.path, `${own}.new`);
    const server = await listening(draft);
    if (!server) throw new Error("its folder takes no sockets");
    // Under this name from the moment at which it listens: whoever finds it silent finds it dead.
    renameSync(draft, join(folder.path, own));
    const release = () => {
      server.close();
      remove(join(dirname(file), own));
    };
    const others = readdirSync(dirname(file)).filter(
      (name) => name.startsWith(prefix) && !name.endsWith(".new") && name !== own,
    );
    for (const other of others) {
      const path = join(folder.path, other);
      if (await isDead(path)) remove(path);
      else return release(), null;
    }
    return release;
  } finally {
    folder.close();
  }
}

/** A folder by a short path: the address of a socket has some 100 bytes only. @param {string} path */
function openFolder(path) {
  if (process.platform !== "linux") return { path, close: () => undefined };
  const handle = openSync(path, "r");
  return { path: `/proc/self/fd/${handle}`, close: () => closeSync(handle) };
}

/** @param {string} path @returns {Promise<import("node:net").Server | null>} null if it is taken */
function listening(path) {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (/** @type {NodeJS.ErrnoException} */ error) =>
      error.code === "EADDRINUSE" ? resolve(null) : reject(error),
    );
    server.listen(path, () => resolve(server.unref()));
  });
}

/** @param {string} path @returns {Promise<boolean>} whether nobody listens there any more */
function isDead(path) {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once("connect", () => (socket.destroy(), resolve(false)));
    socket.once("error", (/** @type {NodeJS.ErrnoException} */ { code }) =>
      resolve(code === "ECONNREFUSED" || code === "ENOENT"),
    );
  });
}

/** @param {string} path */
function remove(path) {
  try {
    unlinkSync(path);
  } catch {
    // Whoever finds it will find it dead.
  }
}

/** The names of Windows's pipes are taken by one process at a time. @param {string} file */
async function lockPipe(file) {
  const name = createHash("sha256").update(file.toLowerCase()).digest("hex");
  const server = await listening(`\\\\.\\pipe\\ldpstream-${name}`);
  return server && (() => void server.close());
}
