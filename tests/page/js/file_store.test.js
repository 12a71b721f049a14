/** A device's file in Node: one process at a time, on disk before it is used, no older copy. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import os, { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { Device, FileStore, Refused, lookAt, newMemory } from "./inside.js";
import { bootClock } from "../../../src/ldpstream/collector/page/sdk/node/boot_clock.js";

let folder;
let file;
/** @type {FileStore[]} */ let opened;

const store = (path = file) => {
  const made = new FileStore(path);
  opened.push(made);
  return made;
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ldpstream-"));
  file = join(folder, "device.ldp");
  opened = [];
});

afterEach(async () => {
  await Promise.all(opened.map((one) => one.close().catch(() => undefined)));
  rmSync(folder, { recursive: true });
});

const fresh = () => newMemory(true, lookAt(bootClock));
const vouched = (one) => one.change((change) => change.vouchedFor);
const count = (one) =>
  one.change((change) => {
    change.made = true;
    change.memory.refusals.push({ code: "x", times: 1, lastMs: 0, detail: "" });
  });

test("it is made once, for its owner only, and read as it was written", async () => {
  const one = store();
  await assert.rejects(one.load(), { code: "ledger-missing" });
  const memory = fresh();
  await one.create(memory);
  await assert.rejects(one.create(fresh()), { code: "ledger-exists" });
  assert.deepEqual(await one.load(), memory);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  await count(one);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal((await one.load()).refusals.length, 1);
  assert.equal(await vouched(one), true);
});

test("an exception in a transaction leaves the file as it was", async () => {
  const one = store();
  await one.create(fresh());
  const before = readFileSync(file, "utf8");
  const fault = new Error("mine");
  const fail = (change) => {
    change.made = true;
    throw fault;
  };
  await assert.rejects(one.change(fail), fault);
  assert.equal(readFileSync(file, "utf8"), before);
});

test("a copy that is brought back is not vouched for, until it is counted as spent", async () => {
  const one = store();
  await one.create(fresh());
  await count(one);
  const copy = join(folder, "copy");
  copyFileSync(file, copy);
  await count(one);
  assert.equal(await vouched(one), true);
  copyFileSync(copy, file); // over it: within 5 s the change time says nothing, the inode does
  assert.equal(await vouched(one), false);
  renameSync(copy, file);
  assert.equal(await vouched(one), false);
  await count(one);
  assert.equal(await vouched(one), true);
});

/** Make the file one whose last commit was 6 s before its change time. */
function older() {
  const { stamp, ...memory } = JSON.parse(readFileSync(file, "utf8"));
  const atNs = String(BigInt(stamp.atNs) - 6_000_000_000n);
  writeFileSync(file, JSON.stringify({ ...memory, stamp: { ...stamp, atNs } }));
}

test("a file whose change time is not that of its commit is not vouched for", async () => {
  const one = store();
  await one.create(fresh());
  older();
  assert.equal(await vouched(one), false);
  const { stamp: _, ...memory } = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify(memory));
  assert.equal(await vouched(one), false);
});

test("a first install is believed of no file that was brought back", async () => {
  const device = await Device.create(store(), { firstInstall: true });
  await device.close();
  older();
  const again = await Device.open(store());
  await again.account.note(new Refused("round-malformed", { field: "x", given: "y" }));
  assert.equal(again.wallet.memory.pastKnown, false);
});

test("two processes cannot have one file, nor two stores of one process", async () => {
  const one = store();
  await one.create(fresh());
  const other = store();
  await assert.rejects(other.load(), { code: "ledger-file", message: /in use by another process/ });
  symlinkSync(file, join(folder, "link"));
  await assert.rejects(store(join(folder, "link")).load(), /in use by another process/);
  await one.close();
  assert.ok(await other.load());
  await assert.rejects(one.load(), /in use by another process/);
});

test("of many that want it at once, no two have it", async () => {
  const first = store();
  await first.create(fresh());
  await first.close();
  const many = Array.from({ length: 8 }, () => store());
  const found = await Promise.allSettled(many.map((one) => one.load()));
  assert.ok(found.filter(({ status }) => status === "fulfilled").length <= 1);
});

/** Run a script with a store of the file in another process; resolve when it says something. */
function another(script) {
  const sdk = new URL("../../../src/ldpstream/collector/page/sdk/node.js", import.meta.url);
  const whole = `
    const { FileStore } = await import(${JSON.stringify(sdk.href)});
    const store = new FileStore(${JSON.stringify(file)});
    ${script}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", whole]);
  return new Promise((resolve, reject) => {
    child.stdout.once("data", () => resolve(child));
    child.stderr.once("data", (said) => reject(new Error(String(said))));
  });
}

const HOLDING = "await store.load(); console.log(1); setInterval(() => undefined, 1000)";
const COMMITTING = `
  const { writeSync } = await import("node:fs");
  for (;;) {
    const times = await store.change((change) => {
      change.made = true;
      return (change.memory.rejoins += 1);
    });
    writeSync(1, times + "\\n");
  }`;

/** @param {import("node:child_process").ChildProcess} child */
async function killed(child) {
  const gone = new Promise((done) => child.once("close", done));
  child.kill("SIGKILL");
  await gone;
}

test("a process that is killed gives the file back, and leaves nothing behind", async () => {
  const one = store();
  await one.create(fresh());
  await one.close();
  const child = await another(HOLDING);
  await assert.rejects(one.load(), /in use by another process/);
  await killed(child);
  assert.equal(readdirSync(folder).length, 2, "its socket is still there");
  assert.ok(await one.load());
  await one.close();
  assert.deepEqual(readdirSync(folder), ["device.ldp"]);
});

test("what a process has committed is there after it was killed, wherever that was", async () => {
  const one = store();
  await one.create(fresh());
  await one.close();
  for (let kills = 0; kills < 6; kills += 1) {
    let said = "";
    const child = await another(COMMITTING);
    child.stdout.on("data", (more) => (said += more));
    await new Promise((done) => setTimeout(done, 7 * kills));
    await killed(child);
    const committed = Number(said.split("\n").at(-2) ?? 0);
    const { rejoins } = await one.load();
    assert.ok(rejoins >= committed && rejoins <= committed + 1 || !committed, `${rejoins}, ${committed}`);
    assert.equal(await vouched(one), true);
    await one.close();
  }
});

test("a draft of a process that was killed is written over", async () => {
  const one = store();
  await one.create(fresh());
  writeFileSync(`${file}.new`, "half", { mode: 0o644 });
  await count(one);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal((await one.load()).refusals.length, 1);
});

test("a file that is damaged, or in a folder that is not there, is told in one line", async () => {
  const one = store();
  for (const damaged of ["{", "null", "[]", "7", ""]) {
    writeFileSync(file, damaged);
    await assert.rejects(one.load(), { code: "ledger-file", message: /no device's/ });
  }
  await assert.rejects(store(join(folder, "none", "x")).create(fresh()), { code: "ledger-file" });
  mkdirSync(join(folder, "deep", "a".repeat(120)), { recursive: true });
  const deep = store(join(folder, "deep", "a".repeat(120), "device.ldp"));
  await deep.create(fresh());
  assert.ok(await deep.load(), "the address of a socket may be too long, and this is not");
});

test("a folder that takes no files means silence", { skip: process.getuid?.() === 0 }, async () => {
  chmodSync(folder, 0o500);
  await assert.rejects(store().create(fresh()), { code: "ledger-file" });
  chmodSync(folder, 0o700);
});

test("the steady clock counts from the boot, and as finely as it needs to", async () => {
  const first = bootClock.steadyMs();
  const uptimeMs = Number(readFileSync("/proc/uptime", "ascii").split(" ")[0]) * 1000;
  assert.ok(Math.abs(first - uptimeMs) < 1000);
  let last = first;
  for (let look = 0; look < 20_000; look += 1) {
    const now = bootClock.steadyMs();
    assert.ok(now >= last);
    last = now;
  }
  assert.ok(bootClock.boot().length > 30);
});

test("a label of any name is read as it was written", async () => {
  const one = store();
  const renamed = { hex: "beef", secret: "hex", key: "base16", number: "7", ["__proto__"]: "x" };
  await one.create({ ...fresh(), enrolments: [{ id: 1, renamed, key: Uint8Array.of(190, 239) }] });
  const [{ renamed: read, key }] = (await one.load()).enrolments;
  assert.deepEqual(Object.entries(read), Object.entries(renamed));
  assert.deepEqual(Uint8Array.from(key), Uint8Array.of(190, 239));
});

test("a process that is stopped while it looks at its clocks gains no time", () => {
  const { uptime } = os;
  const before = bootClock.steadyMs() - performance.now();
  try {
    for (let stopped = 1; stopped <= 3; stopped += 1) {
      let calls = 0;
      os.uptime = () => {
        calls += 1;
        if (calls === stopped) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
        return uptime();
      };
      syncBuiltinESMExports();
      const ahead = bootClock.steadyMs() - performance.now() - before;
      assert.ok(ahead < 12, `${ahead} ms after a stop at read ${stopped}`);
    }
  } finally {
    os.uptime = uptime;
    syncBuiltinESMExports();
  }
});
