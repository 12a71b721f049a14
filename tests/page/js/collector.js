/** A collector of several streams for the Node tests, with versions of terms, levels and master secrets. */

import { createHash, createHmac } from "node:crypto";

import { Device, MemoryStore, Terms, fromHex, numberOf, roundName, toHex } from "./inside.js";
import { vectors } from "./support.js";

export const SLOTS = vectors.terms.find(({ sent }) => sent.deadline_ms === 900).sent; // window 4, 1000 ms
export const { start_ms: START, interval_ms: INTERVAL } = SLOTS;
export const NANO = 10 ** 9;

/** Return terms that follow others, with these members changed. */
export async function following(old, changes = {}, succession = {}) {
  const { pin, version } = await Terms.read(old);
  const next = { ...old, version: 3, ...changes };
  const labels = old.labels.map((one) => (next.labels.includes(one) ? one : next.labels[0]));
  const succeeds = { pin, version: version + 1, from_t: 1, until_t: 10 ** 6, labels, ...succession };
  return { ...next, succeeds };
}

/** A world with clocks, a machine with one device, and one collector at every address. */
export class World {
  wall = START + 50;
  steady = 5000;
  /** What the collector's clock is ahead. */
  ahead = 0;
  store = new MemoryStore();
  /** All versions of the terms of a stream, by its name. */
  streams = new Map();
  master = "first";
  /** Whether it says that keys must be renewed, and which pin it names in place of a successor's. */
  lie = {};
  fail = [];
  reports = [];
  enrolments = [];
  requests = [];
  sleeps = 0;

  pass(ms) {
    this.wall += ms;
    this.steady += ms;
  }

  get t() {
    return Math.floor((this.wall + this.ahead - START) / INTERVAL) + 1;
  }

  get clock() {
    return { wallMs: () => this.wall, steadyMs: () => this.steady, boot: () => "a" };
  }

  offer(...versions) {
    this.streams.set(versions[0].stream, versions);
  }

  /** The key that a device gets from the master secret of this name. */
  keyOf(stream, number, level, master = this.master) {
    return createHmac("sha256", master).update(`${stream}\n${level}\n${number}`).digest("hex");
  }

  async notice(stream, pin, key) {
    const all = await Promise.all((this.streams.get(stream) ?? []).map((one) => Terms.read(one)));
    const next = all.find(({ succeeds }) => succeeds?.pin === pin);
    const renew = key !== undefined && key !== this.master;
    const told = { now_ms: this.wall + this.ahead, successor: next?.pin, renew: renew || undefined };
    return { ...told, ...this.lie };
  }

  async fetch(address, request) {
    const { pathname } = new URL(address);
    const [, , , stream, place, which] = pathname.split("/");
    this.requests.push(`${request.method ?? "GET"} ${place} ${stream}`);
    const failure = this.fail.shift();
    if (failure === "lost") throw new TypeError("the network is down");
    if (failure) return new Response("{}", { status: failure });
    if (place === "devices") return this.#devices(stream, request);
    if (place === "terms") return this.#terms(stream, which);
    return this.take(stream, which, request);
  }

  async #devices(stream, { method, body, headers }) {
    if (method === "DELETE") return Response.json({});
    const { secret, level = "", ...rest } = JSON.parse(body);
    this.enrolments.push({ stream, level, headers, ...rest });
    const device = toHex(await numberOf(fromHex(secret)));
    const terms = this.streams.get(stream).at(-1);
    const [key, slot_key] = [this.keyOf(stream, device, level), this.keyOf(stream, device, level, "first")];
    const keys = slot_key === key ? { key } : { key, slot_key };
    return Response.json({ terms, device, ...keys, now_ms: this.wall + this.ahead }, { status: 201 });
  }

  async #terms(stream, pin) {
    for (const sent of this.streams.get(stream)) {
      if ((await Terms.read(sent)).pin === pin) return Response.json({ terms: sent, pin });
    }
    return Response.json({}, { status: 404 });
  }

  /** Take a report as the collector does: by name, key and pin of its stratum. */
  async take(stream, round, { body, headers }) {
    const number = headers["Ldp-Device"];
    for (const sent of this.streams.get(stream)) {
      const whole = await Terms.read(sent);
      for (const level of ["", ...whole.levels.map(({ name }) => name)]) {
        const terms = whole.atLevel(level);
        for (const master of ["first", "second"]) {
          const prefix = `ldpstream report 2\n${stream}\n${whole.pin}\n${round}\n${level}\n\n\n`;
          const key = Buffer.from(this.keyOf(stream, number, level, master), "hex");
          const mac = createHmac("sha256", key).update(prefix).update(body).digest("hex").slice(0, 32);
          const t = Number.parseInt(round, 10);
          if (mac !== headers["Ldp-Mac"] || round !== roundName(t, terms.suffix)) continue;
          const told = await this.notice(stream, whole.pin, master);
          const inForce = t >= (terms.succeeds?.fromT ?? 0);
          const code = t > this.t ? "round-early" : t < this.t || !inForce ? "round-closed" : "";
          const type = `urn:ldpstream:problem:${code}`;
          if (code) return Response.json({ ...told, type }, { status: code === "round-early" ? 425 : 410 });
          this.reports.push({ stream, number, t, terms, master, at: this.steady, value: body[1] });
          return Response.json({ status: "accepted", ...told }, { status: 202 });
        }
      }
    }
    return Response.json(await this.notice(stream, ""), { status: 403 });
  }

  /** A source that always tells the truth: a report of GRR says which value was held. */
  truth = { coin: () => true, below: () => 0n };

  parts(given = {}) {
    return {
      clock: this.clock,
      source: this.truth,
      fetcher: (...sent) => this.fetch(...sent),
      warn: () => undefined,
      sleep: async (ms) => {
        this.sleeps += 1;
        this.pass(Math.ceil(ms));
      },
      ...given,
    };
  }

  create(given = {}) {
    return Device.create(this.store, { ...this.parts(given), firstInstall: true });
  }

  open(given = {}) {
    return Device.open(this.store, this.parts(given));
  }

  /** Let a device or a stream run for so many intervals. Time passes when all of its streams are asleep. */
  async run(running, intervals) {
    const stop = new AbortController();
    const endMs = this.wall + intervals * INTERVAL;
    const { io, streams = [running] } = running;
    const { sleep } = io;
    let asleep = [];
    io.sleep = (ms) =>
      new Promise((wake) => {
        this.sleeps += 1;
        asleep.push({ atMs: this.wall + Math.ceil(ms), wake });
        if (asleep.length < streams.length) return;
        const nextMs = Math.min(endMs, ...asleep.map(({ atMs }) => atMs));
        this.pass(Math.max(0, nextMs - this.wall));
        if (this.wall >= endMs) stop.abort();
        const woken = asleep.filter(({ atMs }) => stop.signal.aborted || atMs <= this.wall);
        asleep = asleep.filter((one) => !woken.includes(one));
        for (const one of woken) one.wake();
      });
    await running.run(stop.signal);
    io.sleep = sleep;
  }

  /** Let all streams take their turns for so many intervals, one after another as they come. */
  async attend(device, intervals) {
    const endMs = this.wall + intervals * INTERVAL;
    for (;;) {
      const dueMs = await device.dueInMs();
      if (this.wall + dueMs > endMs) return this.pass(Math.max(0, endMs - this.wall));
      this.pass(Math.max(0, Math.ceil(dueMs)));
      await device.poll();
    }
  }
}

/** The most nano-epsilon of these reports in any span so long, by the world's own time. */
export function mostIn(reports, spanMs) {
  const sums = reports.map(({ at: begin }) =>
    reports
      .filter(({ at }) => at >= begin && at < begin + spanMs)
      .reduce((sum, { terms }) => sum + terms.epsilonNano, 0),
  );
  return Math.max(0, ...sums);
}

/** @param {string} text */
export const hashOf = (text) => createHash("sha256").update(text).digest("hex");
