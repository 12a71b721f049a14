/** A device in Node, against a collector made of a few lines, with clocks and disks that lie. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import {
  Device,
  LedgerUnusable,
  MemoryStore,
  TermsRefused,
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
    async fetch(address, request) {
      const { pathname } = new URL(address);
      collector.stored.push(store.memory.entries.length);
      const failure = collector.fail.shift();
      if (failure === "lost") throw new TypeError("the network is down");
      if (failure) return new Response("{}", { status: failure });
      if (pathname.endsWith("/devices")) {
        const { terms, pin } = collector;
        return Response.json({ terms, pin, key: KEY, selection: "open" }, { status: 201 });
      }
      if (pathname.endsWith("/rounds")) {
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
    sleep: async (ms) => void (clock.now += ms),
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

test("nothing leaves when the disk does not take the debit", async () => {
  const device = await enrolled();
  store.commit = async () => {
    throw new LedgerUnusable("ledger-file", { file: "memory", what: "disk full" });
  };
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
