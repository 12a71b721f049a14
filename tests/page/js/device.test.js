/** A device in Node, against a collector made of a few lines, with clocks and disks that lie. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import {
  Device,
  LedgerMoved,
  LedgerUnusable,
  MemoryStore,
  Refused,
  TermsRefused,
  readRound,
} from "../../../src/ldpstream/collector/page/ldpstream.js";
import {
  fromHex,
  hmacSha256,
  toHex,
  utf8,
  joined,
} from "../../../src/ldpstream/collector/page/sdk/bytes.js";
import { vectors } from "./support.js";

const [{ sent: TERMS, pin: PIN }] = vectors.terms; // window 4, interval 1000 ms, epsilon 1
const KEY = "ab".repeat(32);

let clock;
let collector;
let store;

beforeEach(() => {
  clock = { now: TERMS.start_ms + 100, wallMs: () => clock.now, steadyMs: () => clock.now };
  store = new MemoryStore();
  collector = {
    terms: TERMS,
    pin: PIN,
    serial: 0,
    rounds: [],
    reports: [],
    fail: [],
    stored: [],
    after: [],
    nowMs: () => undefined,
    async fetch(address, request) {
      const { pathname, searchParams } = new URL(address);
      collector.stored.push(store.memory.entries.length);
      const failure = collector.fail.shift();
      if (failure === "lost") throw new TypeError("the network is down");
      if (failure) return new Response("{}", { status: failure });
      if (pathname.endsWith("/devices")) {
        const { terms, pin, nowMs } = collector;
        const answer = { terms, pin, key: KEY, selection: "open", now_ms: nowMs() };
        return Response.json(answer, { status: 201 });
      }
      if (pathname.endsWith("/rounds")) {
        collector.after.push(Number(searchParams.get("after")));
        const { serial, pin, rounds } = collector;
        return Response.json({ serial, pin, rounds });
      }
      collector.reports.push({ path: pathname, body: toHex(request.body), ...request.headers });
      return Response.json({}, { status: 202 });
    },
  };
});

const open = () =>
  Device.open(store, {
    clock,
    fetcher: collector.fetch,
    sleep: async (ms) => void (clock.now += Math.ceil(ms)),
  });

async function enrolled(options = { firstInstall: true }) {
  const device = await open();
  await device.enrol("http://collector", "regions", "token", options);
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
  clock.now = Math.max(clock.now, TERMS.start_ms + (t - 1) * 1000 + 100);
}

test("a report is signed, and its debit stored before it leaves", async () => {
  const device = await enrolled();
  ask(1);
  const heard = await device.poll();
  assert.equal(heard.delivered.length, 1);
  const [report] = collector.reports;
  const path = "/v1/streams/regions/rounds/1-publication/reports";
  assert.equal(report.path, path);
  const message = joined(utf8(`POST\n${path}\n1-publication\n`), fromHex(report.body));
  assert.equal(report["Ldp-Mac"], toHex((await hmacSha256(fromHex(KEY), message)).slice(0, 16)));
  assert.equal(collector.stored.at(-1), 1);
  assert.equal(device.status().leftNano, 0);
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

test("any sequence of asks keeps every window within epsilon", async () => {
  const device = await enrolled();
  const spent = new Map();
  for (let t = 1; t <= 40; t += 1) {
    for (const nano of [300_000_000, 700_000_001, 250_000_000]) {
      ask(t, { epsilon_nano: nano, round: `${t}-${nano}` });
      const { delivered } = await device.poll();
      if (delivered.length) spent.set(t, (spent.get(t) ?? 0) + nano);
    }
  }
  for (let t = 1; t <= 40; t += 1) {
    let sum = 0;
    for (let one = t; one < t + 4; one += 1) sum += spent.get(one) ?? 0;
    assert.ok(sum <= 1_000_000_000, `${sum} from ${t}`);
  }
  assert.ok(spent.size > 5);
});

test("the same round gets the same bytes, also from a device opened again", async () => {
  collector.fail = [0, 0];
  const device = await enrolled();
  ask(1);
  collector.fail = [0, "lost", 503];
  await device.poll();
  assert.equal(collector.reports.length, 1);
  assert.equal((await device.poll()).silences[0].why, "the report has arrived");
  const again = await open();
  again.observe(0);
  clock.now = TERMS.start_ms + 200;
  await again.poll();
  assert.equal(collector.reports.length, 2);
  assert.equal(collector.reports[0].body, collector.reports[1].body);
});

test("a new ledger is silent for w timestamps unless this is a first install", async () => {
  const device = await enrolled({});
  const sent = [];
  for (let t = 1; t <= 6; t += 1) {
    ask(t);
    if ((await device.poll()).delivered.length) sent.push(t);
  }
  assert.deepEqual(sent, [5]);
});

test("a ledger that nobody vouches for counts as spent", async () => {
  await enrolled();
  store.isVouchedFor = async () => false;
  const device = await open();
  device.observe(1);
  ask(1);
  const { refusals } = await device.poll();
  assert.equal(refusals[0].code, "budget-spent");
  assert.ok(device.status().refusals.some((one) => one.code === "past-unknown"));
});

test("a first install is believed only where no other ledger was", async () => {
  store.isVouchedFor = async () => false;
  const device = await enrolled({ firstInstall: true });
  assert.equal(device.status().leftNano, 0);
});

test("other terms are refused, at enrolment and after", async () => {
  const device = await open();
  const pin = "0".repeat(64);
  await assert.rejects(device.enrol("http://c", "regions", "t", { pin }), TermsRefused);
  await assert.rejects(device.enrol("http://c", "elsewhere", "t"), TermsRefused);
  await device.enrol("http://c", "regions", "t", { firstInstall: true });
  collector.terms = { ...TERMS, epsilon_nano: 2_000_000_000 };
  collector.pin = null;
  await assert.rejects(device.enrol("http://c", "regions", "t"), TermsRefused);
  device.observe(0);
  collector.pin = "f".repeat(64);
  ask(1);
  assert.equal((await device.poll()).refusals[0].code, "terms-differ");
  assert.equal(collector.reports.length, 0);
});

test("time goes forward only, at the pace of the own clock", async () => {
  const device = await enrolled();
  clock.now = TERMS.start_ms + 5_100;
  ask(3);
  assert.equal((await device.poll()).refusals[0].code, "round-past");
  ask(6);
  clock.now = TERMS.start_ms + 4_100;
  assert.equal((await device.poll()).refusals[0].code, "round-ahead");
});

test("a wall clock that jumps ahead is believed, at the price of the whole epsilon", async () => {
  const device = await enrolled();
  const before = clock.now;
  clock.steadyMs = () => before;
  ask(20);
  assert.equal((await device.poll()).refusals[0].code, "budget-spent");
  assert.ok(device.status().refusals.some((one) => one.code === "past-unknown"));
});

/** The next commit fails, as on a disk that is full for a moment. */
function failOnce() {
  store.commit = async () => {
    delete store.commit;
    throw new LedgerUnusable("ledger-file", { file: "memory", what: "disk full" });
  };
}

test("a jump that cannot be paid for is not believed", async () => {
  const device = await enrolled();
  ask(1);
  assert.equal((await device.poll()).delivered.length, 1);
  const before = clock.now;
  clock.steadyMs = () => before;
  for (const t of [5, 9, 13]) {
    ask(t);
    failOnce();
    await assert.rejects(device.poll(), LedgerUnusable);
    assert.equal((await device.poll()).refusals[0].code, "budget-spent");
  }
  assert.equal(collector.reports.length, 1);
});

test("a jump is paid for when another page writes meanwhile", async () => {
  const device = await enrolled();
  const before = clock.now;
  clock.steadyMs = () => before;
  for (const t of [5, 9, 13]) {
    ask(t);
    const other = await open();
    await other.account.note(new Refused("round-malformed", { field: "x", given: "y" }));
    assert.equal((await device.poll()).refusals[0].code, "budget-spent");
  }
  assert.equal(collector.reports.length, 0);
});

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

test("terms that another page agreed on are not written over", async () => {
  const late = await open();
  const device = await enrolled();
  collector.terms = { ...TERMS, epsilon_nano: 2_000_000_000 };
  collector.pin = null;
  const again = () => late.enrol("http://c", "regions", "t", { firstInstall: true });
  await assert.rejects(again(), LedgerMoved);
  await assert.rejects(again(), TermsRefused);
  assert.equal(JSON.parse(store.memory.enrolment.terms).epsilon_nano, TERMS.epsilon_nano);
  assert.equal(device.terms.pin, PIN);
});

test("of two enrolments at once, the second must offer the same terms", async () => {
  const device = await open();
  collector.pin = null;
  const enrol = () => device.enrol("http://c", "regions", "t", { firstInstall: true });
  const first = enrol();
  collector.terms = { ...TERMS, epsilon_nano: 2_000_000_000 };
  const found = await Promise.allSettled([first, enrol()]);
  assert.deepEqual(
    found.map(({ status }) => status),
    ["fulfilled", "rejected"],
  );
  assert.ok(found[1].reason instanceof TermsRefused);
});

test("enrolling again changes neither the clock nor the ledger", async () => {
  const device = await enrolled();
  ask(1);
  await device.poll();
  const { atMs, offsetMs } = store.memory.enrolment;
  clock.now += 300;
  collector.nowMs = () => clock.now + 10_000;
  await device.enrol("http://moved", "regions", "token", { firstInstall: true });
  const { enrolment, entries } = store.memory;
  assert.deepEqual([enrolment.atMs, enrolment.offsetMs], [atMs, offsetMs]);
  assert.equal(enrolment.url, "http://moved");
  assert.equal(entries.length, 1);
  assert.equal(device.status().leftNano, 0);
});

test("the correction counts from the attempt that was answered", async () => {
  collector.nowMs = () => clock.now - 3_000;
  for (const fail of [[], ["lost", 503, "lost"]]) {
    store = new MemoryStore();
    collector.fail = fail;
    await enrolled();
    assert.equal(store.memory.enrolment.offsetMs, -3_000);
  }
});

test("a clock set right before enrolment is right", async () => {
  const right = clock.now;
  clock.now += 10 * 365 * 86_400_000;
  clock.steadyMs = () => 0;
  const device = await open();
  clock.now = right;
  await device.enrol("http://collector", "regions", "token");
  assert.equal(device.status().t, 1);
  assert.equal(device.status().fullAt, 5);
});

test("what is held is asked for only when nothing else speaks against a report", async () => {
  const device = await enrolled();
  const asked = [];
  const consider = (given, pin = PIN) => {
    const deadline_ms = clock.now + 500;
    const whole = { round: "a", t: 1, epsilon_nano: 1, deadline_ms, rate: [1, 1], ...given };
    return device.account.consider(pin, readRound(whole), (t) => asked.push(t));
  };
  await consider({}, "\ud800");
  await consider({ t: 2 ** 40 });
  await consider({ rate: [0, 1] });
  await consider({ deadline_ms: clock.now });
  assert.deepEqual(asked, []);
  assert.ok("send" in (await consider({})));
  assert.deepEqual(asked, [1]);
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
  device.fetcher = async (address, request) => {
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
    const before = clock.now;
    await device.run(stop.signal, () => undefined);
    assert.equal(posts, 1);
    assert.equal(clock.now, before, "nor is there a pause before the end");
    assert.equal(store.memory.entries.length, 1);
  }
});

test("a stop ends a request that is under way", async (context) => {
  context.mock.method(AbortSignal, "timeout", () => new AbortController().signal);
  const stop = new AbortController();
  const device = await enrolled();
  ask(1);
  const answer = collector.fetch;
  device.fetcher = async (address, request) => {
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
  context.mock.method(AbortSignal, "timeout", (ms) => {
    patience.push(ms);
    return AbortSignal.abort(new Error("too long"));
  });
  const device = await open();
  device.fetcher = (_, request) => unanswered(request.signal);
  await assert.rejects(device.enrol("http://c", "regions", "t"), { code: "unreachable" });
  assert.deepEqual(patience, Array(6).fill(10_000));
  device.fetcher = collector.fetch;
  await device.enrol("http://c", "regions", "t", { firstInstall: true });
  device.fetcher = (_, request) => unanswered(request.signal);
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
});
