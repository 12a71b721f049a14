/** A device: its streams, and the one limit over all of them. */

import { Account } from "./account.js";
import { lookAt } from "./clock.js";
import { enrol } from "./enrolling.js";
import { sleep as waiting } from "./exchange.js";
import { readAddress } from "./identity.js";
import { PATIENCE_MS } from "./insist.js";
import { readLimit } from "./limit.js";
import { inForce, newMemory } from "./memory.js";
import { DeviceError } from "./problems.js";
import { SystemSource } from "./randomness.js";
import { Stream } from "./stream.js";
import { HeldValue } from "./values.js";
import { Wallet } from "./wallet.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./stream.js").Heard} Heard */
/** @typedef {import("./limit.js").Limit} Limit */
/**
 * Others only in tests, except `warn` and `limit`.
 * @typedef {object} Parts
 * @property {import("./values.js").Warn} [warn] told, once for each kind, of values that cannot be
 *   reported; to the console unless it is given
 * @property {Limit | null} [limit] over all streams; null for none. Without it, the previous one stays
 * @property {import("./clock.js").Clock} [clock]
 * @property {import("./randomness.js").Source} [source]
 * @property {typeof fetch} [fetcher]
 * @property {import("./insist.js").Sleep} [sleep]
 */

export class Device {
  /** @type {Map<number, Stream>} by the id of their enrolment */ #streams = new Map();
  /** @type {Stream} the only one, as long as there is no other */ #sole;

  /** @param {Wallet} wallet @param {import("./insist.js").Io} io @param {import("./values.js").Warn} [warn] */
  constructor(wallet, io, warn) {
    this.wallet = wallet;
    this.io = io;
    this.warn = warn;
    this.#sole = this.#made();
  }

  /**
   * Make a device in an empty store: for installers, once. Say `firstInstall` if this person's
   * device has never reported before: only an installer can know. Otherwise it first keeps silent
   * for w intervals, since a ledger that was lost looks like one that never was.
   * @param {Store} store @param {Parts & {firstInstall?: boolean}} [options]
   */
  static async create(store, { firstInstall = false, ...parts } = {}) {
    if (parts.limit) readLimit(parts.limit); // or the device would be there, without a limit
    await store.create(newMemory(firstInstall, lookAt(parts.clock ?? store.clock)));
    return Device.open(store, parts);
  }

  /** Open the device that lives in this store. It never makes one. */
  /** @param {Store} store @param {Parts} [parts] */
  static async open(store, { warn, limit, clock, source, fetcher, sleep } = {}) {
    const wallet = new Wallet(store, clock ?? store.clock, source ?? new SystemSource());
    await wallet.open();
    if (limit !== undefined) await wallet.setLimit(limit);
    const fetching = fetcher ?? ((...given) => globalThis.fetch(...given));
    return new Device(wallet, { fetcher: fetching, sleep: sleep ?? waiting }, warn);
  }

  /**
   * Open the device of this store, or make one, and enrol it unless it takes part in the stream already:
   * for a page or a program that has no installer.
   * @param {Store} store @param {string} url of the collector @param {string} stream
   * @param {Parts & import("./enrolling.js").EnrolOptions & {token?: string, firstInstall?: boolean}} [options]
   */
  static async join(store, url, stream, { token = "", ...options } = {}) {
    const device = await Device.open(store, options).catch((error) => {
      if (!(error instanceof DeviceError) || error.code !== "ledger-missing") throw error;
      return Device.create(store, options);
    });
    if (!device.#enrolmentsIn(stream, url).length) await device.enrol(url, stream, token, options);
    return device;
  }

  // --- streams ---------------------------------------------------------------------------------------

  /** The streams that this device takes part in. @returns {readonly Stream[]} */
  get streams() {
    return this.wallet.memory.enrolments.map(({ id }) => this.#streamOf(id));
  }

  /**
   * Return a stream that this device takes part in, by its name.
   * @param {string} name @param {string} [url] of its collector, where several have a stream of this name
   */
  stream(name, url) {
    const { wallet } = this;
    const found = this.#enrolmentsIn(name, url);
    if (found.length > 1) throw this.#severalStreams();
    if (found.length) return this.#streamOf(found[0].id);
    const facts = { file: wallet.store.name, stream: name, streams: this.#names() || "none" };
    throw new DeviceError("stream-not-enrolled", facts);
  }

  /** @param {string} name @param {string} [url] */
  #enrolmentsIn(name, url) {
    const place = url === undefined ? null : readAddress(url, true);
    const { wallet } = this;
    return wallet.memory.enrolments.filter(
      (one) => wallet.termsOf(one).stream === name && (place === null || one.url === place),
    );
  }

  /** @param {number} [id] */
  #made(id) {
    return new Stream(new Account(this.wallet, id), new HeldValue(this.warn), this.io);
  }

  /**
   * The only stream, or the one that is to come. With an enrolment that was left its stream ends, and the
   * value that it holds: that was handed over for this stream, and is not reported in another.
   */
  get #first() {
    if (this.#sole.account.wasLeft) this.#sole = this.#made();
    return this.#sole;
  }

  /** @param {number} id */
  #streamOf(id) {
    const known = this.#streams.get(id) ?? (this.#first.account.id === id ? this.#first : null);
    const found = known ?? this.#made(id);
    this.#streams.set(id, found);
    return found;
  }

  #names() {
    const { wallet } = this;
    return wallet.memory.enrolments.map((one) => wallet.termsOf(one).stream).join(", ");
  }

  #severalStreams() {
    return new DeviceError("several-streams", { file: this.wallet.store.name, streams: this.#names() });
  }

  /** The only stream; before an enrolment, the one that is still to come. */
  get #only() {
    const { enrolments } = this.wallet.memory;
    if (enrolments.length > 1) throw this.#severalStreams();
    return enrolments.length ? this.#streamOf(enrolments[0].id) : this.#first;
  }

  /**
   * Agree on a stream's terms. In a stream that this device takes part in, later, the address, the key and
   * the level of privacy may change, and the terms only as `accept` allows. Other streams come beside it.
   * @param {string} url of the collector @param {string} stream
   * @param {string} token empty where the stream lets anyone enrol
   * @param {import("./enrolling.js").EnrolOptions} [options]
   */
  async enrol(url, stream, token, options = {}) {
    const { id, notice } = await enrol(this.wallet, this.io, url, stream, token, options);
    const enrolled = this.#streamOf(id);
    await enrolled.enrolled(notice);
    return /** @type {import("./terms.js").Terms} */ (enrolled.terms);
  }

  // --- the limit -------------------------------------------------------------------------------------

  /** The limit over all streams, or null if there is none. */
  get limit() {
    const limit = inForce(this.wallet.memory);
    if (!limit) return null;
    const ownMs = this.wallet.ownMs();
    const leftNano = this.wallet.limitLedger().left(ownMs);
    return { epsilonNano: limit.epsilonNano, spanMs: limit.span, leftNano };
  }

  /**
   * Set the limit over all streams, or null for none. One that is not stricter than that of before leaves that
   * one binding until its span has passed.
   * @param {Limit | null} limit
   */
  async setLimit(limit) {
    await this.wallet.setLimit(limit);
  }

  // --- the only stream -------------------------------------------------------------------------------

  get account() {
    return this.#only.account;
  }

  get value() {
    return this.#only.value;
  }

  /** What was agreed; null before an enrolment. */
  get terms() {
    return this.#only.terms;
  }

  /** Hold this value from now on (`Stream.observe`). @param {unknown} value */
  observe(value) {
    this.#only.observe(value);
  }

  /** Call `read` for the value whenever one is reported (`Stream.follow`). @param {() => unknown} read */
  follow(read) {
    this.#only.follow(read);
  }

  /** Say what this device is (`Stream.describe`). @param {Readonly<Record<string, string>>} attributes */
  describe(attributes) {
    this.#only.describe(attributes);
  }

  status() {
    return this.#only.status();
  }

  /** @param {{signal?: AbortSignal}} [options] @returns {Promise<boolean>} whether the collector was told */
  async leave(options) {
    return this.#only.leave(options);
  }

  // --- all streams -----------------------------------------------------------------------------------

  /** @returns {readonly Stream[]} all streams; without any, the one that is still to come */
  get #all() {
    const { streams } = this;
    return streams.length ? streams : [this.#first];
  }

  /** @returns {Promise<number | null>} ms until the next report of any stream, or null if one must be listened to */
  async dueInMs() {
    await this.wallet.load();
    const due = await Promise.all(this.#all.map((stream) => stream.dueInMs()));
    return due.reduce((one, other) => (one === null || other === null ? null : Math.min(one, other)));
  }

  /**
   * Poll all streams of this device (`Stream.poll`), side by side: none waits for another's collector, and
   * what would take longer than `wait` (with one stream: or than a request may) is put off to the next poll. It rejects with the fault of a stream
   * when all were polled.
   * @param {number} [wait] @param {AbortSignal} [signal] @returns {Promise<Heard>} what came of all of them
   */
  async poll(wait = 0, signal) {
    await this.wallet.load();
    const all = this.#all;
    const mostMs = all.length > 1 ? 1000 * wait : Math.max(1000 * wait, PATIENCE_MS);
    const outcomes = await Promise.allSettled(all.map((stream) => stream.poll(wait, signal, mostMs)));
    return outcomes.map(heardIn).reduce((one, other) => ({
      stream: `${one.stream} ${other.stream}`,
      serial: Math.max(one.serial, other.serial),
      delivered: [...one.delivered, ...other.delivered],
      undelivered: [...one.undelivered, ...other.undelivered],
      refusals: [...one.refusals, ...other.refusals],
      silences: [...one.silences, ...other.silences],
    }));
  }

  /**
   * Run all streams of this device (`Stream.run`) until the signal says stop, or none is left.
   * @param {AbortSignal} signal @param {(heard: Heard) => unknown} [tell]
   * @param {(fault: DeviceError, stream: string) => unknown} [complain]
   */
  async run(signal, tell, complain) {
    await Promise.all(this.#all.map((stream) => stream.run(signal, tell, complain)));
  }

  /** Put on disk what can be, counts of refusals and how far own time has come; let go of the store. */
  async close() {
    const all = new Set([this.#first, ...this.#streams.values()]);
    for (const stream of all) await stream.account.close();
    await this.wallet.store.close();
  }
}

/** @param {PromiseSettledResult<Heard>} outcome */
function heardIn(outcome) {
  if (outcome.status === "rejected") throw outcome.reason;
  return outcome.value;
}
