/** Levels of privacy, successors of terms, and renewal of keys: what a device does when they change. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { INTERVAL, NANO, SLOTS, START, World, following, mostIn } from "./collector.js";
import { MemoryStore, Terms, isTurn, toHex } from "./inside.js";

const AT = "https://collector";
const CAREFUL = { name: "careful", epsilon_nano: NANO / 2, window: 8, oracle: "grr" };
const LEVELS = { ...SLOTS, version: 3, levels: [CAREFUL] };
const SPAN = SLOTS.window * INTERVAL;

/** @type {World} */ let world;
beforeEach(() => (world = new World()));

async function enrolled(terms = SLOTS, options = {}) {
  world.offer(terms);
  const device = await world.create();
  await device.enrol(AT, terms.stream, "", options);
  device.observe("south");
  return device;
}

// Levels

test("a level is chosen at enrolment, told, and signed", async () => {
  const device = await enrolled(LEVELS, { level: "careful" });
  const [{ level, version, terms }] = world.enrolments;
  assert.deepEqual([level, version, terms], ["careful", 2, 3]);
  assert.deepEqual([device.terms.level, device.terms.epsilonNano, device.terms.window], ["careful", NANO / 2, 8]);
  await world.attend(device, 32);
  assert.equal(world.reports.length, 4, "once in its own window, with all of its own epsilon");
  for (const { terms } of world.reports) assert.equal(terms.level, "careful");
  assert.equal(mostIn(world.reports, 8 * INTERVAL), NANO / 2);
  assert.equal(device.status().level, "careful");
});

test("a level that the stream does not have is refused, and nothing is kept", async () => {
  world.offer(SLOTS);
  const device = await world.create();
  await assert.rejects(device.enrol(AT, "regions", "", { level: "careful" }), { code: "level-unknown" });
  await assert.rejects(device.enrol(AT, "regions", "", { level: "v2" }), { code: "option" });
  assert.deepEqual(world.store.memory.enrolments, []);
});

test("who moves to another level keeps number and ledger, and the stricter promise meanwhile", async () => {
  for (const [from, to] of [["careful", ""], ["", "careful"]]) {
    world = new World();
    const device = await enrolled(LEVELS, { level: from });
    await world.attend(device, 9);
    const { number } = device.status();
    const moved = world.steady;
    await device.enrol(AT, "regions", "", { level: to });
    assert.equal(device.status().number, number);
    assert.equal(device.terms.level, to);
    await world.attend(device, 40);
    const after = world.reports.filter(({ terms }) => terms.level === to);
    assert.ok(after.length >= 4, `${after.length}`);
    const strict = world.reports.filter(({ at }) => at < moved + 8 * INTERVAL);
    assert.ok(mostIn(strict, 8 * INTERVAL) <= (from ? NANO / 2 : 2 * NANO));
    assert.ok(mostIn(world.reports, SPAN) <= NANO);
    for (const one of after) assert.ok(mostIn([one, ...after.filter(({ at }) => at > one.at)], SPAN) <= NANO);
    assert.equal(world.store.memory.enrolments.length, 1);
  }
});

test("to and fro between levels is no way around either", async () => {
  const device = await enrolled(LEVELS);
  for (let turn = 0; turn < 20; turn += 1) {
    await device.enrol(AT, "regions", "", { level: turn % 2 ? "" : "careful" });
    await world.attend(device, 3);
  }
  assert.ok(mostIn(world.reports, SPAN) <= NANO);
  const careful = world.reports.filter(({ terms }) => terms.level);
  for (const { at } of careful) {
    const near = world.reports.filter((one) => one.at > at - 8 * INTERVAL && one.at <= at);
    assert.ok(near.reduce((sum, { terms }) => sum + terms.epsilonNano, 0) <= NANO / 2);
  }
  assert.ok(world.store.memory.ended.length <= 20);
});

test("whoever enrols again and does not say keeps the level", async () => {
  const device = await enrolled(LEVELS, { level: "careful" });
  await device.enrol(AT, "regions", "");
  assert.equal(device.terms.level, "careful");
  assert.deepEqual(world.enrolments.map(({ level }) => level), ["careful", "careful"]);
});

// Successors

/** The labels in the reports from now on, as the collector counts them. */
const told = (reports) => reports.map(({ terms, value }) => `v${terms.version} ${terms.labels[value]}`);

test("a successor is fetched, accepted, and gone over to at its first timestamp", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  const labels = ["west", "süd", "north"];
  const mapped = { labels: ["north", "süd"], from_t: 13 };
  world.offer(SLOTS, await following(SLOTS, { labels }, mapped));
  await world.attend(device, 32);
  const seen = told(world.reports);
  assert.deepEqual(seen, [...Array(3).fill("v1 south"), ...Array(5).fill("v2 süd")]);
  const ts = world.reports.map(({ t }) => t);
  assert.deepEqual(ts.map((t) => t - 4 * ts.indexOf(t)), Array(8).fill(ts[0]), "nobody is silent, and the slot stays");
  device.observe("west");
  await world.attend(device, 4);
  assert.equal(told(world.reports).at(-1), "v2 west");
  assert.deepEqual(world.requests.filter((one) => one.includes("terms")).length, 1);
  assert.equal(device.terms.version, 2);
  assert.equal(mostIn(world.reports, SPAN), NANO);
});

test("names of labels outlive two successors, also in a device opened again", async () => {
  await enrolled(SLOTS, { accept: "not-looser" });
  const second = await following(SLOTS, { labels: ["a", "b"] }, { labels: ["a", "b"], from_t: 5 });
  const third = await following(second, { labels: ["a", "south", "c"] }, { labels: ["a", "c"], from_t: 20 });
  world.offer(SLOTS, second, third);
  const device = await world.open();
  device.observe("north");
  await world.attend(device, 24);
  assert.deepEqual(new Set(told(world.reports)), new Set(["v1 north", "v2 a", "v3 a"]));
  device.observe("south"); // a label of now means itself, whatever it was mapped to once
  await world.attend(device, 4);
  assert.equal(told(world.reports).at(-1), "v3 south");
  device.observe("b");
  await world.attend(device, 4);
  assert.equal(told(world.reports).at(-1), "v3 c");
});

test("a smaller epsilon and a longer window bind with what was spent before", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  world.offer(SLOTS, await following(SLOTS, { epsilon_nano: NANO / 2, window: 8 }, { from_t: 9 }));
  await world.attend(device, 60);
  const [old, now] = [1, 2].map((version) => world.reports.filter(({ terms }) => terms.version === version));
  assert.ok(old.length >= 2 && now.length >= 4);
  assert.equal(mostIn(now, 8 * INTERVAL), NANO / 2);
  const first = now[0].at;
  const before = old.filter(({ at }) => at > first - 8 * INTERVAL);
  assert.deepEqual(before, [], "the new promise counts old debits");
  assert.equal(mostIn(world.reports, SPAN), NANO);
});

test("what the application has not agreed to is not even fetched", async () => {
  const device = await enrolled();
  world.offer(SLOTS, await following(SLOTS));
  await world.attend(device, 20);
  assert.equal(world.requests.filter((one) => one.includes("terms")).length, 0);
  assert.equal(device.terms.version, 1);
  assert.equal(world.reports.length, 5, "and nothing is lost");
});

test("a successor that is looser, forged, or not agreed to is refused once, at no cost", async () => {
  const looser = await following(SLOTS, { epsilon_nano: 2 * NANO });
  const relabelled = await following(SLOTS, { labels: ["x", "y"] });
  const malformed = { ...(await following(SLOTS)), more: 1 };
  for (const [next, accept] of [[looser, "not-looser"], [relabelled, "same-labels"], [malformed, "not-looser"]]) {
    world = new World();
    const device = await enrolled(SLOTS, { accept });
    const pin = "ab".repeat(32);
    if (next === malformed) world.lie = { successor: pin };
    else world.offer(SLOTS, next);
    const fetched = world.fetch.bind(world);
    device.io.fetcher = async (address, request) => {
      const response = await fetched(address, request);
      return address.includes("/terms/") && next === malformed ? Response.json({ terms: next }) : response;
    };
    await world.attend(device, 40);
    assert.equal(device.terms.version, 1);
    assert.equal(world.reports.length, 10);
    // A wrong answer may be followed by a right one: it is asked for again, once after a report.
    const most = next === malformed ? world.reports.length : 1;
    assert.ok(world.requests.filter((one) => one.includes("terms")).length <= most);
    const codes = device.status().refusals.map(({ code }) => code);
    assert.ok(codes.includes("successor-refused") || codes.includes("terms-malformed"), `${codes}`);
  }
});

test("explicit pins are accepted whatever the policy says, and floors hold", async () => {
  const next = await following(SLOTS, { labels: ["x", "y"] });
  const { pin } = await Terms.read(next);
  const device = await enrolled(SLOTS, { accept: { pins: [pin] } });
  world.offer(SLOTS, next);
  await world.attend(device, 8);
  assert.equal(device.terms.pin, pin);
  world = new World();
  const careful = await enrolled(SLOTS, { accept: { accept: "not-looser", leastEpsilon: 0.9 } });
  world.offer(SLOTS, await following(SLOTS, { epsilon_nano: NANO / 2 }));
  await world.attend(careful, 8);
  assert.equal(careful.terms.version, 1);
});

test("a fault while a successor is fetched costs no report, and is tried again", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  world.offer(SLOTS, await following(SLOTS, {}, { from_t: 5 }));
  let faults = 0;
  const fetched = world.fetch.bind(world);
  device.io.fetcher = (address, request) => {
    if (!address.includes("/terms/")) return fetched(address, request);
    faults += 1;
    if (faults < 3) throw new TypeError("lost");
    return faults === 3 ? Promise.resolve(new Response("{}", { status: 500 })) : fetched(address, request);
  };
  await world.attend(device, 40);
  assert.equal(world.reports.length, 10);
  assert.equal(faults, 4);
  assert.equal(device.terms.version, 2);
});

test("one answer with a wrong time does not send a device over for good", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  world.offer(SLOTS, await following(SLOTS, { labels: ["x", "y"] }, { from_t: 10_000, labels: ["x", "y"] }));
  await world.attend(device, 8);
  device.account.label.correct(START + 10_020 * INTERVAL); // as if an answer had said so
  assert.equal(device.terms.version, 2);
  await world.attend(device, 60);
  assert.ok(world.reports.length >= 12, `${world.reports.length}`);
  assert.deepEqual(new Set(told(world.reports)), new Set(["v1 south"]));
  assert.equal(mostIn(world.reports, SPAN), NANO);
});

test("a device that has gone over too early goes on under the terms that are current", async () => {
  for (const changes of [{}, { epsilon_nano: NANO / 2, window: 12 }]) {
    world = new World();
    const device = await enrolled(SLOTS, { accept: "not-looser" });
    const later = await following(SLOTS, changes, { from_t: 10_000 });
    world.offer(SLOTS, later);
    await world.attend(device, 8);
    // One wrong time, and the collector even takes the report.
    device.account.label.correct(START + 10_000 * INTERVAL);
    const turn = await device.account.turn(null);
    device.account.label.correct(turn.atMs);
    world.pass(12 * INTERVAL);
    device.account.label.correct(turn.atMs);
    const { pin } = await Terms.read(later);
    const { send } = await device.account.consider(pin, turn.round, () => 1);
    assert.ok(send);
    device.account.arrived(turn.round);
    device.account.label.correct(world.wall);
    const drawnAt = world.steady;
    const again = await world.open();
    again.observe("south");
    await world.attend(again, 40);
    const after = world.reports.filter(({ at }) => at >= drawnAt);
    assert.ok(after.length >= 6, `${after.length}`);
    assert.deepEqual(new Set(told(after)), new Set(["v1 south"]));
    assert.ok(after[0].at - drawnAt >= (changes.window ?? 4) * INTERVAL, "its promise binds for its span");
  }
});

test("a window that is far longer needs a pin, also step by step", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  const [second, far] = [await following(SLOTS, { window: 16 }), await following(SLOTS, { window: 2 ** 31 })];
  world.offer(SLOTS, far);
  await world.attend(device, 12);
  assert.equal(device.terms.version, 1);
  const third = await following(second, { window: 64 });
  world.offer(SLOTS, second, third);
  await device.enrol(AT, "regions", "", { accept: "not-looser" }).catch(() => undefined); // as at every start
  await world.attend(device, 80);
  assert.equal(device.terms.window, 16);
  await assert.rejects(device.enrol(AT, "regions", "", { accept: "not-looser" }), { code: "terms-differ" });
  await device.enrol(AT, "regions", "", { accept: { pins: [(await Terms.read(third)).pin] } });
  assert.equal(device.terms.window, 64);
});

test("the level of before is the one in the memory, whoever changed it meanwhile", async () => {
  const device = await enrolled(LEVELS);
  const other = await world.open();
  const fetched = world.fetch.bind(world);
  device.io.fetcher = async (address, request) => {
    const answer = await fetched(address, request);
    device.io.fetcher = fetched;
    await other.enrol(AT, "regions", "", { level: "careful" }); // while the collector answers
    return answer;
  };
  await assert.rejects(device.enrol(AT, "regions", ""), { code: "ledger-replaced" });
  assert.equal(world.store.memory.enrolments[0].level, "careful");
});

test("a bad argument is told in one line", async () => {
  const device = await enrolled();
  const wrong = [
    () => device.setLimit([1, "1h"]),
    () => device.setLimit({ epsilon: 1, span: 3600 }),
    () => device.enrol(AT, "regions", null),
    () => device.enrol(AT, "regions", "", { accept: ["x"] }),
    () => device.enrol(AT, "regions", "", { accept: 7 }),
    () => device.enrol(AT, "regions", "", { accept: { pins: 3 } }),
    () => device.enrol(AT, "regions", "", { level: 0 }),
    () => device.enrol(AT, "regions", "", { reserve: "much" }),
    () => device.enrol(AT, "regions", "", { movedFrom: "nowhere" }),
    () => device.enrol(null, "regions", ""),
    () => device.enrol(AT, null, ""),
  ];
  for (const act of wrong) await assert.rejects(act, { code: "option", message: /^[^\n]+$/ }, String(act));
});

test("a report drawn under a successor's promise binds those under the old terms", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  world.offer(SLOTS, await following(SLOTS, { epsilon_nano: NANO / 2, window: 16 }, { from_t: 1000 }));
  await world.attend(device, 4);
  assert.notEqual(device.status().successor, null);
  device.account.label.correct(START + 1016 * INTERVAL);
  world.pass(20 * INTERVAL);
  const turn = await device.account.turn(null);
  device.account.label.correct(turn.atMs);
  await device.account.consider((await Terms.read(world.streams.get("regions")[1])).pin, turn.round, () => 1);
  const ownMs = device.wallet.ownMs();
  device.account.label.correct(world.wall);
  assert.equal(device.account.budget(device.terms).left(ownMs), 0, "half of epsilon is spent, and promised");
  assert.equal(device.account.budget(device.terms).left(ownMs + 16 * INTERVAL - 1), 0);
  assert.equal(device.account.budget(device.terms).left(ownMs + 16 * INTERVAL), NANO, "as the terms of before");
});

test("a device that slept through a version goes through it", async () => {
  await enrolled(SLOTS, { accept: "same-labels" });
  const second = await following(SLOTS, { oracle: "grr" }, { from_t: 10 });
  const third = await following(second, {}, { from_t: 20 });
  world.offer(SLOTS, second, third);
  world.pass(40 * INTERVAL);
  const device = await world.open();
  device.observe("north");
  await world.attend(device, 16);
  assert.deepEqual(told(world.reports), ["v1 north", "v2 north", "v3 north", "v3 north"]);
});

test("enrolling again takes a successor that the application agrees to, and no other", async () => {
  const device = await enrolled();
  const next = await following(SLOTS, { labels: ["x", "y"] }, { from_t: 9 });
  world.offer(SLOTS, next);
  await assert.rejects(device.enrol(AT, "regions", ""), { code: "terms-differ" });
  await device.enrol(AT, "regions", "", { accept: "not-looser" });
  assert.deepEqual([device.terms.version, device.status().successor], [1, (await Terms.read(next)).pin]);
  await world.attend(device, 12);
  assert.deepEqual(told(world.reports), ["v1 south", "v1 south", "v2 x"]);
});

test("a successor that was accepted is not replaced by another one", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  const strict = await following(SLOTS, { window: 16 }, { from_t: 9 });
  world.offer(SLOTS, strict);
  await device.enrol(AT, "regions", "");
  world.offer(SLOTS, await following(SLOTS, { labels: ["x", "y"] }, { from_t: 9 }));
  await assert.rejects(device.enrol(AT, "regions", ""), { code: "terms-differ" });
  assert.equal(device.status().successor, (await Terms.read(strict)).pin);
});

test("versions of one stream at two addresses have one ledger", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  const next = await following(SLOTS, {}, { from_t: 6 });
  world.offer(SLOTS, next);
  await device.enrol(AT, "regions", "");
  await assert.rejects(device.enrol("https://other", "regions", ""), { code: "stream-elsewhere" });
  await device.enrol("https://other", "regions", "", { movedFrom: AT });
  assert.equal(device.streams.length, 1, "what will follow is the same stream");
  await world.attend(device, 12);
  assert.equal(device.terms.version, 2);
  world.offer(SLOTS);
  await assert.rejects(device.enrol("https://third", "regions", ""), { code: "stream-elsewhere" });
  assert.equal(device.streams.length, 1, "so is what was before");
});

test("the promise in force binds the first report under a successor", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  const loose = await Terms.read(await following(SLOTS, { epsilon_nano: 10 * NANO }, { from_t: 6 }));
  assert.equal(device.account.budget(loose).left(device.wallet.ownMs()), NANO);
});

test("a limit that never allows a report is told, also while a successor is still to come", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  world.offer(SLOTS, await following(SLOTS, {}, { from_t: 1000 }));
  await device.enrol(AT, "regions", "");
  await device.setLimit({ epsilon: 0.5, span: "1h" });
  await assert.rejects(device.dueInMs(), { code: "limit-spent" });
});

test("rounds are asked for, and answered, under the version of the device", async () => {
  const open = { ...SLOTS, selection: "open" };
  delete open.deadline_ms;
  const next = await following(open, { labels: ["x", "y"] }, { from_t: 3, labels: ["x", "y"] });
  const pins = [await Terms.read(open), await Terms.read(next)].map(({ pin }) => pin);
  world.offer(open);
  const device = await world.create();
  await device.enrol(AT, "regions", "", { accept: "not-looser" });
  device.observe("south");
  world.offer(open, next);
  const [asked, sent] = [[], []];
  device.io.fetcher = async (address, request) => {
    const { pathname, searchParams } = new URL(address);
    if (pathname.includes("/terms/")) return world.fetch(address, request);
    const version = Number(searchParams.get("version") ?? 1);
    const told = { now_ms: world.wall, successor: version === 1 ? pins[1] : undefined };
    if (request.method === "POST") {
      sent.push([pathname.split("/").at(-2), request.body[1]]);
      return Response.json(told, { status: 202 });
    }
    asked.push(version);
    const { t } = world;
    const suffix = version > 1 ? "-v2" : "";
    const round = { round: `${t}-publication${suffix}`, t, epsilon_nano: NANO / 4, deadline_ms: 2 ** 50, rate: [1, 1] };
    return Response.json({ serial: t, pin: pins[version - 1], rounds: [round], ...told });
  };
  for (let turn = 0; turn < 4; turn += 1) {
    const { refusals } = await device.poll();
    assert.deepEqual(refusals, []);
    world.pass(INTERVAL);
  }
  assert.deepEqual(asked, [1, 1, 2, 2]);
  assert.deepEqual(sent, [["1-publication", 1], ["2-publication", 1], ["3-publication-v2", 1], ["4-publication-v2", 1]]);
});

test("the same name of a round under other terms is another round", async () => {
  const open = { ...SLOTS, selection: "open" };
  delete open.deadline_ms;
  const device = await enrolled(open, { accept: "not-looser" });
  const next = await Terms.read(await following(open, { oracle: "oue" }));
  const round = { name: "x", t: 1, epsilonNano: NANO / 4, deadlineMs: 2 ** 50, rate: [1, 1] };
  const first = await device.account.consider(device.terms.pin, round, () => 1);
  await device.account.accept(next);
  const second = await device.account.consider(next.pin, round, () => 1);
  assert.notDeepEqual(first.send.report, second.send.report);
  assert.equal(world.store.memory.entries.length, 2, "and paid for");
});

// Keys

test("a key of a master secret that is replaced is renewed after the next report", async () => {
  const device = await enrolled();
  const [{ slotKey }] = world.store.memory.enrolments;
  await world.attend(device, 8);
  world.master = "second";
  await world.attend(device, 24);
  assert.deepEqual(world.reports.map(({ master }) => master), [...Array(3).fill("first"), ...Array(5).fill("second")]);
  assert.equal(world.enrolments.length, 2);
  const { headers } = world.enrolments[1];
  assert.equal(headers.Authorization, undefined, "no token is needed");
  assert.equal(headers["Ldp-Device"], device.status().number);
  const [now] = world.store.memory.enrolments;
  assert.deepEqual(now.slotKey, slotKey, "slots and moments stay");
  assert.equal(toHex(now.key), world.keyOf("regions", device.status().number, "", "second"));
  for (const { t } of world.reports) assert.ok(await isTurn(slotKey, SLOTS.window, t));
});

test("a renewal that fails costs no report, and none follows another in a frenzy", async () => {
  const device = await enrolled();
  world.lie = { renew: true };
  const fetched = world.fetch.bind(world);
  device.io.fetcher = (address, request) =>
    address.endsWith("/devices") ? Promise.resolve(new Response("{}", { status: 403 })) : fetched(address, request);
  let asked = 0;
  const { fetcher } = device.io;
  device.io.fetcher = (address, request) => {
    if (address.endsWith("/devices")) asked += 1;
    return fetcher(address, request);
  };
  await world.attend(device, 60);
  assert.equal(world.reports.length, 15);
  assert.ok(asked <= 15, `${asked}`);
});

test("a renewal for another number is not kept", async () => {
  const device = await enrolled();
  const before = structuredClone(world.store.memory.enrolments[0].key);
  world.lie = { renew: true };
  const fetched = world.fetch.bind(world);
  device.io.fetcher = (address, request) =>
    address.endsWith("/devices")
      ? Promise.resolve(Response.json({ device: "0".repeat(32), key: "cd".repeat(32) }))
      : fetched(address, request);
  await world.attend(device, 8);
  assert.deepEqual(world.store.memory.enrolments[0].key, before);
});

// Lies

test("a collector that lies in every notice causes neither a flood, nor a stall, nor silence", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  let lies = 0;
  const take = world.take.bind(world);
  world.take = async (...given) => {
    lies += 1;
    world.lie = { successor: lies.toString(16).padStart(64, "0"), renew: true };
    return take(...given);
  };
  await world.run(device, 60);
  assert.equal(world.reports.length, 15);
  const errands = world.requests.filter((one) => !one.startsWith("POST rounds"));
  assert.ok(errands.length <= 32, `${errands.length}`);
  assert.ok(JSON.stringify(world.store.memory.refusals).length < 5000);
});

test("a collector that never answers errands holds no report up", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  world.lie = { successor: "ab".repeat(32), renew: true };
  const fetched = world.fetch.bind(world);
  device.io.fetcher = (address, request) => {
    if (/devices$|\/terms\//.test(address)) {
      world.pass(SPAN / 4); // as long as an errand is waited for
      throw new TypeError("it takes too long");
    }
    return fetched(address, request);
  };
  await world.run(device, 60);
  assert.equal(world.reports.length, 15);
});

test("another page sees what one has accepted, and moves with it", async () => {
  const device = await enrolled(LEVELS, { accept: "not-looser" });
  const other = await world.open();
  world.offer(LEVELS, await following(LEVELS, { labels: ["x", "y"] }, { labels: ["x", "y"], from_t: 5 }));
  await world.attend(device, 4);
  other.observe("south");
  await world.attend(other, 4);
  assert.equal(told(world.reports).at(-1), "v2 y");
  await other.enrol(AT, "regions", "", { level: "careful" });
  assert.equal((await device.dueInMs()) > 0, true);
  assert.equal(device.terms.level, "careful");
  assert.ok(world.store instanceof MemoryStore);
});

// One ledger for a pin

/** A device that has drawn a report under a successor of w = 8, which its collector has not taken. */
async function drawnUnderSuccessor() {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  const longer = await following(SLOTS, { window: 8 });
  world.offer(SLOTS, longer);
  await world.attend(device, 4);
  world.take = async () => Response.json({}, { status: 400 });
  for (let waited = 0; !world.store.memory.entries.some(({ version }) => version === 2); waited += 1) {
    assert.ok(waited < 40);
    await world.attend(device, 1);
  }
  delete world.take;
  return { device, longer, drawnAt: world.steady };
}

test("a successor that a report was drawn under is not replaced by another one", async () => {
  const { device, longer, drawnAt } = await drawnUnderSuccessor();
  const other = await following(SLOTS, { labels: ["south", "north"] });
  world.offer(SLOTS, other);
  await assert.rejects(device.enrol(AT, "regions", ""), { code: "terms-differ" });
  await world.attend(device, 6);
  const soon = world.reports.filter(({ at }) => at >= drawnAt && at < drawnAt + 6 * INTERVAL);
  assert.deepEqual(soon, [], "its promise binds");
  assert.equal(device.terms.pin, (await Terms.read(longer)).pin);
});

test("terms that follow those of an enrolment have its ledger at another address too", async () => {
  const { device, longer } = await drawnUnderSuccessor();
  world.offer(longer);
  await assert.rejects(device.enrol("https://elsewhere", "regions", ""), { code: "stream-elsewhere" });
  await device.enrol("https://elsewhere", "regions", "", { movedFrom: AT });
  assert.equal(device.streams.length, 1, "the collector has another address");
  assert.equal(world.store.memory.enrolments[0].url, "https://elsewhere");
});

test("terms that were gone over from do not come back beside those that followed", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  const second = await following(SLOTS);
  const third = await following(second);
  world.offer(SLOTS, second, third);
  await world.attend(device, 24);
  assert.equal(device.terms.version, 3);
  for (const old of [SLOTS, second]) {
    world.offer(old);
    await assert.rejects(device.enrol("https://elsewhere", "regions", ""), { code: "stream-elsewhere" });
  }
  world.offer(SLOTS);
  const moved = device.enrol("https://elsewhere", "regions", "", { movedFrom: AT });
  await assert.rejects(moved, { code: "terms-differ" });
  world.offer(SLOTS, second, third);
  assert.equal(device.streams.length, 1);
});

test("a successor that another enrolment has already is not accepted", async () => {
  const second = await following(SLOTS);
  const third = await following(second);
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  world.offer(third);
  await device.enrol("https://elsewhere", "regions", "");
  world.offer(SLOTS, second, third);
  await world.attend(device, 24);
  const { wallet } = device;
  const versions = wallet.memory.enrolments.map((one) => (wallet.successorOf(one) ?? wallet.termsOf(one)).version);
  assert.deepEqual(versions, [1, 3], "each pin has one ledger, and so have those around it");
});

test("terms before those of an enrolment, and a fork of them, have its ledger", async () => {
  const second = await following(SLOTS);
  const device = await enrolled(second);
  for (const other of [SLOTS, await following(SLOTS, { epsilon_nano: NANO / 2 })]) {
    world.offer(other);
    await assert.rejects(device.enrol("https://elsewhere", "regions", ""), { code: "stream-elsewhere" });
  }
});

test("enrolling again where the device is known does not bring it to another enrolment's terms", async () => {
  const [second, other] = [await following(SLOTS), "https://elsewhere"];
  const third = await following(second);
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  world.offer(third);
  await device.enrol(other, "regions", "");
  const refused = { code: "stream-elsewhere" };
  await assert.rejects(device.enrol(AT, "regions", ""), refused);
  world.offer(SLOTS, second);
  await assert.rejects(device.enrol(AT, "regions", ""), refused);
  // Nor when that one was left, whose debits this one has not inherited; who joins again has.
  await device.stream("regions", other).leave();
  await assert.rejects(device.enrol(AT, "regions", ""), refused);
  world.offer(third);
  await device.enrol(other, "regions", "");
  assert.equal(device.streams.length, 2);
  await device.stream("regions", AT).leave();
  await device.stream("regions", other).leave();
  assert.deepEqual(world.store.memory.former, [], "without enrolments nothing is kept");
});

test("a successor that a level does not have is remembered all the same", async () => {
  const device = await enrolled(LEVELS, { accept: "not-looser" });
  const next = await following(LEVELS);
  world.offer(LEVELS, next);
  await device.enrol(AT, "regions", "");
  world.offer(LEVELS);
  await device.enrol(AT, "regions", "", { level: "careful" });
  world.offer(next);
  await assert.rejects(device.enrol("https://elsewhere", "regions", ""), { code: "stream-elsewhere" });
});

test("a memory from before streams that were left were remembered opens", async () => {
  await enrolled(SLOTS);
  delete world.store.memory.former;
  const device = await world.open();
  assert.equal(device.terms.version, 1);
  assert.equal(device.status().leftNano, NANO, "it is sound");
});

test("the promise in force binds the first report under a successor", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  const { wallet, account } = device;
  const looser = await Terms.read({ ...SLOTS, epsilon_nano: 4 * NANO });
  const { promises } = wallet.ledgerOf(account.enrolment, looser);
  assert.ok(promises.some(({ epsilonNano }) => epsilonNano === NANO));
});

test("a limit that never allows a report is told, though other terms begin in a long time", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  world.offer(SLOTS, await following(SLOTS, {}, { from_t: 10 ** 5 }));
  await world.attend(device, 8);
  assert.notEqual(device.status().successor, null);
  await device.setLimit({ epsilon: 0.5, span: "1h" });
  await assert.rejects(device.dueInMs(), { code: "limit-spent" });
});

test("keys are not renewed at every notice, though every other one asks for nothing", async () => {
  const device = await enrolled();
  const { errands, account } = device.streams[0];
  const keys = [];
  account.renew = async (before) => void keys.push(before);
  for (let at = 0; at < 50; at += 1) {
    errands.hear({ nowMs: null, successor: null, renew: true });
    await errands.run();
    errands.hear({ nowMs: null, successor: null, renew: false });
    world.pass(INTERVAL / 10);
  }
  assert.ok(keys.length >= 1 && keys.length <= 5, `${keys.length}`);
});

test("a renewed key that is not taken costs one report, also of a device opened again", async () => {
  let device = await enrolled();
  await world.attend(device, 8);
  const take = world.take;
  world.take = async function (...given) {
    const response = await take.apply(this, given);
    return response.status === 403 ? new Response("{}", { status: 401 }) : response;
  };
  world.lie = { renew: true };
  world.master = "a slip";
  await world.attend(device, 4);
  [world.lie, world.master] = [{}, "first"];
  assert.equal(world.enrolments.length, 2);
  const reports = world.reports.length;
  device = await world.open();
  device.observe("south");
  await world.attend(device, 20);
  assert.ok(world.reports.length >= reports + 3, `${world.reports.length - reports}`);
  assert.equal(world.store.memory.enrolments[0].otherKeys, null);
});

test("one wrong time does not bring terms that follow those that have not begun", async () => {
  let device = await enrolled(SLOTS, { accept: "not-looser" });
  const second = await following(SLOTS, {}, { from_t: 10 ** 5 });
  const third = await following(second, {}, { from_t: 10 ** 5 + 10, until_t: 10 ** 7 });
  world.offer(SLOTS, second, third);
  await world.attend(device, 8);
  assert.equal(device.status().successor, (await Terms.read(second)).pin);
  world.lie = { successor: (await Terms.read(third)).pin, now_ms: START + 10 ** 5 * INTERVAL };
  const reports = world.reports.length;
  while (world.reports.length === reports) await device.poll(8);
  world.lie = {};
  device = await world.open();
  device.observe("south");
  await world.attend(device, 16);
  assert.ok(world.reports.length >= reports + 4);
  assert.equal(device.status().successor, (await Terms.read(second)).pin);
});

test("a wrong answer to the fetch of a successor is not the last", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  const next = await following(SLOTS);
  world.offer(SLOTS, next);
  let wrong = 2;
  const { fetch } = world;
  world.fetch = function (address, request) {
    if (!address.includes("/terms/") || !wrong) return fetch.call(this, address, request);
    wrong -= 1;
    return Response.json({ terms: wrong ? SLOTS : { ...next, window: "a" } });
  };
  await world.attend(device, 40);
  assert.deepEqual([wrong, device.terms.version], [0, 2]);
});

test("a wrong time puts a turn off by windows, and not by spans of the limit", async () => {
  const device = await enrolled();
  await device.setLimit({ epsilon: 30, span: "365d" });
  world.lie = { now_ms: START - 2 * 365 * 86_400_000 };
  while (!world.reports.length) await device.poll(8);
  world.lie = {};
  assert.ok((await device.dueInMs()) <= 3 * SPAN);
});

test("a level that only the terms in force have can be taken", async () => {
  const device = await enrolled(SLOTS, { accept: "not-looser" });
  const next = await following(SLOTS, { levels: [CAREFUL] });
  world.offer(SLOTS, next);
  await world.attend(device, 12);
  assert.equal(device.terms.version, 2);
  await device.enrol(AT, "regions", "", { level: "careful" });
  assert.deepEqual([device.terms.version, device.terms.level], [2, "careful"]);
});

test("a floor that is not given again stays", async () => {
  const device = await enrolled(SLOTS, { accept: { accept: "not-looser", leastEpsilon: 0.5 } });
  await device.enrol(AT, "regions", "", { accept: "not-looser" });
  assert.equal(world.store.memory.enrolments[0].policy.leastEpsilonNano, NANO / 2);
});
