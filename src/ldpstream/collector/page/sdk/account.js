/**
 * The part of a device that keeps the promise, as `device/account.py`: decide by the rules, commit,
 * and only then hand out. No network here: what `consider` returns to be sent is on disk, with its
 * debit.
 */

import { leaveMac, reportMac, reportsPath, roundsMac } from "./authentication.js";
import { randomBytes, toHex } from "./bytes.js";
import { LabelTime, OwnTime, lookAt, newMark } from "./clock.js";
import { Ledger } from "./ledger.js";
import { DeviceError, LedgerUnusable, Refused, TermsRefused } from "./problems.js";
import { keyOf } from "./rounds.js";
import { Silence, decide, isSelected, lastMomentMs } from "./rules.js";
import { momentMs, nextTurn, roundName } from "./slots.js";
import { isSound, takenOver } from "./store.js";
import { Terms } from "./terms.js";

/** @typedef {import("./rounds.js").Round} Round */
/** @typedef {import("./clock.js").Look} Look */
/** @typedef {import("./store.js").Change} Change */
/** @typedef {import("./store.js").Memory} Memory */
/** @typedef {import("./store.js").Enrolment} Enrolment */
/** @typedef {Omit<import("./store.js").Entry, "ownMs" | "atMs">} Debit */
/** @typedef {import("./rules.js").Decision} Decision */
/** @typedef {import("./randomness.js").Source} Source */
/** @typedef {(terms: Terms, source: Source) => number} Reading reads the value held now: `values.js` */
/**
 * A report that is on disk, and may leave.
 * @typedef {{round: Round, path: string, report: Uint8Array, headers: Record<string, string>}} Submission
 */
/** A report that is due unasked, by label time. @typedef {{round: Round, atMs: number}} Turn */
/** @typedef {{send: Submission} | {waitMs: number} | {silence: string} | {refusal: Refused}} Considered */

/** How often own time is put on disk after a report. */
const MARKS_PER_SPAN = 8;
/** By how much a wall clock must have been moved for that to be put on disk. */
const MOVED_MS = 1000;
/** Characters of a refusal that are stored: a collector has had a say in them. */
const LONGEST_DETAIL = 200;
/** In place of the name of a round: a debit of a stream that was left. */
const LEFT = "left";

export class Account {
  /** @type {OwnTime | null} own time as this page counts it */ #own = null;
  /** The id of the mark in the memory that it counts from. */
  #mark = "";
  /** By how much the wall clock was ahead of the steady one when this page was opened, or marked. */
  #apart = 0;
  /** @type {Map<string, Uint8Array>} */ #answered = new Map();
  /** @type {Set<string>} under this number */ #delivered = new Set();
  #number = "";
  /** Private, as it is where it can be stored: neither JSON nor a console shows the secrets in it. */
  /** @type {Memory} */ #memory = /** @type {any} */ (null);
  /** @type {Map<string, import("./store.js").RefusalCount>} */ #refusals = new Map();
  /** @type {Set<string>} */ #told = new Set();

  /** @type {Terms | null} */ terms = null;
  /** @type {Ledger} */ ledger = new Ledger([]);

  /**
   * @param {import("./store.js").Store} store
   * @param {import("./clock.js").Clock} clock
   * @param {Source} source
   */
  constructor(store, clock, source) {
    this.store = store;
    this.clock = clock;
    this.source = source;
    this.label = new LabelTime(clock);
  }

  /** Read the memory; call once before anything else. */
  open() {
    return this.#change(() => undefined);
  }

  /** Read it again: another page may have left the stream. @returns {Promise<string>} the number */
  async refresh() {
    await this.#load();
    return this.#number;
  }

  /** Read the memory as it is now, and the terms in it: their pin is an asynchronous hash. */
  async #load() {
    let memory = await this.store.load();
    if (!isSound(memory)) memory = takenOver(memory, lookAt(this.clock));
    const agreed = memory.enrolment?.terms;
    if (agreed !== this.terms?.canonical) {
      this.terms = agreed === undefined ? null : await Terms.read(JSON.parse(agreed));
    }
    this.#recall(memory);
  }

  /**
   * Change the memory in one transaction; count it as spent if it may be an older copy (rule 6).
   * @template T @param {(change: Change) => T} act @returns {Promise<T>}
   */
  async #change(act) {
    for (;;) {
      await this.#load();
      const done = await this.store.change((change) => {
        if (!isSound(change.memory)) {
          change.memory = takenOver(change.memory, lookAt(this.clock));
          [change.vouchedFor, change.made] = [false, true];
        }
        // Another page may have enrolled, or left, since: its terms must be read first.
        if (change.memory.enrolment?.terms !== this.terms?.canonical) {
          change.made = false;
          return null;
        }
        this.#recall(change.memory);
        if (!change.vouchedFor) this.#doubt(change);
        const result = act(change);
        return { result, memory: change.memory };
      });
      if (done) {
        this.#recall(done.memory);
        return done.result;
      }
    }
  }

  /** Take the memory for an older copy: what it does not know of may have left since (rule 6). */
  /** @param {Change} change */
  #doubt(change) {
    const { enrolment } = change.memory;
    change.memory.pastKnown = false;
    if (!this.terms || !enrolment) return;
    enrolment.doubtful = true;
    this.#countAsSpent(change, this.terms);
  }

  /** @param {Memory} memory as it is on disk, or about to be */
  #recall(memory) {
    this.#memory = memory;
    this.#goOnFrom(memory.own);
    const debits = memory.entries.map(({ ownMs, nano }) => /** @type {const} */ ([ownMs, nano]));
    const promises = this.terms ? [this.terms.promise, ...memory.ended] : memory.ended;
    this.ledger = new Ledger(promises, debits, memory.forgottenMs);
    const number = memory.enrolment ? toHex(memory.enrolment.number) : "";
    if (number !== this.#number) this.#forgetHeard();
    this.#number = number;
    this.#answered = new Map();
    for (const { t, round, report } of memory.entries) {
      if (report) this.#answered.set(keyOf({ t, name: round }), report);
    }
  }

  /** Forget what was heard under another number; refusals may name its collector. */
  #forgetHeard() {
    this.#delivered.clear();
    if (!this.#number) return;
    this.#refusals.clear();
    this.#told.clear();
  }

  /**
   * Count own time from the memory's mark. How long ago another page made it, this page cannot tell
   * but by the wall clock, which it asks only once, when it is opened. From then on it counts from
   * the moment at which it first sees a mark: never more than has passed since the mark was made.
   * @param {import("./clock.js").Mark} mark
   */
  #goOnFrom({ id, ownMs, look }) {
    const now = lookAt(this.clock);
    const mark = new OwnTime(ownMs, look);
    if (!this.#own) {
      this.#own = new OwnTime(mark.at(now), now);
      this.#apart = apart(now);
    } else if (look.boot !== null && look.boot === now.boot) {
      this.#own = mark;
      this.#apart = apart(look);
    } else if (id !== this.#mark) this.#own = new OwnTime(ownMs, now);
    this.#mark = id;
  }

  /** Enter the whole epsilon now: anything may have left up to this moment (rule 6). */
  /** @param {Change} change @param {Terms} terms */
  #countAsSpent(change, terms) {
    const { memory } = change;
    const ownMs = Math.max(memory.own.ownMs, this.ownMs());
    memory.entries = memory.entries.filter(({ round }) => round);
    // The entry is for people: a forgotten moment binds promises of any size.
    this.#enter(change, { t: 0, round: "", nano: terms.epsilonNano, report: null }, ownMs);
    memory.forgottenMs = Math.max(memory.forgottenMs ?? 0, ownMs);
    this.#count(new Refused("past-unknown", { span: spelled(terms.promise.span) }));
    this.#putRefusals(change);
    this.#recall(memory);
  }

  /** Enter a debit, and mark own time: other pages' clocks must go on from there. */
  /** @param {Change} change @param {Debit} debit @param {number} ownMs */
  #enter(change, debit, ownMs) {
    change.memory.entries.push({ ...debit, ownMs, atMs: this.clock.wallMs() });
    this.#markNow(change, ownMs);
  }

  /** @param {Change} change @param {number} ownMs */
  #markNow(change, ownMs) {
    const { memory } = change;
    memory.own = newMark(Math.max(memory.own.ownMs, ownMs), lookAt(this.clock));
    change.made = true;
  }

  /** All that this device remembers. */
  get memory() {
    return this.#memory;
  }

  /** @returns {Terms} */
  get enrolled() {
    if (!this.terms) throw new DeviceError("not-enrolled", { file: this.store.name });
    return this.terms;
  }

  /** @returns {Enrolment} */
  get enrolment() {
    const { enrolment } = this.memory;
    if (!enrolment) throw new DeviceError("not-enrolled", { file: this.store.name });
    return enrolment;
  }

  /** @returns {number} own time now */
  ownMs() {
    return this.#ownAt(lookAt(this.clock));
  }

  /** @param {Look} look */
  #ownAt(look) {
    return /** @type {OwnTime} */ (this.#own).at(look);
  }

  /**
   * Commit what was agreed on with who showed this secret. A ledger whose past is unknown starts as
   * spent (rule 6). Of a later enrolment only the address and what the collector knows the device by
   * are taken.
   * @param {Uint8Array} secret @param {Terms} terms @param {Omit<Enrolment, "terms" | "doubtful">} offered
   */
  async enrol(secret, terms, offered) {
    await this.#change((change) => {
      const { memory } = change;
      if (toHex(memory.secret) !== toHex(secret)) {
        // The key is of another device: another page has made this one, or has left.
        throw new LedgerUnusable("ledger-replaced", { file: this.store.name });
      }
      const known = this.terms;
      if (known && known.pin !== terms.pin) {
        throw new TermsRefused("terms-differ", { given: terms.pin, expected: known.pin });
      }
      const unspent = memory.pastKnown;
      if (toHex(offered.number) !== this.#number) {
        // The same bytes would link the two numbers.
        memory.entries = memory.entries.map((one) => ({ ...one, report: null }));
      }
      const doubtful = memory.enrolment?.doubtful ?? false;
      memory.enrolment = { ...offered, terms: terms.canonical, doubtful };
      memory.pastKnown = false;
      change.made = true;
      if (!known && !unspent) this.#countAsSpent(change, terms);
    });
    await this.#load();
  }

  /** The headers by which this device leaves its stream: made while there is a key. */
  async farewell() {
    const { key, number } = this.enrolment;
    return proof(number, await leaveMac(key, this.enrolled.stream));
  }

  /**
   * Forget the enrolment, the key, the secret and all reports, in one transaction. The debits stay, and
   * the promise binds until its span has passed: to join again is no way around it.
   */
  async leave() {
    await this.#change((change) => {
      const { memory } = change;
      const { promise, intervalMs } = this.enrolled;
      const { epsilonNano, span } = promise;
      const ownMs = Math.max(memory.own.ownMs, this.ownMs());
      forgetPromises(memory, ownMs - intervalMs);
      // It binds spans that hold a report made under it, known or not, and only those.
      const since = ownMs - span;
      const unknown = this.enrolment.doubtful && (memory.forgottenMs ?? since) > since;
      if (unknown || memory.entries.some((one) => one.t > 0 && one.ownMs > since)) {
        memory.ended.push({ epsilonNano, span, until: ownMs + span });
      }
      memory.entries = memory.entries.map(({ round, nano, ownMs }) => {
        return { t: 0, round: round && LEFT, nano, report: null, ownMs, atMs: 0 };
      });
      memory.enrolment = null;
      memory.secret = randomBytes(memory.secret.length);
      memory.rejoins += 1;
      memory.pastKnown = true; // where it is not, a forgotten moment says so
      memory.refusals = []; // they may name the collector
      this.#refusals.clear();
      this.#markNow(change, ownMs);
    });
    await this.#load();
  }

  /**
   * Return the next report that is due, in a timestamp other than `taken`. Turns for which the budget
   * is not free in time are passed over: too soon after an epoch has changed the slot, for example.
   * @param {number | null} taken @returns {Promise<Turn>}
   */
  async turn(taken) {
    await this.#load();
    const terms = this.enrolled;
    const nowMs = this.label.nowMs();
    const nowT = Math.max(1, terms.timestampAt(nowMs));
    const next = await this.#nextRound(nowT);
    const { stream, deadlineMs } = terms;
    // Of the key, which is another one at every collector: moments link no numbers.
    const { key } = this.enrolment;
    const intoMs = await momentMs(key, stream, /** @type {number} */ (deadlineMs));
    const undelivered = this.#answered.has(keyOf(next)) && !this.#delivered.has(keyOf(next));
    if (undelivered && next.t !== taken) {
      const atMs = next.t === nowT ? nowMs : terms.startOf(next.t) + intoMs;
      return { round: next, atMs }; // the same bytes again
    }
    const freeMs = /** @type {number} */ (this.ledger.freeFrom(terms.epsilonNano));
    const firstMs = Math.max(nowMs, nowMs + freeMs - this.ownMs());
    for (let t = Math.max(nowT, terms.timestampAt(firstMs)); ; ) {
      const round = await this.#nextRound(t);
      const atMs = Math.max(firstMs, terms.startOf(round.t) + intoMs);
      const isNew = round.t !== taken && !this.#answered.has(keyOf(round));
      if (isNew && atMs < lastMomentMs(round, terms)) return { round, atMs };
      t = round.t + 1;
    }
  }

  /** @param {number} from @returns {Promise<Round>} of the device's first turn from then on */
  async #nextRound(from) {
    const [terms, { key }] = [this.enrolled, this.enrolment];
    const t = await nextTurn(key, terms.window, from);
    const { epsilonNano } = terms;
    return { name: roundName(t), t, epsilonNano, deadlineMs: terms.deadlineOf(t), rate: [1, 1] };
  }

  /**
   * Decide about a round that was announced under `pin`. Rejects with `LedgerUnusable` if the disk
   * does not take it; then nothing may be sent.
   * @param {string} pin @param {Round | Refused} asked @param {Reading} reading
   * @returns {Promise<Considered>}
   */
  async consider(pin, asked, reading) {
    if (asked instanceof Refused) return { refusal: await this.note(asked) };
    await this.#load();
    const selected = await isSelected(asked, this.enrolled, this.memory.secret, this.enrolment.key);
    const before = lookAt(this.clock);
    let decision = this.#decide(pin, asked, selected, before);
    if ("fresh" in decision) {
      // The value may be looked at from here on, and is not looked at in vain.
      const value = reading(this.enrolled, this.source);
      decision = await this.#draw(pin, asked, selected, before, value);
    }
    if (decision instanceof Refused) return { refusal: await this.note(decision) };
    if (!("repeat" in decision)) return decision;
    return this.#delivered.has(keyOf(asked))
      ? { silence: Silence.DELIVERED }
      : { send: await this.#submission(asked, decision.repeat) };
  }

  /** @param {string} pin @param {Round} asked @param {boolean} selected @param {Look} look */
  #decide(pin, asked, selected, look) {
    const state = { terms: this.enrolled, ledger: this.ledger, answered: this.#answered, selected };
    return decide(pin, asked, state, this.#ownAt(look), this.label.nowMs());
  }

  /**
   * Decide again, with all others locked out, and commit a report of this value. The check is made
   * with the own time before the value was read, the debit is entered with the own time after it.
   * @param {string} pin @param {Round} asked @param {boolean} selected
   * @param {Look} before @param {number} value
   * @returns {Promise<Exclude<Decision, {fresh: true}>>}
   */
  async #draw(pin, asked, selected, before, value) {
    const number = this.#number;
    const decision = await this.#change((change) => {
      // Another page has left, or enrolled elsewhere.
      if (this.#number !== number) return { silence: Silence.MOVED_ON };
      const decision = this.#decide(pin, asked, selected, before);
      if (!("fresh" in decision)) {
        const ended = decision instanceof Refused && decision.code === "round-past";
        return ended ? { silence: Silence.MOVED_ON } : decision;
      }
      const { name: round, t, epsilonNano: nano } = asked;
      const report = this.enrolled.randomiser(nano).report(value, this.source);
      const checkedMs = this.#ownAt(before);
      const ownMs = Math.max(checkedMs, this.ownMs());
      const ledger = this.ledger.spend(ownMs, nano, checkedMs).forget(ownMs);
      this.#enter(change, { t, round, nano, report }, ownMs);
      const { memory } = change;
      memory.entries = memory.entries.filter((one) => one.ownMs > ownMs - ledger.longestSpan);
      memory.forgottenMs = ledger.forgotten;
      // Another page may still read a value for which it was checked against a promise; it cannot
      // read for longer than a timestamp.
      forgetPromises(memory, ownMs - this.enrolled.intervalMs);
      this.#putRefusals(change);
      return { repeat: report };
    });
    if ("repeat" in decision) {
      const live = [...this.#delivered].filter((key) => this.#answered.has(key));
      this.#delivered = new Set(live);
    }
    return decision;
  }

  /**
   * Put own time on disk, if it can be done: now and then, since a page that crashes would lose it,
   * and when the wall clock was moved, which the next page would take for time that has passed.
   */
  async markTime() {
    const { debits } = this.ledger.promises.length ? this.ledger.forget(this.ownMs()) : this.ledger;
    if (!debits.length || !this.#isDue()) return;
    await this.#try((change) => {
      // Another page may have done so: it must not be set back to what this one knows of it.
      if (this.#isDue()) this.#markNow(change, this.ownMs());
    });
  }

  #isDue() {
    const now = lookAt(this.clock);
    if (Math.abs(apart(now) - this.#apart) > MOVED_MS) return true;
    const passed = now.steadyMs - /** @type {OwnTime} */ (this.#own).look.steadyMs;
    return passed * MARKS_PER_SPAN >= this.ledger.longestSpan;
  }

  /** @param {Round} asked @param {Uint8Array} report @returns {Promise<Submission>} */
  async #submission(asked, report) {
    const { stream, pin } = this.enrolled;
    const { number, key } = this.enrolment;
    const headers = proof(number, await reportMac(key, stream, pin, asked.name, report));
    return { round: asked, path: reportsPath(stream, asked.name), report, headers };
  }

  /**
   * The headers that let this device hear of its rounds.
   * @param {number} after the serial that it asks from @returns {Promise<Record<string, string>>}
   */
  async proof(after) {
    const { number, key } = this.enrolment;
    return proof(number, await roundsMac(key, this.enrolled.stream, after));
  }

  /** @param {Round} asked the collector has its report: no need to send it again */
  arrived(asked) {
    this.#delivered.add(keyOf(asked));
  }

  /** Count a refusal; put it on disk with the next report, or at once if it is a new kind. */
  /** @template {DeviceError} T @param {T} fault @returns {Promise<T>} */
  async note(fault) {
    this.#count(fault);
    if (!this.#told.has(fault.code)) {
      this.#told.add(fault.code);
      await this.saveRefusals();
    }
    return fault;
  }

  /** @param {DeviceError} fault */
  #count({ code, message }) {
    const times = (this.#refusals.get(code)?.times ?? 0) + 1;
    const detail = message.slice(0, LONGEST_DETAIL);
    this.#refusals.set(code, { code, times, lastMs: this.clock.wallMs(), detail });
  }

  /** @param {Change} change */
  #putRefusals(change) {
    if (!this.#refusals.size) return;
    change.memory.refusals = this.refusals;
    this.#refusals.clear();
    change.made = true;
  }

  /** How often what was refused, whether or not it is on disk. */
  get refusals() {
    const counts = new Map(this.memory.refusals.map((count) => [count.code, count]));
    for (const count of this.#refusals.values()) {
      const times = (counts.get(count.code)?.times ?? 0) + count.times;
      counts.set(count.code, { ...count, times });
    }
    return [...counts.values()];
  }

  /** Put the counts of refusals on disk, if it can be done: they are no more than counts. */
  async saveRefusals() {
    if (this.#refusals.size) await this.#try((change) => this.#putRefusals(change));
  }

  /** Change what may as well stay as it is. @param {(change: Change) => void} act */
  async #try(act) {
    try {
      await this.#change(act);
    } catch (error) {
      if (!(error instanceof DeviceError)) throw error;
    }
  }

  /** Put on disk what can be: counts of refusals, and how far own time has come. */
  async close() {
    await this.saveRefusals();
    await this.markTime();
  }
}

/** @param {Memory} memory @param {number} ownMs at which promises that have ended do not bind any more */
function forgetPromises(memory, ownMs) {
  memory.ended = memory.ended.filter(({ until }) => ownMs < until);
}

/** @param {Uint8Array} number @param {Uint8Array} mac @returns {Record<string, string>} headers */
const proof = (number, mac) => ({ "Ldp-Device": toHex(number), "Ldp-Mac": toHex(mac) });

/** @param {Look} look by how much the wall clock is ahead of the steady one */
const apart = ({ wallMs, steadyMs }) => wallMs - steadyMs;

/** @param {number} ms @returns {string} in the largest unit that it is a whole number of */
export function spelled(ms) {
  const units = Object.entries({ d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 });
  const [unit, size] = units.find(([, size]) => ms % size === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}
