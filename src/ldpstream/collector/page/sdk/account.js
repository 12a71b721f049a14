/**
 * The part of a device that keeps the promise, as `device/account.py`: decide by the rules, commit,
 * and only then hand out. No network here: what `consider` returns to be sent is on disk, with its
 * debit.
 */

import { hmacSha256, joined, utf8 } from "./bytes.js";
import { OwnTime } from "./clock.js";
import { Ledger } from "./ledger.js";
import { oracleOf } from "./oracles.js";
import { DeviceError, LedgerMoved, LedgerUnusable, Refused, TermsRefused } from "./problems.js";
import { keyOf } from "./rounds.js";
import { Silence, decide } from "./rules.js";
import { Terms } from "./terms.js";

/** @typedef {import("./rounds.js").Round} Round */
/** @typedef {import("./memory.js").Memory} Memory */
/** @typedef {import("./memory.js").Entry} Entry */
/** @typedef {import("./memory.js").Enrolment} Enrolment */
/** @typedef {(t: number) => number | null} Reading the index of the label held at t, or null */
/**
 * A report that is on disk, and may leave.
 * @typedef {{round: Round, path: string, report: Uint8Array, mac: Uint8Array}} Submission
 */
/** @typedef {{send: Submission} | {silence: string} | {refusal: Refused}} Considered */

export class Account {
  /** @type {Promise<unknown>} */ #queue = Promise.resolve();
  /** @type {Set<string>} */ #delivered = new Set();
  /** @type {Map<string, number>} */ #refusals = new Map();
  #stale = true;

  /** @type {Memory} */ memory = /** @type {any} */ (null);
  /** @type {Terms | null} */ terms = null;
  /** @type {Ledger} */ ledger = new Ledger(0, 1);
  /** @type {Map<string, Uint8Array>} */ #answered = new Map();
  #lastT = 0;

  /**
   * @param {import("./memory.js").Store} store
   * @param {import("./clock.js").Clock} clock
   * @param {import("./randomness.js").Source} source
   */
  constructor(store, clock, source) {
    this.store = store;
    this.clock = clock;
    this.source = source;
    this.time = new OwnTime(clock);
  }

  /** Read the memory; call once before anything else. */
  open() {
    return this.#alone(() => this.#recall());
  }

  /** One thing at a time: what is awaited between a decision and its commit must not interleave. */
  /** @template T @param {() => Promise<T>} act @returns {Promise<T>} */
  #alone(act) {
    const done = this.#queue.then(act);
    this.#queue = done.catch(() => undefined);
    return done;
  }

  /** Read the memory, and count its ledger as spent if it may be an older copy (rule 6). */
  async #recall() {
    this.#stale = true;
    this.memory = await this.store.load();
    const { enrolment } = this.memory;
    if (enrolment) {
      this.terms = await Terms.read(JSON.parse(enrolment.terms));
      this.time.offsetMs = enrolment.offsetMs;
      this.#readLedger();
      if (!(await this.store.isVouchedFor())) {
        const why = "the ledger may be a copy that was brought back";
        await this.#countAsSpent(why, this.nowMs());
      }
    }
    this.#stale = false;
  }

  #readLedger() {
    const terms = this.enrolled;
    const { entries } = this.memory;
    this.ledger = new Ledger(terms.epsilonNano, terms.window, entries);
    this.#answered = new Map();
    for (const { t, round, report } of entries) {
      if (report) this.#answered.set(keyOf({ t, name: round }), report);
    }
    this.#lastT = Math.max(0, ...entries.map((entry) => entry.t));
  }

  /** @returns {Terms} */
  get enrolled() {
    if (!this.terms) throw new DeviceError("not-enrolled", { file: this.store.name });
    return this.terms;
  }

  nowMs() {
    return this.time.nowMs();
  }

  /**
   * Commit an enrolment; the ledger of a first one starts as spent (rule 6). Of a later one only
   * the address and what the collector knows the device by are taken.
   * @param {Terms} terms @param {Omit<Enrolment, "terms">} offered @param {boolean} firstInstall
   */
  enrol(terms, offered, firstInstall) {
    return this.#alone(async () => {
      // Terms that another page has agreed on must not be written over.
      if (this.#stale) await this.#recall();
      const known = this.memory.enrolment;
      if (known) {
        await this.#renew(known, terms, offered);
        return;
      }
      // No ledger yet: nothing was witnessed that a clock set right since could undo.
      this.time.offsetMs = offered.offsetMs;
      this.time.takeOver(this.time.look());
      const latest = this.#latest(terms, this.nowMs());
      const unspent = firstInstall && (await this.store.isVouchedFor());
      await this.#keep(terms, offered, unspent ? [] : [this.#everything(terms, latest)]);
    });
  }

  /** @param {Enrolment} known @param {Terms} terms @param {Omit<Enrolment, "terms">} offered */
  async #renew(known, terms, offered) {
    const agreed = this.enrolled.pin;
    if (terms.pin !== agreed) {
      throw new TermsRefused("terms-differ", { given: terms.pin, expected: agreed });
    }
    await this.#keep(terms, { ...offered, offsetMs: known.offsetMs, atMs: known.atMs }, []);
  }

  /** @param {Terms} terms @param {Omit<Enrolment, "terms">} rest @param {Entry[]} spent */
  async #keep(terms, rest, spent) {
    this.#stale = true;
    await this.store.commit(this.memory.commits, (memory) => {
      memory.enrolment = { ...rest, terms: terms.canonical };
      memory.entries.push(...spent);
    });
    await this.#recall();
  }

  /**
   * Decide about a round that was announced under `pin`. Rejects with `LedgerUnusable` if the disk
   * does not take it; then nothing may be sent.
   * @param {string} pin @param {Round | Refused} asked @param {Reading} reading
   * @returns {Promise<Considered>}
   */
  consider(pin, asked, reading) {
    return this.#alone(async () => {
      if (asked instanceof Refused) return { refusal: await this.#note(asked) };
      for (let tries = 0; tries < 3; tries += 1) {
        try {
          if (this.#stale) await this.#recall();
          return await this.#consider(pin, asked, () => reading(asked.t));
        } catch (error) {
          if (!(error instanceof LedgerMoved)) throw error;
          this.#stale = true; // another page has reported: decide again from what it left
        }
      }
      throw new LedgerUnusable("ledger-moved", { file: this.store.name });
    });
  }

  /** @param {string} pin @param {Round} asked @param {import("./rules.js").Held} value */
  async #consider(pin, asked, value) {
    const decision = await this.#decide(pin, asked, value);
    if (decision instanceof Refused) return { refusal: await this.#note(decision) };
    if ("silence" in decision) return decision;
    if ("repeat" in decision) {
      return this.#delivered.has(keyOf(asked))
        ? { silence: Silence.DELIVERED }
        : { send: await this.#submission(asked, decision.repeat) };
    }
    const report = await this.#drawAndCommit(asked, decision.fresh);
    return { send: await this.#submission(asked, report) };
  }

  /** @param {string} pin @param {Round} asked @param {import("./rules.js").Held} value */
  async #decide(pin, asked, value) {
    const decision = await this.#decideNow(pin, asked, value);
    const ahead = decision instanceof Refused && decision.code === "round-ahead";
    const seen = this.time.look();
    if (!ahead || this.time.wallAheadMs(seen) <= this.enrolled.slackMs) return decision;
    // The collector and the wall clock agree that time has passed which this device has not
    // witnessed. It believes them, and that anything may have been spent in that time: not before
    // this is on disk, or a disk that fails would let it off.
    await this.#countAsSpent("the clock was moved forward", this.time.byWallMs(seen));
    this.time.takeOver(seen);
    return this.#decideNow(pin, asked, value);
  }

  /** @param {string} pin @param {Round} asked @param {import("./rules.js").Held} value */
  #decideNow(pin, asked, value) {
    const state = {
      terms: this.enrolled,
      ledger: this.ledger,
      answered: this.#answered,
      lastT: this.#lastT,
      secret: this.memory.secret,
      value,
    };
    return decide(pin, asked, state, this.nowMs());
  }

  /** @param {Round} asked @param {number} value */
  async #drawAndCommit(asked, value) {
    const terms = this.enrolled;
    const oracle = oracleOf(terms.oracle, terms.labels.length, asked.epsilonNano);
    const report = oracle.report(value, this.source);
    if (!this.ledger.allows(asked.t, asked.epsilonNano)) {
      throw new Error("a report was decided on that the ledger does not allow");
    }
    const { t, name: round, epsilonNano: nano } = asked;
    await this.#commit({ t, round, nano, report, atMs: this.clock.wallMs() });
    return report;
  }

  /** Enter the whole epsilon at the latest timestamp that may have been used (rule 6). */
  /** @param {string} why @param {number} nowMs */
  async #countAsSpent(why, nowMs) {
    const terms = this.enrolled;
    const t = Math.max(this.#latest(terms, nowMs), this.#lastT);
    await this.#commit(this.#everything(terms, t));
    await this.#note(new Refused("past-unknown", { why, t, until: t + terms.window }));
  }

  /** @param {Terms} terms @param {number} nowMs @returns {number} the latest that a round may be of */
  #latest(terms, nowMs) {
    return terms.timestampAt(nowMs + terms.slackMs);
  }

  /** @param {Terms} terms @param {number} t @returns {Entry} */
  #everything(terms, t) {
    return { t, round: "", nano: terms.epsilonNano, report: null, atMs: this.clock.wallMs() };
  }

  /** Put an entry on disk; until that has worked, what is in memory counts for nothing. */
  /** @param {Entry} entry */
  async #commit(entry) {
    this.#stale = true;
    // Rounds are never older than the last entry, so no window reaches back further than this.
    const forgotten = entry.t - this.enrolled.window;
    await this.store.commit(this.memory.commits, (memory) => {
      const same = (/** @type {Entry} */ one) => one.t === entry.t && one.round === entry.round;
      if (!memory.entries.some(same)) memory.entries.push(entry);
      else if (entry.report) throw new Error("a second report of one round");
      memory.entries = memory.entries.filter((one) => one.t > forgotten);
    });
    this.memory = await this.store.load();
    this.#readLedger();
    this.#stale = false;
    const live = new Set(this.#answered.keys());
    this.#delivered = new Set([...this.#delivered].filter((key) => live.has(key)));
  }

  /** @param {Round} asked @param {Uint8Array} report @returns {Promise<Submission>} */
  async #submission(asked, report) {
    const enrolment = /** @type {Enrolment} */ (this.memory.enrolment);
    const path = `/v1/streams/${this.enrolled.stream}/rounds/${asked.name}/reports`;
    const message = joined(utf8(`POST\n${path}\n${asked.name}\n`), report);
    const mac = (await hmacSha256(enrolment.key, message)).slice(0, 16);
    return { round: asked, path, report, mac };
  }

  /** @param {Round} asked the collector has its report: no need to send it again */
  arrived(asked) {
    this.#delivered.add(keyOf(asked));
  }

  /** Count a refusal. @template {DeviceError} T @param {T} fault @returns {Promise<T>} */
  note(fault) {
    return this.#alone(() => this.#note(fault));
  }

  /** @template {DeviceError} T @param {T} fault */
  async #note(fault) {
    const times = (this.#refusals.get(fault.code) ?? 0) + 1;
    this.#refusals.set(fault.code, times);
    if (this.#stale) return fault;
    try {
      await this.store.commit(this.memory.commits, (memory) => {
        const known = memory.refusals.find((one) => one.code === fault.code);
        const lastMs = this.clock.wallMs();
        if (known) {
          Object.assign(known, { times: known.times + times, lastMs, detail: fault.message });
        } else {
          memory.refusals.push({ code: fault.code, times, lastMs, detail: fault.message });
        }
      });
      this.#refusals.delete(fault.code);
      this.memory = await this.store.load();
    } catch (error) {
      if (!(error instanceof DeviceError)) throw error;
      this.#stale = true; // they are no more than counts
    }
    return fault;
  }
}
