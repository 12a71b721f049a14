/** One device in several streams, under one limit. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { START, INTERVAL, NANO, SLOTS, World, mostIn } from "./collector.js";
import { LedgerUnusable, limitsAfter, lengthMs, readLimit } from "./inside.js";

const URL_OF = "https://collector";
const SPAN = SLOTS.window * INTERVAL;

/** @type {World} */ let world;
beforeEach(() => (world = new World()));

/** A device that takes part in streams of these names, each with epsilon 1 in 4 s. */
async function joined(names, options = {}, given = {}) {
  const device = await world.create(options);
  for (const name of names) {
    world.offer({ ...SLOTS, stream: name, ...given });
    await device.enrol(URL_OF, name, "");
    device.stream(name).observe("south");
  }
  return device;
}

test("two streams have numbers, budgets and values of their own", async () => {
  const device = await joined(["a", "b"]);
  device.stream("b").observe("north");
  await world.attend(device, 12);
  const of = (name) => world.reports.filter(({ stream }) => stream === name);
  for (const [name, value] of [["a", 1], ["b", 0]]) {
    assert.equal(of(name).length, 3);
    assert.equal(mostIn(of(name), SPAN), NANO);
    assert.deepEqual(new Set(of(name).map((one) => one.value)), new Set([value]));
  }
  assert.equal(new Set(world.reports.map(({ number }) => number)).size, 2);
  assert.equal(mostIn(world.reports, SPAN), 2 * NANO, "without a limit they add up");
  const [one, other] = world.store.memory.enrolments;
  assert.notDeepEqual(one.secret, other.secret);
});

test("a device of several streams is asked for by name", async () => {
  const device = await joined(["a", "b"]);
  for (const act of [() => device.observe(1), () => device.status(), () => device.terms]) {
    assert.throws(act, { code: "several-streams", message: /a, b/ });
  }
  assert.throws(() => device.stream("c"), { code: "stream-not-enrolled", message: /it has a, b/ });
  assert.equal(device.stream("a").terms.stream, "a");
  assert.equal(device.stream("a"), device.stream("a"));
  await device.stream("a").leave();
  device.observe("north");
  assert.equal(device.stream("b").value, device.value, "one is left, and needs no name");
  await world.attend(device, 4);
  assert.deepEqual(world.reports.map(({ stream, value }) => [stream, value]), [["b", 0]]);
});

test("a value, and the time that one collector told, do not follow a device into another stream", async () => {
  const device = await joined(["a"]);
  const held = device.stream("a");
  held.account.label.correct(START + 42 * INTERVAL);
  await held.leave();
  world.offer({ ...SLOTS, stream: "b", other: "north" });
  await device.enrol(URL_OF, "b", "");
  held.observe("south");
  assert.notEqual(device.stream("b").account.label, held.account.label);
  await world.attend(device, 8);
  assert.deepEqual(new Set(world.reports.map(({ stream, value }) => `${stream} ${value}`)), new Set(["b 0"]));
});

test("a poll that waits does not go on in another stream when its own is left", async () => {
  const device = await joined(["a", "b"]);
  const waiting = device.stream("a");
  await waiting.leave();
  await assert.rejects(waiting.poll(60), { code: "not-enrolled" });
  assert.deepEqual(world.reports, []);
});

test("two collectors may have a stream of the same name", async () => {
  const device = await joined(["a"]);
  world.offer({ ...SLOTS, stream: "a", start_ms: START - 500 });
  await device.enrol("https://other", "a", "");
  assert.throws(() => device.stream("a"), { code: "several-streams" });
  assert.equal(device.stream("a", "https://other/").terms.startMs, START - 500);
  assert.equal(device.streams.length, 2);
});

test("all streams run side by side", async () => {
  const device = await joined(["a", "b", "c"]);
  await world.run(device, 9);
  assert.deepEqual(new Set(world.reports.map(({ stream }) => stream)), new Set(["a", "b", "c"]));
});

test("the limit holds over all streams, in any span of own time", async () => {
  const device = await joined(["a", "b", "c", "d"], { limit: { epsilon: 2, span: "8s" } });
  await world.attend(device, 64);
  assert.equal(mostIn(world.reports, 8 * INTERVAL), 2 * NANO);
  assert.ok(world.reports.length >= 12, `${world.reports.length}`);
  const { epsilonNano, spanMs, leftNano } = device.limit;
  assert.deepEqual([epsilonNano, spanMs], [2 * NANO, 8000]);
  assert.ok(leftNano <= 2 * NANO);
});

test("a limit is stored, tightened at once, and loosened a span later", async () => {
  await joined(["a", "b"], { limit: { epsilon: 2, span: "8s" } });
  const device = await world.open();
  const limits = () => world.store.memory.limits;
  assert.deepEqual(limits(), [{ epsilonNano: 2 * NANO, span: 8000 }]);
  await device.setLimit({ epsilon: 1, span: "10s" });
  assert.deepEqual(limits(), [{ epsilonNano: NANO, span: 10_000 }], "it implies that of before");
  await world.attend(device, 10);
  assert.equal(mostIn(world.reports, 10 * INTERVAL), NANO);
  const ownMs = device.wallet.ownMs();
  await device.setLimit({ epsilon: 3, span: "8s" });
  assert.deepEqual(limits()[0], { epsilonNano: NANO, span: 10_000, until: ownMs + 10_000 });
  const before = world.reports.length;
  await world.attend(device, 9.5);
  assert.equal(mostIn(world.reports, 10 * INTERVAL), NANO, "the old one binds");
  await world.attend(device, 30);
  assert.ok(world.reports.length - before > 6);
  assert.equal(limits().length, 1, "and is forgotten");
  await device.setLimit(null);
  assert.equal(device.limit, null);
  assert.equal(limits().length, 1, "none at all is looser still");
});

test("a limit does not forget what was spent before it was set", async () => {
  const device = await joined(["a"]);
  await world.attend(device, 40);
  await device.setLimit({ epsilon: 1, span: "1h" });
  const before = world.reports.length;
  await world.attend(device, 300);
  assert.equal(world.reports.length, before, "debits older than the window are forgotten, and may be many");
});

test("a reserve keeps a part of the limit free, whatever others spend", async () => {
  const device = await joined(["a", "b", "c"], { limit: { epsilon: 2, span: "1m" } });
  await device.stream("c").reserve(1);
  for (const name of ["a", "b"]) await world.run(device.stream(name), 12);
  assert.equal(world.reports.length, 1, "one of the two");
  await world.run(device.stream("c"), 12);
  assert.equal(world.reports.length, 2);
  await assert.rejects(device.stream("a").reserve(1.5), { code: "limit-too-small" });
  await assert.rejects(device.setLimit({ epsilon: 0.5, span: "1m" }), { code: "limit-too-small" });
  assert.equal(device.limit.epsilonNano, 2 * NANO);
});

test("what a limit can never allow is refused when it is asked for", async () => {
  const device = await world.create({ limit: { epsilon: 0.5, span: "1h" } });
  world.offer({ ...SLOTS, stream: "a" });
  await assert.rejects(device.enrol(URL_OF, "a", ""), { code: "limit-too-small" });
  assert.deepEqual(world.store.memory.enrolments, []);
  assert.equal(device.terms, null, "nor does the device believe that it has enrolled");
  await device.setLimit(null);
  await device.enrol(URL_OF, "a", "");
  await device.setLimit({ epsilon: 0.5, span: "1h" }); // tightened at any time: the stream is silent
  await assert.rejects(device.dueInMs(), { code: "limit-spent" });
  await world.run(device, 40);
  assert.equal(world.reports.length, 0);
  assert.ok(world.sleeps < 60, `${world.sleeps} is no frenzy`);
  assert.equal(device.status().fullInMs, Infinity);
});

test("what a limit is must be said in full", () => {
  const wrong = [{}, 2, "2", { epsilon: 0, span: "1h" }, { epsilon: 1, span: "soon" }, { epsilon: NaN, span: "1h" }];
  for (const one of wrong) assert.throws(() => readLimit(one), { code: "option" });
  assert.deepEqual(readLimit({ epsilon: 0.3, span: "1d" }), { epsilonNano: 3 * 10 ** 8, span: 86_400_000 });
  assert.deepEqual(["1min", "500 ms", "2w", "soon", "1", "-1s"].map(lengthMs), [60_000, 500, 1_209_600_000, null, null, null]);
  const [old, mixed] = [{ epsilonNano: 5, span: 10 }, { epsilonNano: 4, span: 9 }];
  assert.deepEqual(limitsAfter([old], mixed, 100), [{ ...old, until: 110 }, mixed], "smaller, and shorter");
});

test("a stream that was left and joined again, or renamed, finds its debits", async () => {
  for (const name of ["a", "renamed"]) {
    world = new World();
    const device = await joined(["a", "b"]);
    await world.attend(device, 4);
    await device.stream("a").leave();
    world.offer({ ...SLOTS, stream: name, epsilon_nano: NANO });
    await device.enrol(URL_OF, name, "");
    assert.equal(device.stream(name).status().leftNano, 0);
    await world.attend(device, 12);
    const spent = world.reports.filter(({ stream }) => stream !== "b");
    assert.ok(spent.length > 2);
    assert.equal(mostIn(spent, SPAN), NANO);
    const others = world.reports.filter(({ stream }) => stream === "b");
    assert.equal(others.length, 4, "and the other stream pays nothing for it");
  }
});

test("who leaves does not make others forget, and leaving has no end", async () => {
  const device = await joined(["a", "b"]);
  for (let turn = 0; turn < 12; turn += 1) {
    await world.attend(device, 4);
    await device.stream("a").leave();
    await device.enrol(URL_OF, "a", "");
  }
  const { forgotten, ended, entries, refusals } = world.store.memory;
  assert.ok(forgotten.length <= 4, JSON.stringify(forgotten));
  assert.ok(ended.length <= 3 && entries.length <= 4 && refusals.length <= 2);
  const of = (name) => world.reports.filter(({ stream }) => stream === name);
  assert.equal(mostIn(of("a"), SPAN), NANO);
  assert.ok(of("b").length >= 11, `${of("b").length}`);
});

test("a stream with a long window does not wait for what others have forgotten", async () => {
  const device = await joined(["a"]);
  await world.attend(device, 20);
  world.offer({ ...SLOTS, stream: "long", window: 10_000 });
  await device.enrol(URL_OF, "long", "");
  assert.equal(device.stream("long").status().leftNano, NANO);
});

test("a memory that may be an older copy counts as spent in every stream", async () => {
  const device = await joined(["a", "b"], { limit: { epsilon: 4, span: "8s" } });
  world.store.vouchedFor = false;
  await device.wallet.open();
  for (const { account } of device.streams) {
    assert.equal(account.budget(account.terms).left(device.wallet.ownMs()), 0);
    assert.ok(account.refusals.some(({ code }) => code === "past-unknown"));
  }
  assert.equal(device.limit.leftNano, 0);
  await world.attend(device, 20);
  assert.ok(Math.min(...world.reports.map(({ at }) => at)) >= 5000 + 8 * INTERVAL - 60);
});

test("an enrolment that fails leaves nothing behind, in memory or on disk", async () => {
  const device = await joined(["a"]);
  const before = structuredClone(world.store.memory);
  world.offer({ ...SLOTS, stream: "a", epsilon_nano: 5 * NANO });
  await assert.rejects(device.enrol(URL_OF, "a", ""), { code: "terms-differ" });
  assert.deepEqual(world.store.memory, before);
  assert.deepEqual(device.wallet.memory.enrolments, before.enrolments);
  const { change } = world.store;
  world.store.change = async () => {
    world.store.change = change;
    throw new LedgerUnusable("ledger-file", { file: "", what: "full" });
  };
  await assert.rejects(device.stream("a").leave(), LedgerUnusable);
  assert.equal(device.terms.stream, "a");
});

test("streams that enrol at once do not get in each other's way", async () => {
  const device = await world.create();
  const names = ["a", "b", "c"];
  for (const name of names) world.offer({ ...SLOTS, stream: name });
  await Promise.all(names.map((name) => device.enrol(URL_OF, name, "")));
  assert.deepEqual(device.streams.map(({ terms }) => terms.stream).sort(), names);
});

// Nothing of one stream in another

test("a stream that is left while a poll waits for its turn reports nothing, and in no other stream", async () => {
  const device = await joined(["diagnoses", "weather"]);
  const [diagnoses, weather] = device.streams;
  diagnoses.observe("south");
  weather.observe("north");
  const { sleep } = device.io;
  device.io.sleep = async (...given) => {
    device.io.sleep = sleep;
    await diagnoses.leave();
    await sleep(...given);
  };
  const heard = await diagnoses.poll(2 * SLOTS.window);
  assert.equal(heard.stream, "diagnoses");
  assert.deepEqual(world.reports, []);
  assert.equal(device.stream("weather"), weather);
  await world.attend(device, 8);
  assert.deepEqual(new Set(world.reports.map(({ stream, value }) => `${stream} ${value}`)), new Set(["weather 0"]));
});

test("a value that was handed over for one stream is not reported in the next", async () => {
  for (const byOther of [false, true]) {
    world = new World();
    const device = await joined(["diagnoses"]);
    const leaving = byOther ? await world.open() : device;
    device.observe("south");
    await leaving.leave();
    world.offer({ ...SLOTS, stream: "weather" });
    await leaving.enrol(URL_OF, "weather", "");
    await device.wallet.load();
    const seen = [];
    device.value.warn = ({ code }) => seen.push(code);
    await world.attend(device, 8);
    assert.deepEqual(seen, ["value-unusable"], "nobody has handed one over");
    assert.ok(world.reports.every(({ stream, value }) => stream === "weather" && value === 0));
  }
});

test("what one collector said of the time is not known to the next", async () => {
  const device = await joined(["a"]);
  world.ahead = 21 * INTERVAL;
  await world.attend(device, 8);
  assert.equal(device.account.label.nowMs(), world.wall + world.ahead);
  await device.leave();
  world.offer({ ...SLOTS, stream: "b" });
  const { fetcher } = device.io;
  device.io.fetcher = async (...given) => {
    const { now_ms, ...answer } = await (await fetcher(...given)).json();
    return Response.json(answer);
  };
  await device.enrol("https://other", "b", "");
  assert.equal(device.account.label.nowMs(), world.wall);
});

test("a round that is not free yet holds a poll of several streams no longer than it was given", async () => {
  const device = await joined(["rare"], {}, { window: 1_000_000 }); // its turn does not come here
  const { deadline_ms, ...plain } = SLOTS;
  const open = { ...plain, stream: "open", selection: "open", window: 1 };
  world.offer(open);
  await device.enrol(URL_OF, "open", "");
  const { pin } = device.stream("open").terms;
  const { fetcher } = device.io;
  const serials = [];
  device.io.fetcher = async (address, request) => {
    const { pathname, searchParams } = new URL(address);
    if (!pathname.includes("/open/")) return fetcher(address, request);
    if (pathname.endsWith("/reports")) return Response.json({}, { status: 202 });
    serials.push(Number(searchParams.get("after")));
    const round = { round: `${world.t}-x`, t: world.t, epsilon_nano: NANO, deadline_ms: world.wall + 5000, rate: [1, 1] };
    return Response.json({ serial: 7 * world.t, pin, rounds: [round], now_ms: world.wall });
  };
  world.pass(900 - ((world.wall - START) % INTERVAL));
  assert.equal((await device.poll()).delivered.length, 1);
  world.pass(200);
  const before = world.steady;
  const heard = await device.poll();
  assert.equal(world.steady, before);
  assert.equal(heard.delivered.length, 0);
  world.pass(850);
  await device.poll();
  assert.equal(serials[1], serials[2], "it is announced again");
});

// Damage, and what nobody sends

test("the promise of a stream that was left binds the next one, also in a memory that is damaged", async () => {
  const device = await joined(["other"]);
  world.offer({ ...SLOTS, stream: "long", window: 1000 });
  await device.enrol(URL_OF, "long", "");
  while (!world.reports.some(({ stream }) => stream === "long")) await world.attend(device, 100);
  await device.stream("long").leave();
  await device.stream("other").leave();
  const { nextId } = world.store.memory;
  world.store.memory.entries[0].nano = -1;
  world.reports = [];
  const again = await world.open();
  world.offer({ ...SLOTS, stream: "short", window: 1 });
  await again.enrol(URL_OF, "short", "");
  assert.equal(world.store.memory.enrolments[0].id, nextId, "no id is given out twice");
  await world.attend(again, 900);
  assert.deepEqual(world.reports, []);
  await world.attend(again, 110);
  assert.notDeepEqual(world.reports, [], "and no longer than its span");
});

test("an enrolment's answer may hold anything besides, however deep", async () => {
  world.offer(SLOTS);
  const device = await world.create();
  const { fetcher } = device.io;
  device.io.fetcher = async (...given) => {
    const text = await (await fetcher(...given)).text();
    const deep = 200_000;
    return new Response(`${text.slice(0, -1)},"x":${"[".repeat(deep)}${"]".repeat(deep)}}`, { status: 201 });
  };
  await device.enrol(URL_OF, SLOTS.stream, "");
  assert.equal(device.account.label.nowMs(), world.wall);
});

test("a wall clock that is set back while a value is read does not let own time leap", async () => {
  const unnamed = { ...world.clock, boot: () => null };
  const device = await joined(["a"], { clock: unnamed });
  const other = await world.open({ clock: unnamed });
  device.follow(() => {
    world.wall -= 3600 * 1000;
    const { load } = world.store;
    world.store.load = async () => {
      world.store.load = load;
      world.pass(1);
      await other.wallet.change((change) => other.wallet.markNow(change, other.wallet.ownMs()));
      return load.call(world.store);
    };
    return "south";
  });
  const began = world.steady;
  world.pass(Math.ceil(await device.dueInMs()));
  await device.poll();
  const { entries, own } = world.store.memory;
  assert.equal(entries.length, 1);
  for (const { ownMs } of [...entries, own]) assert.ok(ownMs <= world.steady - began + 1, `${ownMs}`);
});

test("a limit that is none leaves no device behind", async () => {
  await assert.rejects(world.create({ limit: { epsilon: "2", span: "24h" } }), { code: "option" });
  await assert.rejects(world.open(), { code: "ledger-missing" });
});
