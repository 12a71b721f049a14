/** A device in Node that speaks unasked, leaves, joins again, and holds numbers. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Ledger, Device, LedgerUnusable, MemoryStore, Terms, fromHex, isTurn, leaveMac, momentMs } from "./inside.js";
import { nextTurn, numberOf, toHex } from "./inside.js";
import { vectors } from "./support.js";

const SLOTS = vectors.terms.find(({ sent }) => sent.deadline_ms === 900).sent; // window 4, 1000 ms
const NUMBERS = vectors.terms.find(({ sent }) => sent.query === "mean").sent;
const KEY = fromHex("ab".repeat(32));
const { start_ms: START, interval_ms: INTERVAL, window: WINDOW, deadline_ms: DEADLINE } = SLOTS;
const SPAN = WINDOW * INTERVAL;

/** A collector with a clock of its own, and a machine with one device. */
class World {
  ahead = 0;
  wall = START + 50;
  steady = 5_000;
  sent = SLOTS;
  store = new MemoryStore();
  fail = [];
  reports = [];
  farewells = [];
  asked = 0;
  /** @type {string | null} what notices say of a pause, or of the stream's end */ halt = null;
  refused = 0;
  committed = [];

  pass(ms) {
    this.wall += ms;
    this.steady += ms;
  }

  get nowMs() {
    return this.wall - this.ahead;
  }

  get clock() {
    return { wallMs: () => this.wall, steadyMs: () => this.steady, boot: () => "a" };
  }

  async fetch(address, request) {
    const { pathname } = new URL(address);
    const failure = this.fail.shift();
    if (failure === "lost") throw new TypeError("the network is down");
    if (failure) return new Response("{}", { status: failure });
    if (pathname.endsWith("/devices")) {
      if (request.method === "DELETE") return this.farewells.push(request.headers), Response.json({});
      const device = toHex(await numberOf(fromHex(JSON.parse(request.body).secret)));
      return Response.json({ terms: this.sent, device, key: toHex(KEY), now_ms: this.nowMs });
    }
    if (pathname.endsWith("/rounds")) {
      this.asked += 1;
      if (!this.halted) return Response.json({}, { status: 500 }); // else with slots nobody asks
      const { pin } = await Terms.read(this.sent);
      return Response.json({ serial: 1, pin, t: 1, rounds: [], now_ms: this.nowMs, halt: this.halt });
    }
    return this.take(pathname.split("/").at(-2), request);
  }

  /** Take a report as the collector does: by its own clock, with its own time in the answer. */
  take(round, { body }) {
    if (this.halt) {
      this.refused += 1;
      this.halted = true;
      return Response.json({ type: "urn:ldpstream:problem:stream-x", halt: this.halt }, { status: 410 });
    }
    this.committed.push(this.store.memory.entries.length);
    const t = Number.parseInt(round, 10);
    const now = Math.floor((this.nowMs - START) / INTERVAL) + 1;
    const code = t > now ? "round-early" : t < now ? "round-closed" : "";
    const answer = { type: `urn:ldpstream:problem:${code}`, now_ms: this.nowMs };
    if (code) {
      const headers = { "Retry-After": "0" };
      return Response.json(answer, { status: code === "round-early" ? 425 : 410, headers });
    }
    this.reports.push({ t, at: (this.nowMs - START) % INTERVAL, body: toHex(body) });
    return Response.json({ status: "accepted", now_ms: this.nowMs }, { status: 202 });
  }

  async opened(make = Device.open, options = {}) {
    const device = await make(this.store, {
      clock: this.clock,
      fetcher: (...given) => this.fetch(...given),
      warn: () => undefined,
      sleep: async (ms) => this.pass(Math.ceil(ms)),
      ...options,
    });
    device.observe(1);
    return device;
  }

  async enrolled() {
    const device = await this.opened(Device.create, { firstInstall: true });
    await device.enrol("https://collector", "regions", "");
    return device;
  }

  /** Let a device run until so many reports have arrived, or so long has passed. */
  async run(device, number, mostMs = Infinity) {
    const stop = new AbortController();
    const endMs = this.wall + mostMs;
    const { sleep } = device.io;
    device.io.sleep = async (ms) => {
      await sleep(Math.min(ms, endMs - this.wall));
      if (this.wall >= endMs) stop.abort();
    };
    await device.run(stop.signal, () => this.reports.length >= number && stop.abort());
    device.io.sleep = sleep;
  }
}

/** @type {World} */ let world;
beforeEach(() => (world = new World()));

test("a device of a paused stream asks at its turns, draws nothing, and goes on at once", async () => {
  const device = await world.enrolled();
  await world.run(device, 2);
  world.halt = "paused";
  await world.run(device, Infinity, 2 * SPAN);
  assert.equal(world.refused, 1); // by which it was told
  const asked = world.asked;
  await world.run(device, Infinity, 10 * SPAN);
  assert.equal(world.refused, 1);
  assert.ok(Math.abs(world.asked - asked - 10) <= 1, `${world.asked - asked} questions`);
  world.halt = null;
  await world.run(device, 3, SPAN + INTERVAL);
  assert.equal(world.reports.length, 3);
});

test("a device of a retired stream hardly ever asks again", async () => {
  const device = await world.enrolled();
  world.halt = "retired";
  await world.run(device, Infinity, 2 * SPAN);
  const asked = world.asked;
  await world.run(device, Infinity, 50 * SPAN);
  assert.deepEqual([world.refused, world.asked], [1, asked]);
  assert.ok((await device.dueInMs()) > 5 * SPAN);
});

const into = () => momentMs(KEY, "regions", DEADLINE);

test("a device reports in its slots, at its moment, unasked, with all of epsilon", async () => {
  const device = await world.enrolled();
  await world.run(device, 12);
  assert.equal(world.asked, 0, "nobody was asked for rounds");
  for (const { t, at } of world.reports) {
    assert.ok(await isTurn(KEY, WINDOW, t), `${t}`);
    assert.equal(at, await into());
  }
  assert.deepEqual(
    world.reports.map(({ t }, turn) => t - 4 * turn),
    Array(12).fill(world.reports[0].t),
    "once in every window",
  );
  assert.ok(Math.min(...world.committed) >= 1, "on disk before it leaves");
});

test("whether it is asked or not makes no difference", async () => {
  const device = await world.enrolled();
  const turn = await nextTurn(KEY, WINDOW, 1);
  const other = turn === 1 ? 2 : 1;
  world.pass((other - 1) * INTERVAL);
  const round = { t: other, name: `${other}-publication`, epsilonNano: 1, deadlineMs: 2 ** 50, rate: [1, 1] };
  const { silence } = await device.account.consider(device.terms.pin, round, () => 1);
  assert.equal(silence, "the coin, or the slot, said no");
});

test("a slot that changes with the epoch costs a turn that comes too soon, and no more", async () => {
  const device = await world.enrolled();
  const epochs = 6;
  await world.run(device, Infinity, epochs * 16 * SPAN);
  const turns = world.reports.map(({ t }) => t);
  assert.ok(turns.length >= epochs * 16 - epochs, `${turns.length}`);
  const gaps = turns.slice(1).map((t, at) => t - turns[at]);
  assert.ok(Math.min(...gaps) >= WINDOW);
  assert.ok(new Set(turns.map((t) => t % WINDOW)).size > 1, "it is not always the same slot");
  assert.deepEqual(device.status().refusals, []);
});

test("who was asleep at the moment reports at once; after the deadline, in the next slot", async () => {
  const device = await world.enrolled();
  const turn = await nextTurn(KEY, WINDOW, 1);
  world.pass((turn - 1) * INTERVAL - 50 + 700);
  assert.equal(await device.dueInMs(), 0);
  assert.equal((await device.poll()).delivered[0].round.t, turn);
  assert.equal((await device.poll()).delivered.length, 0);
  world.pass(SPAN + 250);
  assert.equal((await device.poll()).delivered.length, 0, "only 50 ms are left");
  assert.equal(await device.dueInMs(), SPAN - 950 + (await into()));
});

test("poll takes a turn that comes within its wait, and says when to come back", async () => {
  const device = await world.enrolled();
  const dueMs = await device.dueInMs();
  const turn = await nextTurn(KEY, WINDOW, 1);
  assert.equal(dueMs, (turn - 1) * INTERVAL + (await into()) - 50);
  assert.equal((await device.poll(0)).delivered.length, 0);
  assert.equal((await device.poll(Math.ceil(dueMs / 1000))).delivered.length, 1);
  assert.equal(world.reports[0].at, await into());
});

test("a clock that is ahead is corrected, and the same bytes are sent when it is time", async () => {
  const device = await world.enrolled();
  world.ahead = 3 * INTERVAL; // the device's clock; a wall clock tells label time until it is corrected
  const late = await world.opened();
  await world.run(late, 1);
  const [{ t, body }] = world.reports;
  const [{ report, t: debited }] = world.store.memory.entries;
  assert.equal(t, debited);
  assert.equal(toHex(report), body);
  assert.equal(world.committed.length > 1, true, "it was sent before");
  assert.equal(world.store.memory.entries.length, 1);
  assert.ok(device);
});

test("a clock that is behind is corrected by the answer, at the cost of one report", async () => {
  await world.enrolled();
  world.ahead = -2 * INTERVAL;
  const late = await world.opened();
  await world.run(late, 2);
  const [first, second] = world.reports.map(({ t }) => t);
  assert.equal(second - first, WINDOW);
  assert.equal(world.committed.length, 3);
});

test("what does not arrive is sent again until it is over, in the same bytes", async () => {
  const device = await world.enrolled();
  world.fail = ["lost", 503, 429];
  await world.run(device, 1);
  assert.equal(world.store.memory.entries.length, 1);
  assert.equal(toHex(world.store.memory.entries[0].report), world.reports[0].body);
});

test("a fault of the disk costs nothing if it passes in time", async () => {
  const device = await world.enrolled();
  const { change } = world.store;
  let faults = 0;
  world.store.change = (act) => {
    if (faults++ < 1) throw new LedgerUnusable("ledger-file", { file: "", what: "full" });
    return change.call(world.store, act);
  };
  await world.run(device, 1);
  assert.equal(world.reports.length, 1);
});

test("who leaves tells the collector, forgets who it was, and remembers what it has spent", async () => {
  const device = await world.enrolled();
  await world.run(device, 1);
  const { secret, enrolments, entries } = structuredClone(world.store.memory);
  const [{ number, secret: own }] = enrolments;
  assert.equal(await device.leave(), true);
  assert.deepEqual(world.farewells, [
    { "Ldp-Device": toHex(number), "Ldp-Mac": toHex(await leaveMac(KEY, "regions")) },
  ]);
  const { memory } = world.store;
  assert.deepEqual(memory.enrolments, []);
  assert.notDeepEqual(memory.secret, secret);
  assert.equal(memory.rejoins, 1);
  const kept = JSON.stringify(memory);
  for (const one of [KEY, own, number]) assert.ok(!kept.includes(JSON.stringify(one)));
  const [{ nano, ownMs }] = entries;
  const left = { t: 0, round: "left", version: 1, nano, report: null, ownMs, atMs: 0 };
  assert.deepEqual(memory.entries, [{ enrolment: 2, left: true, ...left }]);
  assert.equal(device.terms, null);
  await assert.rejects(device.poll(), { code: "not-enrolled" });
  await assert.rejects(device.leave(), { code: "not-enrolled" });
});

test("to join again is no way around the ledger, and gives another number", async () => {
  const device = await world.enrolled();
  await world.run(device, 1);
  const before = device.status().number;
  await device.leave();
  await device.enrol("https://collector", "regions", "");
  assert.notEqual(device.status().number, before);
  assert.equal(device.status().leftNano, 0);
  await world.run(device, 2);
  const [first, second] = world.reports;
  const at = (one) => one.t * INTERVAL + one.at;
  assert.ok(at(second) - at(first) >= SPAN);
});

test("a promise that has ended binds in another stream, until its span has passed", async () => {
  const device = await world.enrolled();
  await world.run(device, 1);
  await device.leave();
  world.sent = { ...SLOTS, epsilon_nano: 5 * 10 ** 9, window: 1 };
  await device.enrol("https://collector", "regions", "");
  assert.equal(device.status().leftNano, 0, "one epsilon was spent, and one was promised");
  world.pass(SPAN);
  assert.equal(device.status().leftNano, 5 * 10 ** 9);
});

test("an unknown past binds a promise that is made later, and larger", async () => {
  const device = await world.enrolled();
  world.store.vouchedFor = false;
  await device.wallet.open();
  await device.leave();
  world.sent = { ...SLOTS, epsilon_nano: 5 * 10 ** 9, window: 8 };
  await device.enrol("https://collector", "regions", "");
  world.pass(2 * SPAN - 1);
  assert.equal(device.status().leftNano, 0);
  world.pass(1);
  assert.equal(device.status().leftNano, 5 * 10 ** 9);
});

test("no time that a collector says silences a device for long", async () => {
  const device = await world.enrolled();
  for (const nowMs of [0, 2 ** 52]) {
    device.account.label.correct(nowMs);
    assert.ok((await device.dueInMs()) <= 3 * SPAN, `${nowMs}`);
  }
});

test("one answer with a wrong time costs no more than a few turns", async () => {
  for (const nowMs of [0, 1, 2 ** 52]) {
    world = new World();
    const device = await world.enrolled();
    const { take } = world;
    world.take = function (...given) {
      const [answer, first] = [take.apply(this, given), world.committed.length === 1];
      return first ? Response.json({ now_ms: nowMs }, { status: 202 }) : answer;
    };
    await world.run(device, Infinity, 6 * SPAN);
    assert.ok(world.reports.length >= 3, `${nowMs}: ${world.reports.length}`);
  }
});

test("however short the deadline, there is a turn", async () => {
  for (const deadline_ms of [1, 10, 500, 2_000, 60_000]) {
    world = new World();
    world.sent = { ...SLOTS, interval_ms: 60_000, deadline_ms };
    const device = await world.enrolled();
    assert.ok((await device.dueInMs()) <= 2 * WINDOW * 60_000, `${deadline_ms}`);
  }
});

/** The timestamps of what is sent to a collector that answers so, in so many windows. */
async function sentTo(answer, windows) {
  const device = await world.enrolled();
  // Of a stream that was left, so that reports are kept for long.
  const left = { enrolment: 1, left: true };
  world.store.memory.ended.push({ ...left, epsilonNano: 32 * 10 ** 9, span: 10 ** 6, until: 10 ** 9 });
  const sent = [];
  world.take = (round) => {
    sent.push(Number.parseInt(round, 10));
    return answer(sent);
  };
  await world.run(device, Infinity, windows * SPAN);
  return sent;
}

test("a collector that refuses, and moves time to and fro, is not flooded", async () => {
  const sent = await sentTo((sent) => {
    if (sent.length > 1000) throw new Error("a flood");
    const [first, second] = new Set(sent);
    const other = sent.at(-1) === first ? second : first;
    const now_ms = second ? START + (other - 1) * INTERVAL + 1 : world.wall;
    return Response.json({ now_ms }, { status: 403 });
  }, 8);
  assert.ok(sent.length < 40, `${sent.length}`);
});

test("what is too early for ever ends with its timestamp, and the next turn comes", async () => {
  const type = "urn:ldpstream:problem:round-early";
  const sent = await sentTo((sent) => {
    const now_ms = START + (sent.at(-1) - 1) * INTERVAL + 1; // it is the right timestamp, and stays so
    return Response.json({ type, now_ms }, { status: 425 });
  }, 40);
  const turns = [...new Set(sent)];
  assert.ok(turns.length > 3, `${turns}`);
  assert.deepEqual(sent, sent.toSorted((one, other) => one - other), "none comes back");
  assert.equal(world.store.memory.entries.length, turns.length, "each is drawn once");
});

test("a device that nobody hears has left all the same, and run ends", async () => {
  const device = await world.enrolled();
  world.fail = ["lost", "lost", "lost"];
  const { sleep } = device.io;
  let told;
  device.io.sleep = async (ms) => {
    device.io.sleep = sleep;
    told = await device.leave();
    await sleep(ms);
  };
  await device.run(new AbortController().signal);
  assert.equal(told, false);
  assert.deepEqual(world.store.memory.enrolments, []);
});

test("another process that has left ends this one's run too", async () => {
  const device = await world.enrolled();
  await (await world.opened()).leave();
  await device.run(new AbortController().signal);
  assert.equal(world.reports.length, 0);
});

test("a device that was left, and may be a copy, counts as spent when it joins", async () => {
  const device = await world.enrolled();
  await device.leave();
  world.store.vouchedFor = false;
  await device.enrol("https://collector", "regions", "");
  assert.equal(device.status().leftNano, 0);
});

test("numbers are reported, clamped, and stood in for", async () => {
  world.sent = { ...NUMBERS, selection: "slots", deadline_ms: 900 };
  const terms = await Terms.read(world.sent);
  const device = await world.enrolled();
  const drawn = [];
  device.wallet.source = {
    below: (bound) => (drawn.push(Number(bound)), 0n),
    coin: () => true,
  };
  const readings = [-20, 60.5, 1e9, -Infinity, 20.25, Number.NaN, "20", null];
  for (const [turn, reading] of readings.entries()) {
    device.observe(reading);
    await world.run(device, turn + 1);
  }
  const outputs = world.reports.map(({ body }) => Number.parseInt(body.slice(4, 6) + body.slice(2, 4), 16));
  const first = outputs[0];
  const levels = outputs.map((output) => output - first);
  assert.deepEqual(levels, [0, 1024, 1024, 0, 512, 0, 0, 0]);
  assert.equal(drawn.filter((bound) => bound === terms.size).length >= readings.length, true);
});

test("a debit leaves the window, whatever fractions the clock has", () => {
  let [seed, span] = [1, 24 * 3600 * 1000];
  for (let tried = 0; tried < 500; tried += 1) {
    seed = (seed * 48271) % 2147483647;
    const at = (seed / 2147483647) * 100_000;
    const ledger = new Ledger([{ epsilonNano: 5, span }], [[at, 5]]);
    const free = ledger.freeFrom(5);
    assert.ok(free !== null && free >= at + span && free < at + span + 1, `${at}`);
    assert.ok(ledger.allows(free, 5) && !ledger.allows(free - 0.001, 5));
    const ended = new Ledger([{ epsilonNano: 5, span, until: at + 7 }], [[at, 5]]);
    assert.ok(ended.allows(ended.freeFrom(5), 5));
  }
});
