/**
 * A hostile collector around the JavaScript device, as a seeded random state machine, and a judge
 * who looks at nothing but what left the device and at the world's own time.
 *
 *     node hostile.mjs --operations 2000 --seed 1 [--plant NAME] [--until WHAT]
 *
 * prints {operations, reports, faults, violations}, the same in every run; it ends early once a
 * violation of the kind WHAT was found. The draws are the world's: every reading gets a
 * label of its own, and the randomiser always tells the truth, so that a report says which reading
 * it is of. A page that is loaded asks the wall clock how long it was closed (docs/dashboard.md), so
 * the world sets a clock that is ahead right before it loads one; at all other times, and for
 * devices whose steady clock survives, it is moved at will.
 *
 * Every world has a twin, with the same secret, clocks and draws, in which the device holds other
 * values, and none at other times: what leaves must be the same, apart from reports and their MACs, and
 * the tag that a report may end with too.
 */

import { createHash, createHmac } from "node:crypto";

import {
  Account,
  Change,
  Device,
  DeviceError,
  Grr,
  HeldValue,
  LabelTime,
  Ledger,
  LedgerUnusable,
  MemoryStore,
  OwnTime,
  Tagged,
  Terms,
  isTurn,
} from "./inside.js";

const NANO = 1_000_000_000;
const KEY = "ab".repeat(32);
const LABELS = Array.from({ length: 1000 }, (_, at) => `${at}`);
const COUNTRIES = ["de", "fr"];
const OPERATIONS_PER_WORLD = 40;
const INTERVAL_MS = 1000;
const WINDOW = 4;
const SPAN_MS = WINDOW * INTERVAL_MS;

/** Numbers that look random and are the same in every run (mulberry32). */
class Draws {
  constructor(seed) {
    this.state = seed >>> 0;
  }

  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(bound) {
    return Math.floor(this.next() * bound);
  }

  chance(share) {
    return this.next() < share;
  }

  of(choices) {
    return choices[this.below(choices.length)];
  }
}

// Hashes of Web Crypto come from other threads, in an order that no seed repeats.
const { subtle } = globalThis.crypto;
subtle.digest = async (_, bytes) => createHash("sha256").update(bytes).digest();
subtle.importKey = async (_, key) => key;
subtle.sign = async (_, key, bytes) => createHmac("sha256", key).update(bytes).digest();

/** Yield to the other pages, so that what they do interleaves. */
async function breathe(draws) {
  for (let turns = draws.below(4); turns > 0; turns -= 1) await new Promise(setImmediate);
}

/** A disk that is slow, fails, and may be brought back to an older state. */
class Disk extends MemoryStore {
  #queue = Promise.resolve();

  constructor(world) {
    super();
    this.world = world;
    /** How far the wall clock was ahead at the mark on disk. */
    this.markAhead = world.ahead;
    /** What was on disk, ever: a debit may be forgotten while its report is on its way. */
    this.committed = new Set();
  }

  async load() {
    await breathe(this.world.draws);
    return super.load();
  }

  /** Transactions come one after another, and are on disk some time after `act`. */
  change(act) {
    const done = this.#queue.then(() => this.transact(act));
    this.#queue = done.catch(() => undefined);
    return done;
  }

  async transact(act) {
    const { world } = this;
    await breathe(world.draws);
    const fault = world.pages.length ? world.happens("disk", ["before", "after"], 0.04) : null;
    if (fault === "before") throw new LedgerUnusable("ledger-file", { file: "", what: "full" });
    const change = new Change(structuredClone(this.memory), this.vouchedFor);
    const result = act(change);
    const ahead = world.ahead;
    await this.settle(change, ahead);
    if (fault === "after") throw new LedgerUnusable("ledger-file", { file: "", what: "gone" });
    return structuredClone(result);
  }

  async settle(change, ahead) {
    await breathe(this.world.draws);
    if (change.made) this.write(change.memory, ahead);
  }

  write(memory, ahead) {
    if (JSON.stringify(memory.own) !== JSON.stringify(this.memory.own)) this.markAhead = ahead;
    [this.memory, this.vouchedFor] = [structuredClone(memory), true];
    for (const { t, round, report } of memory.entries) this.committed.add(`${t} ${round} ${report}`);
  }
}

/** A page, or a process on a machine: its clocks, its device, and what label time it was told. */
class Page {
  constructor(world, boot) {
    this.world = world;
    this.bootName = boot.name;
    this.boot = () => this.bootName;
    this.machine = boot;
    this.endsWithPage = world.kind === "page";
  }

  wallMs() {
    return this.world.wall;
  }

  steadyMs() {
    return this.world.now - this.machine.since - this.machine.asleep;
  }

  /** The clock by which label time goes on: that of a page may stand still asleep. */
  countedMs() {
    return this.endsWithPage ? this.wallMs() : this.steadyMs();
  }

  async load() {
    const { world } = this;
    this.device = await Device.open(world.disk, {
      clock: this,
      // The first question of a report is for the label that stands in; the coin tells the truth.
      source: {
        below: (bound) => BigInt(world.next % Number(bound)),
        coin: (favour, total) => world.toss(this, Number(favour) / Number(total)),
      },
      warn: () => (world.warned = !world.warned) || fail(),
      fetcher: (address, request) => world.collect(this, address, request),
      sleep: async (ms) => {
        await breathe(world.draws);
        world.pass(Math.ceil(ms));
      },
    });
    this.hold();
  }

  async poll() {
    await this.device.wallet.load();
    this.hold();
    await this.device.poll();
  }

  /** Hold values for the stream, and listen in on it: another one after it was left. */
  hold() {
    const { world } = this;
    const { account } = this.device;
    if (account === this.account) return;
    this.account = account;
    this.device.follow(() => world.read(this));
    this.device.describe({ country: COUNTRIES[0] });
    [this.told, this.toldAt] = [this.wallMs(), this.countedMs()];
    const { label } = account;
    const correct = label.correct.bind(label);
    label.correct = (ms) => {
      [this.told, this.toldAt] = [ms, this.countedMs()];
      correct(ms);
    };
    const consider = account.consider.bind(account);
    account.consider = (pin, asked, ...given) => {
      this.asked = asked;
      return consider(pin, asked, ...given);
    };
  }

  /** The timestamp that it is by what this page was told. */
  get t() {
    return this.world.terms.timestampAt(this.told + this.countedMs() - this.toldAt);
  }
}

const fail = () => {
  throw new Error("a sensor that is broken");
};

class World {
  /** @param {number} apart by how many labels its values are others than its twin's */
  constructor(draws, terms, found, plant, apart = 0) {
    Object.assign(this, { draws, terms, found, plant, apart });
    this.kind = draws.of(["page", "machine"]);
    this.unasked = terms.selection === "slots";
    this.now = terms.startMs + draws.below(100_000);
    this.ahead = 0;
    this.pages = [];
    this.boots = 0;
    this.lie = 0;
    this.loses = null;
    this.readings = [];
    this.sent = new Map();
    this.asks = [];
    this.backups = [];
    this.restored = false;
    this.serial = 0;
    this.warned = false;
    /** What left the device, apart from reports and MACs. */
    this.transcript = [];
    this.disk = plant.disk ? new plant.disk(this) : new Disk(this);
  }

  get wall() {
    return this.now + this.ahead;
  }

  /** The label that identifies the next reading. */
  get next() {
    return this.readings.length % LABELS.length;
  }

  pass(ms) {
    this.now += ms;
  }

  /** Draw a fault of this kind, and count it. */
  happens(kind, choices, share = 1) {
    const fault = this.draws.chance(share) ? this.draws.of(choices) : null;
    if (fault) this.found.faults[kind] = (this.found.faults[kind] ?? 0) + 1;
    return fault;
  }

  violation(what, facts) {
    this.found.violations.push({ what, ...facts });
  }

  async begin() {
    if (this.unasked) this.turns = await turnsOf(this.terms);
    this.machine = this.boot();
    const installer = await Device.create(this.disk, {
      clock: new Page(this, this.machine),
      firstInstall: true,
      fetcher: async (_, { body }) => this.enrolment(body),
    });
    this.disk.memory.secret.fill(0);
    await installer.wallet.open();
    Math.random = () => this.draws.next();
    await installer.enrol("https://collector", "regions", "");
    await this.openPage();
  }

  /** What the collector answers to an enrolment. */
  enrolment(body) {
    const shown = Buffer.from(JSON.parse(body).secret, "hex");
    const hash = createHash("sha256").update("ldpstream number 2\n").update(shown);
    const device = hash.digest("hex").slice(0, 32);
    return Response.json({ terms: JSON.parse(this.terms.canonical), device, key: KEY });
  }

  boot() {
    this.boots += 1;
    return { name: `boot ${this.boots}`, since: this.now, asleep: 0 };
  }

  async openPage() {
    if (this.kind === "page") {
      this.machine = this.boot();
      this.ahead = Math.min(this.ahead, this.disk.markAhead);
    }
    const page = new Page(this, this.machine);
    if (await this.expected(() => page.load())) this.pages.push(page);
  }

  /** Whether it worked; faults of the disk and the network are expected, and no others. */
  async expected(act) {
    try {
      await act();
      return true;
    } catch (error) {
      if (!(error instanceof DeviceError)) this.violation("exception", { error: String(error) });
      return false;
    }
  }

  // What the application does.

  /** Let all pages see the disk as it is now, and hold values for the stream in it. */
  async lookAgain() {
    for (const page of [...this.pages]) {
      await this.expected(async () => {
        await page.device.wallet.open();
        page.hold();
      });
    }
  }

  /** Reading the value: it may take time, or fail. The moment is the world's. */
  read(page) {
    const { draws } = this;
    const value = this.next;
    const reading = { start: this.now, asked: page.asked, value };
    const { t } = page;
    this.pass(this.happens("slow", [1, 300, INTERVAL_MS], 0.15) ?? 0);
    Object.assign(reading, { end: this.now, during: t === reading.asked.t && page.t === t });
    this.readings.push(reading);
    const drawn = this.happens("value", ["null", "NaN", "throws", "async"], 0.2);
    const form = draws.of([Number, String]);
    const what = !this.apart ? drawn : drawn || value % 5 ? null : "null";
    // The draw that stands in was made before: it is this reading's too.
    if (!what) reading.value = (value + this.apart) % LABELS.length;
    if (what === "throws") fail();
    if (what === "async") return Promise.reject(new Error("later"));
    return what === "null" ? null : what === "NaN" ? Number.NaN : form(reading.value);
  }

  /** The coin of a report, which tells the truth: with the odds of what was asked for? */
  toss({ asked: { t, name, epsilonNano } }, odds) {
    const ratio = Math.exp(epsilonNano / NANO);
    const right = ratio / (ratio + LABELS.length - 1);
    if (Math.abs(odds / right - 1) > 1e-9) this.violation("another epsilon", { t, name, odds });
    return true;
  }

  // What the collector does.

  async collect(page, address, request) {
    await breathe(this.draws);
    const { pathname } = new URL(address);
    const { "Ldp-Mac": _, ...headers } = request.headers;
    const size = request.body?.length;
    const tag = this.terms.tags ? request.body?.at?.(-1) : null;
    this.transcript.push(JSON.stringify([this.now, request.method, address, headers, size, tag]));
    const loses = this.loses && this.draws.chance(0.6) ? this.loses : null;
    if (pathname.endsWith("/devices")) {
      if (request.method === "POST") return this.enrolment(request.body);
      if (loses) throw new TypeError("lost");
      return Response.json({ status: "left" });
    }
    if (request.method !== "POST") {
      if (this.unasked) this.violation("asked for rounds", {});
      if (loses === "request") throw new TypeError("lost");
      const { pin, rounds } = this.announced;
      this.serial += 1;
      const now_ms = this.draws.chance(0.9) ? Math.max(0, this.now + this.lie) : undefined;
      return Response.json({ serial: this.serial, pin, rounds, now_ms });
    }
    this.judge(page, pathname.split("/").at(-2), request.body, headers["Ldp-Device"]);
    if (loses) throw new TypeError("lost");
    const now_ms = this.draws.chance(0.9) ? Math.max(0, this.now + this.lie) : undefined;
    const status = this.draws.of([202, 202, 202, 200, 503, 409, 425]);
    const type = status === 425 ? "urn:ldpstream:problem:round-early" : "";
    return Response.json({ now_ms, type }, { status });
  }

  /** A report has left: was it on disk, and is it the only one of its round under this number? */
  judge({ asked }, name, report, number) {
    const { t } = asked;
    if (asked.name !== name) this.violation("another round", { t, name });
    if (this.unasked && !this.turns.has(t)) this.violation("out of turn", { t, name });
    if (!this.disk.committed.has(`${t} ${name} ${report}`)) this.violation("sent before committed", { t, name });
    const value = report[1] + 256 * report[2];
    const reading = this.readings.findLast((one) => one.value === value);
    if (!reading) return this.violation("a value that nobody read", { t, value });
    const key = `${number} ${t} ${name}`;
    const known = this.sent.get(key) ?? [];
    if (known.includes(reading)) return undefined;
    if (reading.asked.t !== t || reading.asked.name !== name) {
      this.violation("a reading for another round", { t, name });
    }
    const before = known.at(-1);
    if (before && reading.start - before.end < SPAN_MS) {
      this.violation("drawn again", { t, name, apart: reading.start - before.end });
    }
    if (!reading.during) this.violation("another timestamp", { t, name });
    this.sent.set(key, [...known, reading]);
    this.found.reports += 1;
    return undefined;
  }

  /** Whether every span of w intervals holds at most epsilon, of the world's own time. */
  judgeSpans() {
    const reports = [...this.sent.values()].flat();
    for (const { end: begin } of reports) {
      const touched = reports.filter(({ start, end }) => end >= begin && start < begin + SPAN_MS);
      const sum = touched.reduce((total, { asked }) => total + asked.epsilonNano, 0);
      if (sum > NANO) this.violation("more than epsilon", { sum, reports: touched.length });
    }
    const unknown = this.disk.memory.refusals.find(({ code }) => code === "past-unknown");
    if (unknown && !this.restored) this.violation("false past unknown", {});
  }

  round(t, name = this.draws.of(["a", "b", "c"])) {
    const nano = [1, NANO / 4, Math.floor(NANO / 3), NANO / 2, NANO, NANO, NANO + 1, 32 * NANO];
    return {
      round: name,
      t,
      epsilon_nano: this.draws.of(nano),
      deadline_ms: this.now + this.lie + this.draws.of([0, 200, 1000, 5000, 2 ** 45, 2 ** 45]),
      rate: this.draws.chance(0.75) ? [1, 1] : this.draws.of([[1, 2], [2, 3], [0, 1], [3, 2]]),
    };
  }

  async announce(rounds, pin = this.terms.pin) {
    this.announced = { pin, rounds };
    this.asks.push(...rounds);
    if (this.unasked) await this.passToTurn();
    const heard = this.pages.filter(() => this.draws.chance(0.7));
    const all = heard.length ? heard : [this.draws.of(this.pages)];
    await Promise.all(all.map((page) => this.expected(() => page.poll())));
  }

  /** A device with slots takes its turns: let one come near, now and then. */
  async passToTurn() {
    if (!this.draws.chance(0.5)) return;
    const page = this.draws.of(this.pages);
    const dueMs = await page.device.dueInMs().catch(() => 0);
    this.pass(Math.min(Math.max(0, Math.ceil(dueMs) - this.draws.of([0, 0, 300])), 2 * SPAN_MS));
  }

  get t() {
    return this.terms.timestampAt(this.now + this.lie);
  }

  /** One operation, drawn. */
  async operate() {
    const { draws } = this;
    const operations = {
      ask: () => this.announce([this.round(this.t)]),
      askAround: () => this.announce([this.round(this.t + draws.of([-2, -1, 1, 2]))]),
      askSeveral: () =>
        this.announce([-1, 0, 0, 0, 1].map((step, at) => this.round(this.t + step, `s${at}`))),
      askAgain: () => {
        const again = this.asks.length ? draws.of(this.asks.slice(-6)) : this.round(this.t);
        return this.announce([{ ...again, epsilon_nano: draws.of([NANO / 4, NANO]), rate: [1, 1] }]);
      },
      lieAboutTerms: () => this.announce([this.round(this.t)], "0".repeat(64)),
      pass: () => {
        const early = SPAN_MS - draws.below(2 * INTERVAL_MS);
        this.pass(draws.of([1, 200, INTERVAL_MS, 2 * INTERVAL_MS, early, early, SPAN_MS]));
      },
      sleep: () => {
        const ms = draws.of([INTERVAL_MS, SPAN_MS]);
        const stands = this.happens("asleep", [true]);
        for (const machine of new Set(this.pages.map((page) => page.machine))) {
          if (stands && draws.chance(0.6)) machine.asleep += ms;
        }
        this.pass(ms);
      },
      lose: () => {
        this.loses = this.happens("lost", ["request", "answer"], 0.6);
      },
      lie: () => {
        const steps = [-5, -1, 0.5, 1, 3, 20].map((step) => step * INTERVAL_MS);
        this.lie = this.happens("lie", steps, 0.8) ?? 0;
      },
      moveWall: () => {
        const steps = [-3, -1, 1, 4, 100].map((step) => step * INTERVAL_MS);
        this.ahead += this.happens("wall", steps) ?? 0;
      },
      reload: async () => {
        this.happens("reload", [true]);
        const at = draws.below(this.pages.length);
        const [page] = this.pages.splice(at, 1);
        if (draws.chance(0.5)) await this.expected(() => page.device.close());
        await this.openPage();
      },
      reboot: async () => {
        this.happens("reboot", [true]);
        this.pages = [];
        this.machine = this.boot();
        this.pass(draws.of([1, 100, INTERVAL_MS]));
        await this.openPage();
      },
      tab: async () => {
        if (this.pages.length < 3) await this.openPage();
      },
      leave: async () => {
        this.happens("left", [true]);
        const { device } = draws.of(this.pages);
        await this.expected(() => device.leave());
        // Of its twin the secret must be the same; so no page may hold the one that was drawn.
        if (!this.disk.memory.enrolments[0]) {
          this.disk.memory.secret = Buffer.alloc(32, this.disk.memory.rejoins);
        }
        await this.lookAgain();
        await this.expected(() => device.enrol("https://collector", "regions", ""));
        await this.lookAgain();
      },
      backUp: () => {
        const { memory, markAhead } = this.disk;
        this.backups.push({ memory: structuredClone(memory), markAhead });
      },
      bringBack: async () => {
        // While no page is at it: IndexedDB locks them out.
        const backup = this.backups.length && draws.of(this.backups);
        if (!backup || this.draws.chance(0.5)) return;
        this.happens("restored", [true]);
        this.restored = true;
        this.disk.memory = structuredClone(backup.memory);
        Object.assign(this.disk, { markAhead: backup.markAhead, vouchedFor: false });
        await this.lookAgain();
      },
    };
    const weights = { ask: 8, askSeveral: 4, askAgain: 2, pass: 5, sleep: 2, moveWall: 2, tab: 2 };
    const names = Object.keys(operations).flatMap((name) => Array(weights[name] ?? 1).fill(name));
    await operations[draws.of(names)]();
    if (!this.pages.length) await this.openPage();
  }
}

/** A disk that says it has written what it only means to write. */
class HastyDisk extends Disk {
  async settle(change, ahead) {
    if (change.made) setImmediate(() => setImmediate(() => this.write(change.memory, ahead)));
  }
}

/** A disk that does not tell one mark of own time from another. */
class UnmarkedDisk extends Disk {
  async settle(change, ahead) {
    change.memory.own.id = "";
    await super.settle(change, ahead);
  }
}

/** A disk that mixes up which round a report was of. */
class ForgetfulDisk extends Disk {
  /** @param {any} memory */
  static blurred(memory) {
    memory.entries.forEach((entry, at) => (entry.round = `x${at}`));
    return memory;
  }

  async load() {
    return ForgetfulDisk.blurred(await super.load());
  }

  transact(act) {
    return super.transact((change) => {
      const names = change.memory.entries.map(({ round }) => round);
      const before = [...change.memory.entries];
      ForgetfulDisk.blurred(change.memory);
      const result = act(change);
      before.forEach((entry, at) => (entry.round = names[at]));
      return result;
    });
  }
}

/** Let `act` know the last value that a device has read, as `account.value`. */
function peek(act) {
  const { consider } = Account.prototype;
  Account.prototype.consider = function (pin, asked, reading) {
    const peeking = (...given) => (this.value = reading(...given));
    return act.call(this, asked, (changed = asked, read = peeking) =>
      consider.call(this, pin, changed, read),
    );
  };
}

/** Bugs that the judge must find, each as a change of the honest device. */
const PLANTS = {
  neighbours: () => {
    const { consider } = Account.prototype;
    const { nowMs } = LabelTime.prototype;
    Account.prototype.consider = async function (pin, asked, reading) {
      const wanted = this.enrolled.endOf(asked.t) - 1;
      LabelTime.prototype.nowMs = function () {
        const now = nowMs.call(this);
        return Math.abs(wanted - now) < 2000 ? wanted : now;
      };
      return consider.call(this, pin, asked, reading);
    };
  },
  "forgets-early": () => {
    const { left } = Ledger.prototype;
    Ledger.prototype.left = function (moment) {
      return left.call(this, moment + INTERVAL_MS);
    };
  },
  "leaving-forgets": () => {
    const { leave } = Account.prototype;
    Account.prototype.leave = async function () {
      await leave.call(this);
      Object.assign(this.wallet.store.memory, { entries: [], ended: [] });
    };
  },
  redraws: () => ({ disk: ForgetfulDisk }),
  "commits-late": () => ({ disk: HastyDisk }),
  "ignores-other-pages": () => ({ disk: UnmarkedDisk }),
  "wall-clock": () => {
    OwnTime.prototype.at = function (now) {
      return this.ownMs + Math.max(0, now.wallMs - this.look.wallMs);
    };
  },
  "coin-by-value": () =>
    peek(function (asked, consider) {
      const [favour, total] = asked.rate ?? [1, 1];
      const rate = [((this.value ?? 0) + asked.t) % 2, 1];
      return consider(favour === total ? asked : { ...asked, rate });
    }),
  "silent-by-value": () => {
    const { place } = HeldValue.prototype;
    HeldValue.prototype.place = function (...given) {
      const value = place.apply(this, given);
      if (value % 7 === 3) throw new Hushed("round-past");
      return value;
    };
    peek((_, consider) =>
      consider().catch((error) => {
        if (error instanceof Hushed) return { silence: "" };
        throw error;
      }),
    );
  },
  "value-in-header": () => {
    peek((_, consider) => consider());
    const { open } = Device;
    Device.open = async (...given) => {
      const device = await open(...given);
      const { io, account } = device;
      const { fetcher } = io;
      io.fetcher = (address, request) => {
        const headers = { ...request.headers, "X-Debug": String(account.value) };
        return fetcher(address, { ...request, headers });
      };
      return device;
    };
  },
  "tag-by-value": () => {
    const { payload } = Tagged.prototype;
    Tagged.prototype.payload = function (value, source) {
      return payload.call(value % 7 === 3 ? new Tagged(this.inner, 2) : this, value, source);
    };
  },
  "full-epsilon": () => {
    const { payload } = Grr.prototype;
    Grr.prototype.payload = function (value, source) {
      return payload.call(new Grr(this.labels, NANO), value, source);
    };
  },
};

class Hushed extends DeviceError {}

/** The timestamps, of all that a world can come to, in which its device may speak. */
async function turnsOf({ window }) {
  const turns = new Set();
  for (let t = 1; t < 5000; t += 1) if (await isTurn(Buffer.from(KEY, "hex"), window, t)) turns.add(t);
  return turns;
}

/** Let a world run; return it. */
async function run(draws, turns, found, apart) {
  const world = new World(draws, draws.of([open, open, slots, parts]), found, plant, apart);
  await world.begin();
  for (let turn = 0; turn < turns; turn += 1) await world.operate();
  return world;
}

const given = new Map();
for (let at = 2; at < process.argv.length; at += 2) given.set(process.argv[at], process.argv[at + 1]);
const operations = Number(given.get("--operations") ?? 1000);
const seed = Number(given.get("--seed") ?? 1);
const until = given.get("--until");
const name = given.get("--plant");
const plant = name === undefined ? {} : PLANTS[name]() ?? {};
const found = { operations: 0, reports: 0, faults: {}, violations: [] };
const terms = {
  version: 2,
  stream: "regions",
  query: "histogram",
  labels: LABELS,
  epsilon_nano: NANO,
  window: WINDOW,
  interval_ms: INTERVAL_MS,
  start_ms: 1_700_000_000_000,
  oracle: "grr",
};
const open = await Terms.read({ ...terms, selection: "open" });
const slots = await Terms.read({ ...terms, selection: "slots", deadline_ms: 900 });
const parts = await Terms.read({
  ...JSON.parse(slots.canonical),
  version: 3,
  attributes: [{ name: "country", values: COUNTRIES }],
});
const isFound = () => found.violations.length >= 10 || found.violations.some(({ what }) => what === until);
while (found.operations < operations && !isFound()) {
  const draws = () => new Draws(seed * 1_000_003 + found.operations);
  const before = found.violations.length;
  const turns = Math.min(OPERATIONS_PER_WORLD, operations - found.operations);
  const world = await run(draws(), turns, found);
  world.judgeSpans();
  const twin = await run(draws(), turns, { faults: {}, violations: [] }, 401 + (found.operations % 99));
  const at = world.transcript.findIndex((one, at) => one !== twin.transcript[at]);
  if (at >= 0 || world.transcript.length !== twin.transcript.length) {
    const both = [world.transcript[at], twin.transcript[at]];
    world.violation("depends on the value", { both });
  }
  found.operations += turns;
  for (const one of found.violations.slice(before)) {
    Object.assign(one, { kind: world.kind, world: found.operations });
  }
}
console.log(JSON.stringify(found));
