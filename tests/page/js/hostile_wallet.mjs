/**
 * A hundred hostile streams against one wallet, and a judge who looks at nothing but what left the device and
 * at the world's own time.
 *
 *     node hostile_wallet.mjs --operations 100000 --seed 1 [--plant NAME]
 *
 * prints {operations, reports, most, seconds, faults, violations}. All collectors lie about the time, ask for
 * whatever they like, name successors and renewals, and lose requests; the application leaves, joins again
 * under other names, moves between levels, and sets limits; the disk fails, and is brought back.
 */

import { createHash, createHmac } from "node:crypto";

import { Change, Device, DeviceError, Ledger, LedgerUnusable, MemoryStore, Terms, Wallet } from "./inside.js";

const NANO = 1_000_000_000;
const STREAMS = 100;
const INTERVAL_MS = 1000;
const START = 1_700_000_000_000;
const LIMITS = [
  { epsilon: 6, span: "12s" },
  { epsilon: 4, span: "12s" },
  { epsilon: 5, span: "20s" },
  { epsilon: 9, span: "8s" },
];
const { subtle } = globalThis.crypto;
subtle.digest = async (_, bytes) => createHash("sha256").update(bytes).digest();
subtle.importKey = async (_, key) => key;
subtle.sign = async (_, key, bytes) => createHmac("sha256", key).update(bytes).digest();

/** Numbers that look random and are the same in every run (mulberry32). */
function draws(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound) => Math.floor(next() * bound);
  return { next, below, chance: (share) => next() < share, of: (all) => all[below(all.length)] };
}

/** @param {Uint8Array} bytes */
const hex = (bytes) => Buffer.from(bytes).toString("hex");

/** A copy that can be changed without changing the other: of the lists, and of what is in them. */
const copied = (memory) =>
  Object.fromEntries(
    Object.entries(memory).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map((one) => ({ ...one })) : value,
    ]),
  );

/** A disk that fails now and then. To copy all of a memory for every look at it would take most of the time. */
class Disk extends MemoryStore {
  async load() {
    return this.memory;
  }

  async change(act) {
    const fault = world.happens("disk", ["before", "after"], 0.01);
    const full = () => new LedgerUnusable("ledger-file", { file: "", what: "full" });
    if (fault === "before") throw full();
    const change = new Change(copied(this.memory), this.vouchedFor);
    const result = act(change);
    if (change.made) {
      [this.memory, this.vouchedFor] = [change.memory, true];
      const numbers = new Map(change.memory.enrolments.map(({ id, number }) => [id, hex(number)]));
      for (const { enrolment, left, t, round } of change.memory.entries) {
        const key = `${numbers.get(enrolment)} ${round} ${t}`;
        if (left || world.committed.has(key)) continue;
        world.committed.set(key, { order: world.committed.size, ...world.readings.get(enrolment) });
      }
    }
    if (fault === "after") throw full();
    return result;
  }
}

class World {
  constructor(seed) {
    this.draws = draws(seed);
    this.now = START + 500;
    this.ahead = 0;
    this.lie = 0;
    this.faults = {};
    this.violations = [];
    /** In which order debits came to the disk, and their readings, by number, round and t. */
    this.committed = new Map();
    /** The last reading of each stream, by the id of its enrolment. */
    this.readings = new Map();
    /** What left, by number, round and t. */
    this.sent = new Map();
    /** Limits that the application has set: from which debit, and until which moment they were in force. */
    this.limits = [];
    this.disk = new Disk();
    this.rejoins = 0;
    /** By the name of the stream. @type {Map<string, Terms[]>} */
    this.versions = new Map();
  }

  happens(kind, choices, share = 1) {
    if (!this.began || !this.draws.chance(share)) return null;
    this.faults[kind] = (this.faults[kind] ?? 0) + 1;
    return this.draws.of(choices);
  }

  get clock() {
    const boot = this.boot;
    return {
      wallMs: () => this.now + this.ahead,
      steadyMs: () => this.now - START,
      boot: () => boot,
    };
  }

  parts() {
    return {
      clock: this.clock,
      source: { coin: () => true, below: () => 0n },
      warn: () => undefined,
      fetcher: (...given) => this.fetch(...given),
      sleep: async (ms) => this.pass(Math.ceil(Math.min(ms, 2000))),
    };
  }

  pass(ms) {
    this.now += ms;
  }

  async begin() {
    this.boot = "boot 0";
    const device = await Device.create(this.disk, { ...this.parts(), firstInstall: true });
    for (let at = 0; at < STREAMS; at += 1) await this.join(device, `s${at}`);
    this.device = device;
    await this.limit(LIMITS[0]);
    for (const stream of device.streams.slice(0, 3)) await stream.reserve(1);
    this.began = true;
  }

  /** Terms of a stream: of every kind, some with levels. */
  async offer(name) {
    const kind = createHash("sha256").update(name).digest()[0] % 3;
    const plain = {
      version: 2,
      stream: name,
      query: "histogram",
      labels: ["a", "b", "c"],
      epsilon_nano: NANO,
      window: 4,
      interval_ms: INTERVAL_MS,
      start_ms: START,
      oracle: "grr",
    };
    const careful = { name: "careful", epsilon_nano: NANO / 2, window: 8, oracle: "grr" };
    const slots = { ...plain, selection: "slots", deadline_ms: 900 };
    const sent = [slots, { ...slots, version: 3, levels: [careful] }, { ...plain, selection: "open" }][kind];
    this.versions.set(name, [await Terms.read(sent)]);
  }

  async join(device, name) {
    if (!this.versions.has(name)) await this.offer(name);
    const { levels } = this.versions.get(name).at(-1);
    const level = levels.length && this.draws.chance(0.5) ? "careful" : "";
    await device.enrol("https://collector", name, "", { level, accept: "not-looser" });
    this.follow(device.stream(name));
  }

  follow(stream) {
    stream.follow(() => {
      const start = this.now;
      this.pass(this.happens("slow", [1, 200], 0.05) ?? 0);
      this.readings.set(stream.account.id, { start, end: this.now });
      return this.draws.below(3);
    });
  }

  // What the collectors do.

  async fetch(address, { method = "GET", body, headers }) {
    const { pathname, searchParams } = new URL(address);
    const [, , , stream, place, which] = pathname.split("/");
    const versions = this.versions.get(stream);
    const lost = this.happens("lost", ["request", "answer"], 0.05);
    if (lost === "request") throw new TypeError("lost");
    if (place === "devices") {
      if (method === "DELETE") return Response.json({});
      const shown = Buffer.from(JSON.parse(body).secret, "hex");
      const device = createHash("sha256").update("ldpstream number 2\n").update(shown).digest("hex").slice(0, 32);
      const key = createHmac("sha256", `${this.draws.chance(0.9)}`).update(device).digest("hex");
      return Response.json({ terms: JSON.parse(versions.at(-1).canonical), device, key, now_ms: this.told });
    }
    if (place === "terms") {
      const found = versions.find(({ pin }) => pin === which) ?? versions[0];
      return Response.json({ terms: JSON.parse(found.canonical) });
    }
    if (method === "GET") {
      const version = Number(searchParams.get("version") ?? 1);
      const { pin } = versions[Math.min(version, versions.length) - 1];
      const rounds = Array.from({ length: 1 + this.draws.below(3) }, () => this.round());
      return Response.json({ serial: this.draws.below(99), pin, rounds, ...this.notice(stream) });
    }
    this.take(stream, which, headers["Ldp-Device"]);
    if (lost) throw new TypeError("lost");
    return Response.json(this.notice(stream), { status: this.draws.of([202, 202, 202, 503, 403]) });
  }

  get told() {
    return Math.max(0, this.now + this.lie);
  }

  notice(stream) {
    const versions = this.versions.get(stream);
    const successor = this.draws.of([versions.at(-1).pin, versions.at(-1).pin, "ab".repeat(32)]);
    return { now_ms: this.told, successor, renew: this.draws.chance(0.02) };
  }

  round() {
    const t = Math.floor((this.told - START) / INTERVAL_MS) + 1;
    const name = `r${this.draws.below(1000)}`;
    const epsilon_nano = this.draws.of([1, NANO / 4, NANO / 2, NANO, NANO, 2 * NANO]);
    return { round: name, t, epsilon_nano, deadline_ms: 2 ** 50, rate: [1, 1] };
  }

  /** Something has left: what it costs is on disk, and judged in the end. */
  take(stream, round, number) {
    const { enrolments, entries } = this.disk.memory;
    const enrolment = enrolments.find((one) => hex(one.number) === number);
    const key = `${number} ${round}`;
    const entry = entries.findLast((one) => one.enrolment === enrolment?.id && one.round === round);
    if (!entry) return this.sent.has(key) ? undefined : this.violation("sent before committed", { stream, round });
    const whole = `${key} ${entry.t}`;
    if (this.sent.has(whole)) return undefined;
    const drawn = this.committed.get(whole);
    this.sent.set(key, true);
    this.sent.set(whole, { stream, nano: entry.nano, ...drawn });
    return undefined;
  }

  violation(what, facts) {
    this.violations.push({ what, ...facts });
  }

  // What the application does.

  async expected(act) {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof DeviceError)) this.violation("exception", { error: String(error.stack) });
    }
  }

  async limit(limit) {
    await this.expected(() => this.device.setLimit(limit));
    this.recordLimit(); // whatever became of it: a disk may fail after it has written
  }

  recordLimit() {
    const { epsilonNano, span: spanMs } = this.disk.memory.limits.find(({ until }) => until === undefined);
    const before = this.limits.at(-1);
    const same = before?.epsilonNano === epsilonNano && before.spanMs === spanMs;
    if (same && before.until === Infinity) return;
    if (before?.until === Infinity) before.until = this.now;
    this.limits.push({ epsilonNano, spanMs, since: this.committed.size, until: Infinity });
  }

  /** New terms that follow: never looser, with other labels. */
  async succeed() {
    const [name, versions] = this.draws.of([...this.versions]);
    const old = versions.at(-1);
    if (versions.length > 3) return;
    const t = Math.floor((this.now - START) / INTERVAL_MS) + this.draws.of([1, 5, 500]);
    const succeeds = { pin: old.pin, version: old.version + 1, from_t: t, until_t: t + 100, labels: old.labels };
    const sent = { ...JSON.parse(old.canonical), version: 3, succeeds };
    sent.window += this.draws.of([0, 0, 1]);
    versions.push(await Terms.read(sent));
    this.versions.set(name, versions);
  }

  async operate() {
    const { draws, device } = this;
    const operations = {
      poll: async () => {
        const several = Array.from({ length: draws.of([1, 1, 1, 4]) }, () => draws.of(device.streams));
        await Promise.all([...new Set(several)].map((stream) => this.expected(() => stream.poll(1))));
      },
      turn: async () => {
        const dueMs = await device.dueInMs().catch(() => 0);
        this.pass(Math.min(500, Math.max(0, Math.ceil(dueMs ?? 100))));
      },
      pass: () => this.pass(draws.of([1, 50, 200, 1000])),
      lie: () => (this.lie = draws.chance(0.7) ? 0 : this.happens("lie", [-3000, 1000, 60_000])),
      moveWall: () => (this.ahead += this.happens("wall", [-3000, 1000, 10 ** 6])),
      leave: async () => {
        const stream = draws.of(device.streams);
        const { stream: name } = stream.terms;
        this.happens("left", [true]);
        await this.expected(() => stream.leave());
        if (device.streams.includes(stream)) return;
        this.rejoins += 1;
        await this.expected(() => this.join(device, draws.chance(0.5) ? name : `${name.split("-")[0]}-${this.rejoins}`));
      },
      move: async () => {
        const { stream: name, levels } = draws.of(device.streams).terms;
        const level = draws.of(["", ...levels.map((one) => one.name)]);
        await this.expected(() => device.enrol("https://collector", name, "", { level }));
      },
      reopen: async () => {
        this.happens("reopened", [true]);
        if (draws.chance(0.5)) this.boot = `boot ${this.now}`;
        await this.expected(async () => {
          const opened = await Device.open(this.disk, this.parts());
          for (const stream of opened.streams) this.follow(stream);
          this.device = opened;
        });
      },
      restore: async () => {
        if (!this.backup || draws.chance(0.7)) return void (this.backup = structuredClone(this.disk.memory));
        this.happens("restored", [true]);
        [this.disk.memory, this.disk.vouchedFor, this.backup] = [this.backup, false, null];
        // A limit that the copy does not know of is lost: an application sets it again when it opens.
        for (const one of this.limits) one.until = Math.min(one.until, this.now - one.spanMs);
        this.recordLimit();
        await this.expected(() => device.wallet.load());
        for (const stream of device.streams) this.follow(stream); // some are back
      },
      limit: () => this.limit(draws.of(LIMITS)),
      succeed: () => this.succeed(),
    };
    const weights = { poll: 150, pass: 20, turn: 1, leave: 4, move: 3, restore: 0.15, limit: 0.5, reopen: 1 };
    const names = Object.keys(operations);
    let at = draws.next() * names.reduce((sum, name) => sum + (weights[name] ?? 1), 0);
    await operations[names.find((name) => (at -= weights[name] ?? 1) < 0) ?? "poll"]();
    while (this.device.streams.length < STREAMS / 2) await this.expected(() => this.join(this.device, `n${this.rejoins++}`));
  }

  /** Whether each report kept every limit that bound it, by what left before it. */
  judge() {
    const reports = [...this.sent.values()].filter((one) => one !== true).sort((a, b) => a.order - b.order);
    let most = 0;
    for (const [at, { start, end, nano, order }] of reports.entries()) {
      for (const { epsilonNano, spanMs, since, until } of this.limits) {
        if (order < since || start >= until + spanMs) continue;
        let sum = nano;
        for (let before = at - 1; before >= 0 && reports[before].end > start - spanMs - 60_000; before -= 1) {
          if (reports[before].end > start - spanMs) sum += reports[before].nano;
        }
        most = Math.max(most, sum / epsilonNano);
        if (sum > epsilonNano) this.violation("more than the limit", { sum, epsilonNano, end });
      }
    }
    return { reports: reports.length, most };
  }
}

/** Bugs that the judge must find. */
const PLANTS = {
  "ignores-limit": () => (Wallet.prototype.limitLedger = () => new Ledger([])),
  "leaving-forgets": () => {
    const { leave } = Wallet.prototype;
    Wallet.prototype.leave = async function (id) {
      await leave.call(this, id);
      this.store.memory.entries = this.store.memory.entries.filter(({ left }) => !left);
    };
  },
  "loosens-at-once": () => {
    const { setLimit } = Wallet.prototype;
    Wallet.prototype.setLimit = async function (limit) {
      await setLimit.call(this, limit);
      this.store.memory.limits = this.store.memory.limits.filter(({ until }) => until === undefined);
    };
  },
  "counts-own-stream-only": () => {
    const { limitLedger } = Wallet.prototype;
    Wallet.prototype.limitLedger = function (asking) {
      const whole = limitLedger.call(this, asking);
      const own = this.memory.entries.filter((one) => !asking || one.enrolment === asking.id);
      return new Ledger(whole.promises, own.map(({ ownMs, nano }) => [ownMs, nano]), whole.forgotten);
    };
  },
};

const given = new Map();
for (let at = 2; at < process.argv.length; at += 2) given.set(process.argv[at], process.argv[at + 1]);
const operations = Number(given.get("--operations") ?? 2000);
const seed = Number(given.get("--seed") ?? 1);
if (given.has("--plant")) PLANTS[given.get("--plant")]();
const world = new World(seed);
Math.random = () => world.draws.next();
globalThis.crypto.getRandomValues = (bytes) => bytes.map((_, at) => (bytes[at] = world.draws.below(256)));
const began = performance.now();
await world.begin();
for (let turn = 0; turn < operations; turn += 1) await world.operate();
const { reports, most } = world.judge();
const { faults, violations } = world;
const seconds = Math.round(performance.now() - began) / 1000;
console.log(JSON.stringify({ operations, reports, most, seconds, faults, violations: violations.slice(0, 10) }));
