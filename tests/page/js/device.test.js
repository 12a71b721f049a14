/** A device in Node, against a collector made of a few lines, with clocks and disks that lie. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { beforeEach, test } from "node:test";
import { inspect } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";

import {
  Device,
  LedgerUnusable,
  MemoryStore,
  Refused,
  TermsRefused,
  exchange,
  fromHex,
  hmacSha256,
  joined,
  numberOf,
  readRound,
  sleep,
  toHex,
  utf8,
} from "./inside.js";
import { vectors } from "./support.js";

const [{ sent: TERMS, pin: PIN }] = vectors.terms; // window 4, interval 1000 ms, epsilon 1
const KEY = "ab".repeat(32);
const SPAN = 4000;

let clock;
let collector;
let store;
let warned;

/** A page: its clocks may be moved together (`pass`) or apart. */
function page(name, from = clock) {
  return {
    wall: from?.wall ?? TERMS.start_ms + 100,
    steady: 5_000,
    pass(ms) {
      this.wall += ms;
      this.steady += ms;
    },
    wallMs() {
      return this.wall;
    },
    steadyMs() {
      return this.steady;
    },
    boot: () => name,
    endsWithPage: true,
  };
}

beforeEach(() => {
  clock = page("one", null);
  store = new MemoryStore();
  warned = [];
  collector = {
    terms: TERMS,
    pin: PIN,
    serial: 0,
    rounds: [],
    reports: [],
    enrolments: [],
    farewells: [],
    fail: [],
    stored: [],
    after: [],
    questions: [],
    nowMs: () => clock.wall,
    async fetch(address, request) {
      const { pathname, searchParams } = new URL(address);
      collector.stored.push(store.memory.entries.length);
      const failure = collector.fail.shift();
      if (failure === "lost") throw new TypeError("the network is down");
      if (failure instanceof Response) return failure;
      if (failure) return new Response("{}", { status: failure });
      if (pathname.endsWith("/devices")) {
        if (request.method === "DELETE") {
          collector.farewells.push(request.headers);
          return Response.json({ status: "left" });
        }
        const enrolment = JSON.parse(request.body);
        collector.enrolments.push(enrolment);
        const { terms, pin, nowMs } = collector;
        const device = toHex(await numberOf(fromHex(enrolment.secret)));
        const answer = { terms, pin, device, key: KEY, now_ms: nowMs(), ...collector.answer };
        return Response.json(answer, { status: 201 });
      }
      if (pathname.endsWith("/rounds")) {
        collector.after.push(Number(searchParams.get("after")));
        collector.questions.push(request.headers);
        const { serial, pin, rounds, halt, nowMs } = collector;
        return Response.json({ serial, pin, rounds, halt, now_ms: nowMs() });
      }
      collector.reports.push({ path: pathname, body: toHex(request.body), ...request.headers });
      return Response.json({ status: "accepted", now_ms: collector.nowMs() }, { status: 202 });
    },
  };
});

const parts = () => ({
  clock,
  fetcher: collector.fetch,
  warn: (problem) => warned.push(problem.facts.what),
  sleep: async (ms) => clock.pass(Math.ceil(ms)),
});
const open = (given = {}) => Device.open(store, { ...parts(), ...given });
const create = (firstInstall = true) => Device.create(store, { ...parts(), firstInstall });

async function enrolled(firstInstall = true) {
  const device = await create(firstInstall);
  await device.enrol("https://collector", "regions", "token");
  device.observe(1);
  return device;
}

function ask(t, given = {}) {
  collector.serial += 1;
  collector.rounds = [
    {
      round: `${t}-publication`,
      t,
      epsilon_nano: 1_000_000_000,
      purpose: "publication",
      deadline_ms: TERMS.start_ms + t * 1000 - 50,
      rate: [1, 1],
      ...given,
    },
  ];
  clock.pass(Math.max(0, TERMS.start_ms + (t - 1) * 1000 + 100 - clock.wall));
}

test("who listens to a public stream is nobody's business", async () => {
  const device = await enrolled();
  ask(1);
  await device.poll();
  assert.deepEqual(collector.questions, [{}]);
});

test("a question for rounds of a private stream is signed, with the serial it asks from", async () => {
  const device = await enrolled();
  ask(1);
  collector.fail = [404];
  await device.poll();
  await device.poll();
  assert.deepEqual(collector.after, [0, 1]);
  for (const [at, headers] of collector.questions.entries()) {
    const message = utf8(`ldpstream rounds 2\n/v1/streams/regions/rounds\n${collector.after[at]}\n`);
    assert.deepEqual(headers, {
      "Ldp-Device": device.status().number,
      "Ldp-Mac": toHex((await hmacSha256(fromHex(KEY), message)).slice(0, 16)),
    });
  }
});

test("a report is signed, and its debit stored before it leaves", async () => {
  const device = await enrolled();
  assert.equal(collector.enrolments[0].version, 2);
  ask(1);
  const heard = await device.poll();
  assert.equal(heard.delivered.length, 1);
  const [report] = collector.reports;
  const path = "/v1/streams/regions/rounds/1-publication/reports";
  assert.equal(report.path, path);
  const prefix = `ldpstream report 2\nregions\n${PIN}\n1-publication\n\n\n\n`;
  const message = joined(utf8(prefix), fromHex(report.body));
  assert.equal(report["Ldp-Mac"], toHex((await hmacSha256(fromHex(KEY), message)).slice(0, 16)));
  assert.equal(collector.stored.at(-1), 1);
  assert.equal(device.status().leftNano, 0);
  assert.equal(device.status().fullInMs, SPAN);
});

test("epsilon is spent once a window, then refused, then there again", async () => {
  const device = await enrolled();
  const outcomes = [];
  for (let t = 1; t <= 9; t += 1) {
    ask(t);
    const { delivered, refusals } = await device.poll();
    outcomes.push(delivered.length ? "sent" : refusals[0].code);
  }
  const window = ["sent", "budget-spent", "budget-spent", "budget-spent"];
  assert.deepEqual(outcomes, [...window, ...window, "sent"]);
});

test("a device that is asked too early waits within the timestamp", async () => {
  const device = await enrolled();
  ask(1);
  clock.pass(500);
  assert.equal((await device.poll()).delivered.length, 1);
  const before = clock.steady;
  ask(5); // at 100 ms of it: the last report was at 600 ms of the first
  assert.equal((await device.poll()).delivered.length, 1);
  assert.equal(clock.steady - before, SPAN);
  ask(9, { deadline_ms: TERMS.start_ms + 8_500 });
  assert.equal((await device.poll()).refusals[0].code, "budget-spent");
});

test("the same round gets the same bytes, also from a device opened again", async () => {
  const device = await enrolled();
  ask(1);
  collector.fail = [0, "lost", 503];
  await device.poll();
  assert.equal(collector.reports.length, 1);
  assert.equal((await device.poll()).silences[0].why, "the report has arrived");
  const again = await open();
  again.observe(0);
  await again.poll();
  assert.equal(collector.reports.length, 2);
  assert.equal(collector.reports[0].body, collector.reports[1].body);
});

test("a new ledger is silent for w intervals unless this is a first install", async () => {
  const device = await enrolled(false);
  const sent = [];
  for (let t = 1; t <= 6; t += 1) {
    ask(t);
    if ((await device.poll()).delivered.length) sent.push(t);
  }
  assert.deepEqual(sent, [5]);
});

test("a ledger that nobody vouches for counts as spent, once", async () => {
  await enrolled();
  store.vouchedFor = false;
  const device = await open();
  device.observe(1);
  ask(1);
  const { refusals } = await device.poll();
  assert.equal(refusals[0].code, "budget-spent");
  const counted = () => device.status().refusals.find((one) => one.code === "past-unknown").times;
  assert.equal(counted(), 1);
  ask(5);
  assert.equal((await device.poll()).delivered.length, 1);
  assert.equal(counted(), 1);
});

test("a first install is believed only where no other ledger was", async () => {
  const device = await create();
  store.vouchedFor = false;
  await device.account.note(new Refused("round-malformed", { field: "x", given: "y" }));
  await device.enrol("https://collector", "regions", "token");
  assert.equal(device.status().leftNano, 0);
});

test("a device is made once, and by an installer only", async () => {
  await assert.rejects(open(), { code: "ledger-missing" });
  assert.equal(store.memory, null);
  await create();
  await assert.rejects(create(), { code: "ledger-exists" });
  store.memory.format = 5;
  await assert.rejects(open(), { code: "ledger-file" });
});

test("a record of an earlier release is taken over: it counts as spent, and enrols again", async () => {
  const old = { t: 1, round: "1-publication", nano: 5, report: fromHex("0101"), atMs: 1 };
  for (const format of [undefined, 2]) {
    [clock, store] = [page("one", null), new MemoryStore()];
    await enrolled();
    const { secret, enrolments, own } = store.memory;
    const [enrolment] = enrolments;
    store.memory = {
      ...(format === 2 ? { format, own, forgottenMs: null, first: false } : {}),
      number: new Uint8Array(16),
      secret,
      commits: 14,
      enrolment: { ...enrolment, selection: "open", offsetMs: 250 },
      entries: [{ ...old, ownMs: 0 }],
      refusals: [{ code: "round-ahead", times: 3, lastMs: 1, detail: "once" }],
    };
    const device = await open();
    device.observe(1);
    assert.equal(store.memory.format, 4);
    assert.deepEqual(store.memory.secret, secret);
    assert.equal(device.terms, null);
    await assert.rejects(device.poll(), { code: "not-enrolled" });
    const left = { enrolment: 0, left: true };
    assert.deepEqual(store.memory.ended, [{ ...left, epsilonNano: 10 ** 9, span: SPAN, until: SPAN }]);
    await device.enrol("https://collector", "regions", "token");
    const { leftNano, fullInMs, refusals } = device.status();
    assert.deepEqual([leftNano, fullInMs], [0, SPAN]);
    assert.deepEqual(
      refusals.map(({ code, times }) => [code, times]),
      [
        ["round-ahead", 3],
        ["past-unknown", 1],
      ],
    );
    ask(1);
    assert.equal((await device.poll()).refusals[0].code, "budget-spent");
    ask(5);
    assert.equal((await device.poll()).delivered.length, 1);
  }
});

test("a record that was altered counts as spent, and own time begins anew", async () => {
  const alterations = {
    "own time": (memory) => (memory.own.ownMs = Number.NaN),
    "own time that never ends": (memory) => (memory.own.ownMs = Infinity),
    "no own time": (memory) => delete memory.own,
    "a look": (memory) => (memory.own.look.wallMs = "0"),
    "a steady look": (memory) => (memory.own.look.steadyMs = Number.NaN),
    "no look": (memory) => (memory.own.look = null),
    moment: (memory) => (memory.entries[0].ownMs = Number.NaN),
    "a moment to come": (memory) => (memory.entries[0].ownMs = 2 ** 60),
    "no moment": (memory) => delete memory.entries[0].ownMs,
    debit: (memory) => (memory.entries[0].nano = Number.NaN),
    "a debit below nothing": (memory) => (memory.entries[0].nano = -(10 ** 9)),
    entry: (memory) => (memory.entries[0] = null),
    entries: (memory) => (memory.entries = {}),
    "no entries": (memory) => delete memory.entries,
    forgotten: (memory) => memory.forgotten.push({ enrolment: 1, left: false, ownMs: Number.NaN }),
    "nothing said of whose a debit is": (memory) => delete memory.entries[0].enrolment,
    "a limit": (memory) => memory.limits.push({ epsilonNano: 0, span: 1 }),
    "ids that come again": (memory) => (memory.nextId = 1),
    "a reserve": (memory) => (memory.enrolments[0].reserveNano = -1),
    "promises that have ended": (memory) => (memory.ended = null),
    "a promise that has ended": (memory) => (memory.ended = [{ epsilonNano: 10 ** 9 }]),
    "nothing said of what is forgotten": (memory) => delete memory.forgotten,
  };
  for (const [what, alter] of Object.entries(alterations)) {
    [clock, store] = [page("one", null), new MemoryStore()];
    const before = await enrolled();
    ask(1);
    await before.poll();
    alter(store.memory);
    clock = page("another");
    const device = await open();
    device.observe(1);
    const { leftNano, fullInMs } = device.status();
    assert.deepEqual([leftNano, fullInMs], [0, SPAN], what);
    ask(2);
    assert.equal((await device.poll()).refusals[0].code, "budget-spent", what);
    ask(5);
    assert.equal((await device.poll()).delivered.length, 1, what);
  }
});

test("other terms are refused, at enrolment and after", async () => {
  const device = await create();
  const pin = "0".repeat(64);
  await assert.rejects(device.enrol("https://c", "regions", "t", { pin }), TermsRefused);
  await assert.rejects(device.enrol("https://c", "elsewhere", "t"), TermsRefused);
  await assert.rejects(device.enrol("https://c", "a/b", "t"), { code: "option" });
  await assert.rejects(device.enrol("https://c", "regions", "t\n"), { code: "option" });
  await device.enrol("https://c", "regions", "t");
  collector.terms = { ...TERMS, epsilon_nano: 2_000_000_000 };
  collector.pin = null;
  await assert.rejects(device.enrol("https://c", "regions", "t"), TermsRefused);
  collector.pin = "f".repeat(64);
  ask(1);
  assert.equal((await device.poll()).refusals[0].code, "terms-differ");
  assert.equal(collector.reports.length, 0);
});

test("a value is reported only while label time says t, which the collector may correct", async () => {
  const device = await enrolled();
  for (const [t, code] of [
    [2, "round-past"],
    [4, "round-ahead"],
  ]) {
    ask(t);
    collector.nowMs = () => TERMS.start_ms + 2_100;
    assert.equal((await device.poll()).refusals[0].code, code);
  }
  ask(5);
  collector.nowMs = () => TERMS.start_ms + 4_100;
  assert.equal((await device.poll()).delivered.length, 1);
});

test("a key that is for another number is not kept", async () => {
  const device = await create();
  for (const number of ["0".repeat(32), undefined, 7]) {
    collector.answer = { device: number };
    await assert.rejects(device.enrol("https://c", "regions", "t"), { code: "answer-malformed" });
  }
  assert.deepEqual(store.memory.enrolments, []);
});

test("nothing is sent over plain http, unless the application says so", async () => {
  const device = await create();
  await assert.rejects(device.enrol("http://c", "regions", "t"), { code: "plain-http" });
  assert.deepEqual(collector.enrolments, []);
  await device.enrol("http://c", "regions", "t", { plainHttp: true });
  assert.equal(store.memory.enrolments[0].url, "http://c");
});

test("whatever the collector says about the time, own time is the steady clock's", async () => {
  const device = await enrolled();
  ask(1);
  await device.poll();
  for (const t of [5, 100, 3]) {
    ask(t, { deadline_ms: 2 ** 50 });
    collector.nowMs = () => TERMS.start_ms + (t - 1) * 1000;
    clock.steady = 5_000;
    assert.equal((await device.poll()).refusals[0].code, "budget-spent");
  }
  assert.equal(collector.reports.length, 1);
});

test("the wall clock counts for the time a page was closed, and for no other", async () => {
  const device = await enrolled();
  ask(1);
  await device.poll();
  clock.wall += 3_600_000;
  assert.equal(device.status().leftNano, 0, "of a page that is open");
  const left = async (ms) => {
    clock = { ...page("another"), wall: clock.wall + ms };
    return (await open()).status().leftNano;
  };
  clock.wall -= 3_600_000;
  assert.equal(await left(-5_000), 0);
  assert.equal(await left(5_000 + SPAN - 1), 0);
  assert.equal(await left(1), 1_000_000_000);
});

/** What is left to a page that is loaded now. */
async function leftToNextPage() {
  clock = { ...page("the next"), wall: clock.wall };
  return (await open()).status().leftNano;
}

test("a wall clock that is moved while a page is open does not hurry the next page", async () => {
  for (const lost of [false, true]) {
    [clock, store] = [page("one", null), new MemoryStore()];
    const device = await enrolled();
    ask(1);
    await device.poll();
    collector.rounds = [];
    clock.wall += 900;
    const { own } = store.memory;
    await device.poll();
    assert.deepEqual(store.memory.own, own, "so little is not worth a commit");
    clock.wall += 3_600_000;
    if (lost) collector.fail = ["lost"];
    await device.poll().catch(() => undefined);
    assert.equal(await leftToNextPage(), 0);
  }
});

test("a wall clock that is moved is noticed in a pause, and when a page is hidden", async () => {
  const device = await enrolled();
  ask(1);
  clock.pass(500);
  await device.poll();
  clock.pass(SPAN - 600);
  ask(5);
  const [answer, marked] = [device.poll(), store.memory.own.id];
  device.io.sleep = async (ms) => {
    clock.pass(ms - 1);
    clock.wall += 3_600_000;
    device.io.sleep = parts().sleep;
  };
  await answer;
  assert.notEqual(store.memory.own.id, marked);

  collector.rounds = [];
  const stop = new AbortController();
  globalThis.document = new EventTarget();
  try {
    device.io.sleep = async () => {
      clock.wall += 3_600_000;
      globalThis.document.dispatchEvent(new Event("visibilitychange"));
      await new Promise(setImmediate);
      assert.equal(store.memory.own.look.wallMs, clock.wall);
      stop.abort();
    };
    await device.run(stop.signal);
  } finally {
    delete globalThis.document;
  }
});

test("a device that waits for months looks at the clocks now and then", async () => {
  const interval_ms = 90 * 86_400_000;
  [collector.terms, collector.pin] = [{ ...TERMS, interval_ms, window: 1 }, null];
  const device = await enrolled();
  collector.pin = device.terms.pin;
  ask(1, { deadline_ms: 2 ** 50 });
  clock.pass(60 * 86_400_000);
  assert.equal((await device.poll()).delivered.length, 1);
  clock.pass(31 * 86_400_000);
  ask(2, { deadline_ms: 2 ** 50 });
  const stop = new AbortController();
  let longest = 0;
  device.io.sleep = async (ms) => {
    longest = Math.max(longest, ms);
    stop.abort();
  };
  assert.equal((await device.poll()).silences.length, 1);
  assert.equal(longest, 0, "a poll does not wait for longer than a request may take");
  await device.run(stop.signal);
  assert.equal(longest, 60_000);
});

test("a reading that takes long is checked with its beginning and entered with its end", async () => {
  const device = await enrolled();
  ask(1, { epsilon_nano: 500_000_000 });
  device.follow(() => (clock.pass(300), 1));
  const before = device.wallet.ownMs();
  await device.poll();
  assert.equal(store.memory.entries[0].ownMs, before + 300);
  device.follow(() => (clock.pass(1000), 1));
  ask(2);
  collector.rounds[0].epsilon_nano = 500_000_000;
  collector.rounds[0].deadline_ms += 5_000;
  const { silences } = await device.poll();
  assert.equal(silences[0].why, "its timestamp ended while the value was read");
  assert.equal(store.memory.entries.length, 1);
});

test("what is no value is told once, and never silence", async () => {
  const device = await enrolled();
  const draws = [];
  device.wallet.source = {
    below: (bound) => (draws.push(bound), 0n),
    coin: () => true,
  };
  const values = [1, "south", null, undefined, Number.NaN, "elsewhere", 2, -1, {}, null, 1.5];
  const reads = values.map((value) => () => value);
  const fail = () => {
    throw new Error("a sensor");
  };
  reads.push(fail, async () => fail(), fail);
  for (const [at, read] of reads.entries()) {
    device.follow(read);
    ask(5 * at + 1);
    assert.equal((await device.poll()).delivered.length, 1, String(values[at]));
  }
  const bodies = collector.reports.map(({ body }) => Number(`0x${body.slice(-2)}`));
  assert.deepEqual(bodies, [1, 1, ...Array(reads.length - 2).fill(0)]);
  assert.equal(draws.length, 2 * reads.length, "drawn for every report, used or not");
  assert.deepEqual(warned, ["missing", "none of the stream's", "unknown: an exception was thrown"]);
});

test("a promise, of whichever kind, is no value and ends nothing", async (context) => {
  const unhandled = context.mock.fn();
  process.on("unhandledRejection", unhandled);
  try {
    const device = await enrolled();
    const broken = () => {
      const promise = Promise.reject(new Error("z"));
      promise.then = promise.catch = () => {
        throw new Error("a promise that is broken");
      };
      return promise;
    };
    const thenable = { then: (_, reject) => reject(new Error("not now")) };
    const foreign = runInNewContext("(async () => { throw new Error('x'); })");
    const reads = [foreign, async () => Promise.reject(new Error("x")), broken, () => thenable];
    device.value.warn = foreign;
    for (const [at, read] of reads.entries()) {
      device.follow(read);
      ask(5 * at + 1);
      assert.equal((await device.poll()).delivered.length, 1);
    }
    collector.fail = ["lost"];
    const stop = new AbortController();
    const tell = async () => {
      stop.abort();
      throw new Error("nobody listens");
    };
    await device.run(stop.signal, tell, foreign);
    await sleep(20);
    assert.equal(unhandled.mock.callCount(), 0);
  } finally {
    process.off("unhandledRejection", unhandled);
  }
});

test("the label for others stands in where there is one", async () => {
  const { sent, pin } = vectors.terms.find(({ sent }) => sent.other);
  [collector.terms, collector.pin] = [sent, pin];
  const device = await enrolled();
  device.wallet.source = { below: () => 0n, coin: () => true };
  device.value.warn = () => {
    throw new Error("nobody listens");
  };
  device.observe(null);
  ask(1);
  assert.equal((await device.poll()).delivered.length, 1);
  assert.equal(collector.reports[0].body.slice(-2), "01");
});

/** The next commit fails, as on a disk that is full for a moment. */
function failOnce() {
  store.change = async () => {
    delete store.change;
    throw new LedgerUnusable("ledger-file", { file: "memory", what: "disk full" });
  };
}

test("what a fault of the disk left unanswered is asked for again", async () => {
  const device = await enrolled();
  ask(1);
  failOnce();
  await assert.rejects(device.poll(), LedgerUnusable);
  assert.equal((await device.poll()).delivered.length, 1);
  await device.poll();
  assert.deepEqual(collector.after, [0, 0, collector.serial]);
});

test("nothing leaves when the disk does not take the debit", async () => {
  const device = await enrolled();
  failOnce();
  ask(1);
  await assert.rejects(device.poll(), LedgerUnusable);
  assert.equal(collector.reports.length, 0);
});

test("two pages on one ledger spend it once", async () => {
  const one = await enrolled();
  const other = await open();
  other.observe(0);
  ask(1);
  const heard = await Promise.all([one.poll(), other.poll()]);
  const bodies = new Set(collector.reports.map((report) => report.body));
  assert.equal(bodies.size, 1);
  assert.equal(heard.flatMap(({ refusals }) => refusals).length, 0);
  assert.equal(store.memory.entries.length, 1);
});

test("another page's report is not older than this page can know", async () => {
  const one = await enrolled();
  const late = page("late");
  late.wall -= 60_000; // it takes the time before it was opened for nothing
  const other = await open({ clock: late });
  other.observe(0);
  const both = (ms) => (clock.pass(ms), late.pass(ms));
  both(3 * SPAN);
  other.account.label.correct(clock.wall);
  const [t, deadline_ms] = [13, 2 ** 50];
  const round = { round: "a", t, epsilon_nano: 10 ** 9, deadline_ms, rate: [1, 1] };
  const consider = (device, name) =>
    device.account.consider(PIN, readRound({ ...round, round: name }), () => 0);
  assert.ok("send" in (await consider(other, "a")));
  const nowMs = one.account.label.nowMs();
  clock.wall += 3_600_000;
  one.account.label.correct(nowMs);
  assert.equal((await consider(one, "b")).refusal.code, "budget-spent");
});

test("two pages do not hold up each other's time", async () => {
  const one = await enrolled();
  const second = page("second");
  const other = await open({ clock: second });
  other.observe(0);
  const sent = [];
  for (let t = 1; t <= 13; t += 1) {
    ask(t);
    second.pass(clock.wall - second.wall);
    for (const device of t % 2 ? [one, other] : [other, one]) {
      if ((await device.poll()).delivered.length) sent.push(t);
    }
  }
  assert.deepEqual([...new Set(sent)], [1, 5, 9, 13]);
});

test("terms that another page agreed on are not written over", async () => {
  const device = await create();
  const late = await open();
  await device.enrol("https://collector", "regions", "token");
  collector.terms = { ...TERMS, epsilon_nano: 2_000_000_000 };
  collector.pin = null;
  await assert.rejects(late.enrol("https://collector", "regions", "t"), TermsRefused);
  assert.equal(JSON.parse(store.memory.enrolments[0].terms).epsilon_nano, TERMS.epsilon_nano);
  assert.equal(device.terms.pin, PIN);
});

test("a key is not kept beside the number of another device", async () => {
  const late = await create();
  late.io.fetcher = async (...given) => {
    store.memory = null; // another page discards it, and makes its own
    await create();
    return collector.fetch(...given);
  };
  await assert.rejects(late.enrol("https://c", "regions", "t"), { code: "ledger-replaced" });
  assert.deepEqual(store.memory.enrolments, []);
});

test("of two enrolments at once, the second must offer the same terms", async () => {
  const device = await create();
  collector.pin = null;
  const offers = [TERMS, { ...TERMS, epsilon_nano: 2_000_000_000 }];
  Object.defineProperty(collector, "terms", { get: () => offers.shift() });
  const enrol = () => device.enrol("https://c", "regions", "t");
  const found = await Promise.allSettled([enrol(), enrol()]);
  const refused = found.filter(({ status }) => status === "rejected");
  assert.equal(refused.length, 1);
  assert.ok(refused[0].reason instanceof TermsRefused);
});

test("a round that was answered before leaving is another one after", async () => {
  const device = await enrolled();
  ask(1, { epsilon_nano: 1 });
  assert.equal((await device.poll()).delivered.length, 1);
  await device.leave();
  await device.enrol("https://collector", "regions", "token");
  assert.equal((await device.poll()).delivered.length, 1);
  assert.equal(new Set(collector.reports.map((one) => one["Ldp-Device"])).size, 2);
});

test("enrolling again changes neither own time nor the ledger", async () => {
  const device = await enrolled();
  ask(1);
  await device.poll();
  const { own } = store.memory;
  clock.pass(300);
  collector.nowMs = () => clock.wall + 10_000;
  await device.enrol("https://moved", "regions", "token", { movedFrom: "https://collector" });
  const { enrolments, entries } = store.memory;
  const [enrolment] = enrolments;
  assert.equal(enrolments.length, 1);
  assert.deepEqual(store.memory.own, own);
  assert.equal(enrolment.url, "https://moved");
  assert.equal(entries.length, 1);
  assert.equal(entries[0].report, null, "the same bytes would link two numbers");
  assert.equal(device.status().leftNano, 0);
  assert.equal(device.status().t, 11, "but label time is the collector's");
});

test("own time is put on disk now and then while there are debits", async () => {
  const device = await enrolled();
  ask(1);
  await device.poll();
  const marked = () => store.memory.own.ownMs;
  const first = marked();
  collector.rounds = [];
  clock.pass(SPAN / 8 - 1);
  await device.poll();
  assert.equal(marked(), first);
  clock.pass(1);
  failOnce();
  await device.poll(); // a disk that does not take it is no fault
  assert.equal(marked(), first);
  await device.poll();
  assert.equal(marked(), first + SPAN / 8);
  clock.pass(10 * SPAN);
  await device.poll();
  assert.equal(marked(), first + SPAN / 8, "nothing depends on it any more");
});

test("a device answers no more than four rounds a timestamp, over a window", async () => {
  const device = await enrolled();
  ask(1);
  const [one] = collector.rounds;
  collector.rounds = Array.from({ length: 17 }, (_, at) => ({
    ...one,
    round: `a${at}`,
    epsilon_nano: 1,
  }));
  const { delivered, refusals } = await device.poll();
  assert.equal(delivered.length, 16);
  assert.equal(refusals[0].code, "too-many-rounds");
});

test("what is held is asked for only when nothing else speaks against a report", async () => {
  const device = await enrolled();
  const asked = [];
  const consider = (given, pin = PIN) => {
    const deadline_ms = clock.wall + 500;
    const whole = { round: "a", t: 1, epsilon_nano: 1, deadline_ms, rate: [1, 1], ...given };
    return device.account.consider(pin, readRound(whole), ({ stream }) => (asked.push(stream), 1));
  };
  await consider({}, "\ud800");
  await consider({ t: 2 ** 40 });
  await consider({ rate: [0, 1] });
  await consider({ deadline_ms: clock.wall });
  assert.deepEqual(asked, []);
  assert.ok("send" in (await consider({})));
  assert.deepEqual(asked, ["regions"]);
});

/** Three rounds of one timestamp, and what to do when a report of one arrives. */
async function askedForThree(onReport) {
  const device = await enrolled();
  ask(1);
  const [one] = collector.rounds;
  collector.rounds = ["a", "b", "c"].map((round) => ({
    ...one,
    round,
    epsilon_nano: 100_000_000,
  }));
  const answer = collector.fetch;
  device.io.fetcher = async (address, request) => {
    request.signal.throwIfAborted(); // as fetch does
    if (address.endsWith("/reports")) onReport();
    return answer(address, request);
  };
  return device;
}

test("once stopped, no further round is considered", async () => {
  const stop = new AbortController();
  const device = await askedForThree(() => stop.abort());
  await device.run(stop.signal, () => undefined);
  assert.equal(collector.reports.length, 1);
  assert.equal(store.memory.entries.length, 1, "nor is a report drawn that will not be sent");
  await device.poll(); // started again: what was left is still asked for
  assert.deepEqual(collector.after, [0, 0]);
  assert.equal(store.memory.entries.length, 3);
});

test("once stopped, nothing is sent again", async () => {
  for (const failure of ["lost", 503]) {
    store = new MemoryStore();
    const stop = new AbortController();
    let posts = 0;
    const device = await askedForThree(() => {
      posts += 1;
      stop.abort();
      collector.fail = [failure];
    });
    const before = clock.steady;
    await device.run(stop.signal, () => undefined);
    assert.equal(posts, 1);
    assert.equal(clock.steady, before, "nor is there a pause before the end");
    assert.equal(store.memory.entries.length, 1);
  }
});

test("a stop ends a request that is under way", async (context) => {
  context.mock.method(globalThis, "setTimeout", () => undefined);
  const stop = new AbortController();
  const device = await enrolled();
  ask(1);
  const answer = collector.fetch;
  device.io.fetcher = async (address, request) => {
    if (!address.endsWith("/reports")) return answer(address, request);
    setImmediate(() => stop.abort());
    return unanswered(request.signal);
  };
  await device.run(stop.signal, () => undefined);
  assert.equal(collector.reports.length, 0);
});

/** What fetch gives where nobody answers: the reason why it was given up. */
const unanswered = (signal) =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason));
  });

test("no request is waited for without end", async (context) => {
  const patience = [];
  context.mock.method(globalThis, "setTimeout", (act, ms) => {
    patience.push(ms);
    if (device.io.fetcher !== collector.fetch) act();
  });
  const device = await create();
  device.io.fetcher = (_, request) => unanswered(request.signal);
  await assert.rejects(device.enrol("https://c", "regions", "t"), { code: "unreachable" });
  assert.deepEqual(patience, Array(6).fill(10_000));
  device.io.fetcher = collector.fetch;
  await device.enrol("https://c", "regions", "t");
  device.io.fetcher = (_, request) => unanswered(request.signal);
  const { signal } = new AbortController();
  await assert.rejects(device.poll(25, signal), { code: "unreachable" });
  assert.equal(patience.at(-1), 35_000, "longer than the collector may hold the question back");
});

test("malformed announcements are refused, round by round", async () => {
  const device = await enrolled();
  ask(1);
  collector.rounds.unshift({ round: "../../x", t: 1 }, null, {
    ...collector.rounds[0],
    rate: [2, 1],
  });
  const { refusals, delivered } = await device.poll();
  assert.equal(delivered.length, 1);
  assert.deepEqual(
    refusals.map((one) => one.facts.field),
    ["round", "form", "rate"],
  );
  collector.rounds = "no";
  await assert.rejects(device.poll(), { code: "answer-malformed" });
  collector.rounds = [Array(50_000).fill([])]; // one round; parsed, it would be many times larger
  await assert.rejects(device.poll(), { code: "answer-malformed" });
});

test("rounds of a halted stream are not answered", async () => {
  const device = await enrolled();
  ask(1);
  collector.halt = "paused";
  assert.deepEqual((await device.poll()).delivered, []);
  collector.halt = null;
  assert.equal((await device.poll()).delivered.length, 1);
});

test("a question for rounds that is refused is asked anew from the beginning", async () => {
  const device = await enrolled();
  ask(1);
  await device.poll();
  for (const status of [429, 503, 400]) {
    collector.fail = [status];
    await assert.rejects(device.poll(), { code: "collector-refused" });
    await device.poll();
  }
  const { serial } = collector;
  assert.deepEqual(collector.after, [0, serial, serial, 0]);
});

test("what a collector says is cut before it is stored", async () => {
  const device = await enrolled();
  collector.pin = "x".repeat(10 ** 5);
  ask(1);
  await device.poll();
  await device.account.note(new Refused("answer-malformed", { what: "y".repeat(10 ** 6), given: 1 }));
  assert.equal(device.status().refusals.length, 2);
  for (const { detail } of device.status().refusals) assert.ok(detail.length <= 200);
});

test("a pause ends when the signal says stop", async () => {
  const stop = new AbortController();
  const started = performance.now();
  setTimeout(() => stop.abort(), 20);
  await sleep(60_000, stop.signal);
  await sleep(60_000, stop.signal);
  assert.ok(performance.now() - started < 10_000);
});

/** A device of a real server that answers a question for rounds in its own way. */
async function atServer(answer, use) {
  const server = createServer(answer);
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  try {
    const device = await enrolled();
    store.memory.enrolments[0].url = `http://127.0.0.1:${server.address().port}`;
    await device.wallet.open();
    device.io.fetcher = fetch;
    await use(device);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("an answer is read up to 8 MiB, however small it was on its way", async () => {
  const bomb = gzipSync(Buffer.alloc(64 << 20, " "));
  const answer = (_, response) => {
    response.setHeader("Content-Encoding", "gzip");
    response.end(bomb);
  };
  await atServer(answer, async (device) => {
    const before = process.memoryUsage.rss();
    await assert.rejects(device.poll(), { code: "unreachable", message: /has no end/ });
    assert.ok(process.memoryUsage.rss() - before < 100 << 20);
  });
});

/** Collect what nothing holds on to, again and again, until `act` is over. */
async function whileCollecting(act) {
  setFlagsFromString("--expose-gc");
  const timer = setInterval(runInNewContext("gc"), 20);
  try {
    await act();
  } finally {
    clearInterval(timer);
  }
}

test("patience ends in the middle of an answer too, and so does a stop", async () => {
  const drip = (_, response) => {
    response.write("{");
    const timer = setInterval(() => response.write(" "), 10);
    response.on("close", () => clearInterval(timer));
  };
  await atServer(drip, async (device) => {
    const stop = new AbortController();
    const ends = (promise) =>
      assert.rejects(
        Promise.race([promise, sleep(3_000).then(() => assert.fail("it is held"))]),
        { code: "unreachable" },
      );
    await whileCollecting(async () => {
      setTimeout(() => stop.abort(), 300);
      await ends(device.poll(25, stop.signal));
      const { url } = store.memory.enrolments[0];
      await ends(exchange(fetch, url, "/", {}, 300, new AbortController().signal));
      await ends(exchange(fetch, url, "/", {}, 300));
    });
  });
});

test("patience ends where a fetcher does not listen to it", async () => {
  const deaf = () => new Promise(() => undefined);
  await assert.rejects(exchange(deaf, "https://c", "/", {}, 10), { code: "unreachable" });
});

test("a pause of months does not end at once", async () => {
  const stop = new AbortController();
  let over = false;
  const pause = sleep(2 ** 31, stop.signal).then(() => (over = true));
  await sleep(30);
  assert.equal(over, false);
  stop.abort();
  await pause;
});

// What was seen from outside

/** Terms other than those of before, to be offered from now on. */
function offer(given) {
  [collector.terms, collector.pin] = [{ ...TERMS, ...given }, null];
}

/** Let a device join what is offered now, with rounds of its pin. */
async function join(device, url = "https://collector") {
  ({ pin: collector.pin } = await device.enrol(url, "regions", "token"));
  device.observe(1);
}

/** A copy of the memory is brought back, which the witness notices. */
async function restored(kept) {
  [store.memory, store.vouchedFor] = [structuredClone(kept), false];
  return open();
}

/** Which of these timestamps, asked one after another for this much, are answered. */
async function answered(device, timestamps, epsilon_nano) {
  const found = [];
  for (const t of timestamps) {
    ask(t, { epsilon_nano });
    if ((await device.poll()).delivered.length) found.push(t);
  }
  return found;
}

const SMALL = { epsilon_nano: 10 ** 7, window: 1 };
const LARGE = { window: 8 };

test("leaving does not make an unknown past known, and the small epsilon is not all of it", async () => {
  for (const firstInstall of [true, false]) {
    [clock, store] = [page("one", null), new MemoryStore()];
    offer(SMALL);
    let device = await create(firstInstall);
    await join(device);
    if (firstInstall) device = await restored(store.memory);
    await device.leave();
    offer(LARGE);
    await join(device);
    assert.deepEqual(await answered(device, [2, 8, 9], 9 * 10 ** 8), [9], `${firstInstall}`);
  }
});

test("an unknown past binds promises that have ended", async () => {
  offer(LARGE);
  const device = await create();
  await join(device);
  await answered(device, [1], 1);
  await device.leave();
  offer(SMALL);
  await join(device);
  const again = await restored(store.memory);
  assert.deepEqual(await answered(again, [4, 8, 9], 10 ** 7), [9]);
});

test("who leaves with a copy keeps the promise that reports may have been made under", async () => {
  offer(LARGE);
  const device = await create();
  await join(device);
  const kept = structuredClone(store.memory);
  assert.deepEqual(await answered(device, [1], 10 ** 9), [1]);
  const again = await restored(kept);
  await again.leave();
  offer({ window: 1 });
  await join(again);
  assert.deepEqual(await answered(again, [3, 8, 9], 10 ** 9), [9]);
});

test("who has moved, and leaves, keeps the promise that reports were made under", async () => {
  const device = await enrolled();
  assert.deepEqual(await answered(device, [1], 10 ** 9), [1]);
  await device.enrol("https://moved", "regions", "token", { movedFrom: "https://collector" });
  await device.leave();
  offer({ window: 1 });
  await join(device);
  assert.deepEqual(await answered(device, [2, 4, 5], 10 ** 9), [5]);
});

test("a round by the name of a debit that was left keeps its promise all the same", async () => {
  const device = await enrolled();
  ask(1, { round: "left" });
  assert.equal((await device.poll()).delivered.length, 1);
  await device.leave();
  assert.equal(store.memory.ended.length, 1);
});

test("a promise under which nothing was sent ends at once", async () => {
  offer({ epsilon_nano: 1, window: 2 ** 31 });
  const device = await create();
  await join(device);
  await device.leave();
  offer({});
  await join(device);
  assert.deepEqual(await answered(device, [1], 10 ** 9), [1]);
});

test("promises that have ended do not pile up", async () => {
  offer({ window: 1 });
  const device = await create();
  for (let turn = 0; turn < 5; turn += 1) {
    await join(device);
    await answered(device, [1 + 4 * turn], 10 ** 9);
    await device.leave();
  }
  assert.equal(store.memory.ended.length, 1);
});

test("a promise that has ended is kept while another page reads under it", async () => {
  const before = await enrolled();
  await answered(before, [1], 10 ** 9);
  await before.leave();
  offer({ window: 1 });
  await join(before);
  const [first, second] = [await open(), await open()];
  second.observe(0);
  clock.pass(SPAN - 1); // the promise that has ended binds for 1 ms more
  const t = first.status().t;
  const consider = (device, name, reading) => {
    const deadline_ms = 2 ** 50;
    const round = { round: name, t, epsilon_nano: 6 * 10 ** 8, deadline_ms, rate: [1, 1] };
    return device.account.consider(collector.pin, readRound(round), reading);
  };
  store.memory.entries = []; // nothing but the two readings counts
  await first.account.refresh();
  let other;
  const draw = first.wallet.store;
  const { change } = draw;
  draw.change = async function (act) {
    draw.change = change;
    clock.pass(5);
    other = await consider(second, "second", () => 0);
    return change.call(draw, act);
  };
  const one = await consider(first, "first", () => 1);
  assert.ok("send" in other);
  assert.ok(!("send" in one), "both would be 1.2 epsilon within its span");
  assert.equal(store.memory.ended.length, 1);
});

test("nothing that was refused in a stream is remembered when it was left", async () => {
  const device = await enrolled();
  const other = await open();
  for (const one of [device, other]) {
    await one.account.note(new Refused("answer-malformed", { what: "https://collector", given: "" }));
    await one.account.note(new Refused("answer-malformed", { what: "https://collector", given: "" }));
  }
  await device.leave();
  await join(device);
  await other.poll();
  await other.close();
  assert.deepEqual(store.memory.refusals, []);
});

test("the application is told of its value after all reports have left", async () => {
  const seen = [];
  const device = await askedForThree(() => undefined);
  device.value.warn = () => seen.push(collector.reports.length);
  device.observe(null);
  await device.poll();
  assert.deepEqual(seen, [3]);
  ask(5);
  device.observe("elsewhere");
  failOnce();
  await assert.rejects(device.poll(), LedgerUnusable);
  assert.equal(seen.length, 2, "also where there is none");
});

test("no collector is asked in a frenzy, whatever serials it tells", async () => {
  for (const [step, leastMs] of [
    [0, 1000],
    [1, 50],
  ]) {
    [clock, store] = [page("one", null), new MemoryStore()];
    const device = await enrolled();
    const stop = new AbortController();
    const pauses = [];
    device.io.sleep = async (ms) => {
      pauses.push(ms);
      clock.pass(Math.ceil(ms));
      if (pauses.length === 5) stop.abort();
    };
    await device.run(stop.signal, () => (collector.serial += step));
    assert.ok(Math.min(...pauses.slice(1)) >= leastMs, `${pauses}`);
  }
});

test("a collector that wants to be left alone for long ends an enrolment, and a farewell", async () => {
  const later = () => new Response("{}", { status: 503, headers: { "Retry-After": "61" } });
  const device = await enrolled();
  const before = clock.steady;
  collector.fail = [later()];
  await assert.rejects(device.enrol("https://collector", "regions", "token"), { code: "collector-refused" });
  collector.fail = [later()];
  assert.equal(await device.leave(), false);
  assert.equal(clock.steady, before);
  assert.deepEqual(store.memory.enrolments, []);
});

test("nothing of the old enrolment is told under the new one", async () => {
  const device = await enrolled();
  const other = await open();
  collector.serial = 10 ** 12;
  collector.fail = [404]; // as if the stream were a private one
  await device.poll();
  await other.poll();
  await device.leave();
  await join(device);
  await other.poll();
  await device.enrol("https://moved", "regions", "token", { movedFrom: "https://collector" });
  await device.poll();
  assert.deepEqual(collector.after, [0, 0, 0, 0]);
  assert.deepEqual(collector.questions.slice(1), [{}, {}, {}]);
});

test("a page that runs ends when another one has left and joined elsewhere", async () => {
  const device = await enrolled();
  const other = await open();
  await other.leave();
  await join(other);
  ask(1);
  await device.run(new AbortController().signal);
  assert.equal(collector.reports.length, 0);
  assert.equal(collector.after.length, 0);
});

test("a page that has read a value does not report it under another number", async () => {
  const device = await enrolled();
  const other = await open();
  ask(1);
  const { change } = store;
  store.change = async (act) => {
    store.change = change;
    await other.leave();
    await join(other);
    return change.call(store, act);
  };
  assert.deepEqual((await device.poll()).delivered, []);
  assert.equal(store.memory.entries.length, 0);
});

test("secrets are in no message, and neither JSON nor a console shows them", async () => {
  const device = await enrolled();
  ask(1);
  await device.poll();
  const { secret, enrolments } = store.memory;
  const [enrolment] = enrolments;
  const bytes = [secret, enrolment.secret, enrolment.key, fromHex(collector.enrolments[0].secret)];
  const texts = [device, device.account, store, device.terms].flatMap((one) => [
    `${one}`,
    JSON.stringify(one),
    inspect(one, { depth: Infinity, maxArrayLength: Infinity }),
  ]);
  const broken = `{"key":"${KEY}","terms":`;
  collector.fail = [new Response(broken, { status: 201 })];
  const enrolling = device.enrol("https://collector", "regions", "t");
  await assert.rejects(enrolling, (fault) => !inspect(fault).includes(KEY.slice(0, 4)));
  for (const one of bytes) {
    const spellings = [toHex(one), [...one].join(","), [...one].join(", "), JSON.stringify(one).slice(1)];
    for (const text of texts) {
      for (const spelling of spellings) assert.ok(!text.includes(spelling.slice(0, 24)), text);
    }
  }
});
