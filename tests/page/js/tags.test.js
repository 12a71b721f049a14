/** A device whose reports end with a tag: of texts, and with attributes. */

import assert from "node:assert/strict";
import { test } from "node:test";

import * as sdk from "./inside.js";
import { Scripted, vectors } from "./support.js";

const [TEXTS, PARTS] = ["vocabulary", "histogram"].map(
  (query) => vectors.tagged.find(({ sent }) => sent.query === query).sent,
);
const KEY = sdk.fromHex("ab".repeat(32));
const OTHER_KEY = sdk.fromHex("cd".repeat(32));

/** A machine with one device, whose reports all arrive, and which knows what its source was asked. */
class World {
  wall = TEXTS.start_ms + 50;
  steady = 5000;
  key = KEY;
  store = new sdk.MemoryStore();
  reports = [];
  questions = [];
  warned = [];

  constructor(sent) {
    this.sent = sent;
  }

  get clock() {
    return { wallMs: () => this.wall, steadyMs: () => this.steady, boot: () => "a" };
  }

  get source() {
    const system = new Scripted("a device");
    const ask = (name) => (...bounds) => (this.questions.push([name, ...bounds].join(" ")), system[name](...bounds));
    return { coin: ask("coin"), below: ask("below") };
  }

  async fetch(address, { body }) {
    if (!address.endsWith("/devices")) {
      this.reports.push({ round: Number.parseInt(address.split("/").at(-2), 10), body });
      return Response.json({ status: "accepted", now_ms: this.wall }, { status: 202 });
    }
    const device = sdk.toHex(await sdk.numberOf(sdk.fromHex(JSON.parse(body).secret)));
    return Response.json({ terms: this.sent, device, key: sdk.toHex(this.key), now_ms: this.wall });
  }

  async enrolled() {
    const device = await sdk.Device.create(this.store, {
      firstInstall: true,
      clock: this.clock,
      source: this.source,
      fetcher: (...given) => this.fetch(...given),
      warn: ({ code }) => this.warned.push(code),
      sleep: async (ms) => {
        this.wall += Math.ceil(ms);
        this.steady += Math.ceil(ms);
      },
    });
    await device.enrol("https://collector", this.sent.stream, "");
    return device;
  }

  /** The tags of the next reports, after each of which something may be said. */
  async tags(device, number, between = () => undefined) {
    const stop = new AbortController();
    const tags = [];
    await device.run(stop.signal, ({ delivered }) => {
      for (const { report } of delivered) tags.push(report.at(-1));
      between(tags.length);
      if (tags.length >= number) stop.abort();
    });
    return tags;
  }
}

test("a device of an open vocabulary reports a bucket of its group, for good, in five bytes", async () => {
  for (const key of [KEY, OTHER_KEY]) {
    const world = new World(TEXTS);
    world.key = key;
    const device = await world.enrolled();
    const group = await sdk.groupOf(key, 10);
    device.observe("Zürich");
    assert.deepEqual(await world.tags(device, 40), Array(40).fill(group));
    assert.deepEqual(new Set(world.reports.map(({ body }) => body.length)), new Set([5]));
    const terms = await device.terms.seenBy(key, {});
    const row = terms.place("Zu\u0308rich") + 1;
    const columns = world.reports.map(({ body }) => body[1] + 256 * body[2] + 65_536 * body[3]);
    const supporting = columns.filter((one) => (one & row).toString(2).replaceAll("0", "").length % 2 === 0);
    // With e^-1 to 1 that a report does not, and draws that are always the same: 28 or so of 40.
    assert.ok(supporting.length > 22, `${supporting.length} of 40 reports support its bucket`);
    assert.deepEqual(world.warned, []);
  }
});

test("what is no text is a bucket drawn at random, which is drawn for every report", async () => {
  const asked = [];
  for (const value of ["a text", null, 7]) {
    const world = new World(TEXTS);
    const device = await world.enrolled();
    device.observe(value);
    world.questions = [];
    await world.tags(device, 3);
    asked.push(world.questions.join());
    assert.deepEqual(world.warned, typeof value === "string" ? [] : ["value-unusable"]);
  }
  assert.equal(new Set(asked).size, 1);
  assert.equal(asked[0].split(",").filter((one) => one === `below ${2 ** 20 - 1}`).length, 3);
});

test("a device tells its attributes beside its report, as they are at that time", async () => {
  const world = new World(PARTS);
  const device = await world.enrolled();
  device.observe("north");
  const said = [
    { country: "de", firmware_2: "1.0 (beta)" },
    { country: "fr" },
    { country: "it", firmware_2: '~"\\', more: "x" },
    JSON.parse('{"__proto__": {"country": "de"}}'),
    {},
  ];
  const tags = await world.tags(device, 1 + said.length, (at) => said[at - 1] && device.describe(said[at - 1]));
  assert.deepEqual(tags, [8, 0, 5, 7, 8, 8]);
  assert.equal(device.terms.pin, (await sdk.Terms.read(PARTS)).pin);
  const [stream] = device.streams;
  stream.describe({ country: "fr" });
  assert.deepEqual(await world.tags(device, 1), [5]);
});

test("what was said is for the stream that was left", async () => {
  const world = new World(PARTS);
  const device = await world.enrolled();
  device.describe({ country: "de", firmware_2: "1.0 (beta)" });
  assert.deepEqual(await world.tags(device, 1), [0]);
  await device.leave();
  await device.enrol("https://collector", PARTS.stream, "");
  assert.deepEqual(await world.tags(device, 1), [8]);
});

test("a report is of the terms and the key under which its value was read", async () => {
  const world = new World(TEXTS);
  const device = await world.enrolled();
  const { account } = device;
  const { round } = await account.turn(null);
  world.wall = account.terms.startOf(round.t) + 100;
  const seen = [];
  const reading = (terms) => (seen.push(terms), terms.place("a text"));
  const { send } = await account.consider(account.terms.pin, round, reading);
  assert.equal(seen[0].tag, await sdk.groupOf(KEY, 10));
  assert.deepEqual([send.report.length, send.report[4]], [5, seen[0].tag]);
});
