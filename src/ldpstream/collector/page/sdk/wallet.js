/**
 * A device's memory in use: one file, many enrolments, own time, and the limit over all of them. Whatever
 * is done here is one transaction on the store, with every other page or process locked out.
 */

import { randomBytes, toHex } from "./bytes.js";
import { lookAt, newMark } from "./clock.js";
import { spelled } from "./durations.js";
import { checkLimit, endPromise, enrolAgain, enrolFirst } from "./enrolments.js";
import { enrolmentSecret, streamSecret } from "./identity.js";
import { Ledger } from "./ledger.js";
import { limitsAfter, readLimit } from "./limit.js";
import { countsFor, current, forget, forgetAll, forgottenOf, handOver } from "./memory.js";
import { inForce, reservedIn } from "./memory.js";
import { PageTime } from "./page_time.js";
import { DeviceError, LedgerUnusable, Refused } from "./problems.js";
import { addRefusal } from "./refusals.js";
import { Terms } from "./terms.js";

/** @typedef {import("./clock.js").Look} Look */
/** @typedef {import("./store.js").Change} Change */
/** @typedef {import("./memory.js").Memory} Memory */
/** @typedef {import("./memory.js").Enrolment} Enrolment */
/** @typedef {import("./memory.js").Owned} Owned */
/** @typedef {import("./randomness.js").Source} Source */
/** @typedef {Omit<import("./memory.js").Entry, "ownMs" | "atMs">} Debit */
/** @typedef {import("./enrolments.js").Offered} Offered */
/** @typedef {import("./enrolments.js").Wishes} Wishes */

/** How often own time is put on disk after a report. */
const MARKS_PER_SPAN = 8;

export class Wallet {
  /** @type {PageTime} */ #time;
  /** Private, as it is where it can be stored: neither JSON nor a console shows the secrets in it. */
  /** @type {Memory} */ #memory = /** @type {any} */ (null);
  /** How often the memory was read, or written. */
  revision = 0;
  /** @type {Map<string, Map<string, Terms>>} terms that were read, by their canonical JSON and level */
  #terms = new Map();

  /** @param {import("./store.js").Store} store @param {import("./clock.js").Clock} clock @param {Source} source */
  constructor(store, clock, source) {
    this.store = store;
    this.clock = clock;
    this.source = source;
    this.#time = new PageTime(clock);
  }

  /** Read the memory; call once before anything else. */
  open() {
    return this.change(() => undefined);
  }

  /** All that this device remembers. */
  get memory() {
    return this.#memory;
  }

  /** Read the memory as it is now, and the terms in it: their pin is an asynchronous hash. */
  async load() {
    const { memory } = current(await this.store.load(), lookAt(this.clock));
    for (const { terms, successor, level } of memory.enrolments) {
      if (!this.#known(terms, level)) await this.#read(terms, level);
      if (successor && !this.#known(successor.terms, level)) await this.#read(successor.terms, level);
    }
    this.#recall(memory);
  }

  /** @param {string} canonical @param {string} level that the terms may not have */
  async #read(canonical, level) {
    const terms = await Terms.read(JSON.parse(canonical));
    if (terms.hasLevel(level)) this.learn(terms.atLevel(level));
  }

  /** @param {Terms} terms that may be agreed on, at a level */
  learn(terms) {
    const levels = this.#terms.get(terms.canonical) ?? new Map();
    this.#terms.set(terms.canonical, levels.set(terms.level, terms));
  }

  /** @param {string} canonical @param {string} level */
  #known(canonical, level) {
    return this.#terms.get(canonical)?.get(level);
  }

  /** @param {Enrolment} enrolment */
  #isRead({ terms, successor, level }) {
    return this.#known(terms, level) && (!successor || this.#known(successor.terms, level));
  }

  /** @param {Enrolment} enrolment @returns {Terms} at its level */
  termsOf({ terms, level }) {
    return /** @type {Terms} */ (this.#known(terms, level));
  }

  /** @param {Enrolment} enrolment @returns {Terms | null} those that the device has accepted, at its level */
  successorOf({ successor, level }) {
    return successor && /** @type {Terms} */ (this.#known(successor.terms, level));
  }

  /**
   * Change the memory in one transaction; count it as spent if it may be an older copy (rule 6).
   * @template T @param {(change: Change) => T} act @returns {Promise<T>}
   */
  async change(act) {
    for (;;) {
      await this.load();
      const before = this.#memory;
      const done = await this.store.change((change) => {
        const { memory, sound } = current(change.memory, lookAt(this.clock));
        if (memory !== change.memory) [change.memory, change.made] = [memory, true];
        if (!sound) change.vouchedFor = false;
        // Another page may have enrolled, or left, since: its terms must be read first.
        if (!memory.enrolments.every((one) => this.#isRead(one))) {
          change.made = false;
          return null;
        }
        this.#recall(memory);
        try {
          if (!change.vouchedFor) this.#doubt(change);
          return { result: act(change), memory: change.memory };
        } catch (error) {
          this.#recall(before); // not what would have been
          throw error;
        }
      });
      if (done) {
        this.#recall(done.memory);
        return done.result;
      }
    }
  }

  /** Change what may as well stay as it is. @param {(change: Change) => void} act */
  async try(act) {
    try {
      await this.change(act);
    } catch (error) {
      if (!(error instanceof DeviceError)) throw error;
    }
  }

  /** @param {Memory} memory as it is on disk, or about to be */
  #recall(memory) {
    this.#memory = memory;
    this.revision += 1;
    this.#time.goOnFrom(memory.own);
  }

  /** Take the memory for an older copy: what it does not know of may have left since (rule 6). */
  /** @param {Change} change */
  #doubt(change) {
    const { memory } = change;
    memory.pastKnown = false;
    if (!memory.enrolments.length) return;
    for (const enrolment of memory.enrolments) enrolment.doubtful = true;
    this.countAsSpent(change);
  }

  /** Enter the whole epsilon now, of all streams: anything may have left up to this moment (rule 6). */
  /** @param {Change} change */
  countAsSpent(change) {
    const { memory } = change;
    const ownMs = this.ownMsIn(memory);
    memory.entries = memory.entries.filter(({ round }) => round);
    for (const enrolment of memory.enrolments) {
      const { epsilonNano: nano, promise, version } = this.termsOf(enrolment);
      const whose = { enrolment: enrolment.id, left: false };
      // The entry is for people: a forgotten moment binds promises of any size.
      this.enter(change, { ...whose, t: 0, round: "", version, nano, report: null }, ownMs);
      const fault = new Refused("past-unknown", { span: spelled(promise.span) });
      addRefusal(memory, enrolment.id, fault, this.clock.wallMs());
    }
    forgetAll(memory, ownMs);
    memory.pastKnown = true; // a forgotten moment stands for what is missing
    this.#recall(memory);
  }

  /** Enter a debit, and mark own time: other pages' clocks must go on from there. */
  /** @param {Change} change @param {Debit} debit @param {number} ownMs */
  enter(change, debit, ownMs) {
    change.memory.entries.push({ ...debit, ownMs, atMs: this.clock.wallMs() });
    this.markNow(change, ownMs);
  }

  /** @param {Change} change @param {number} ownMs */
  markNow(change, ownMs) {
    const { memory } = change;
    memory.own = newMark(Math.max(memory.own.ownMs, ownMs), lookAt(this.clock));
    change.made = true;
  }

  /** @returns {number} own time now */
  ownMs() {
    return this.ownAt(lookAt(this.clock));
  }

  /** @param {Look} look */
  ownAt(look) {
    return this.#time.at(look);
  }

  /** @param {Memory} memory @returns {number} own time now, and no earlier than what is in it */
  ownMsIn(memory) {
    return Math.max(memory.own.ownMs, this.ownMs());
  }

  /**
   * The ledger of one enrolment under its terms, or those that it has accepted.
   * @param {Enrolment} enrolment @param {Terms} terms
   */
  ledgerOf(enrolment, terms) {
    const memory = this.#memory;
    const counts = (/** @type {Owned} */ one) => countsFor(one, enrolment.id);
    // The promise in force binds the first report under a successor too.
    const inForce = new Set([terms, this.termsOf(enrolment)]);
    const promises = [...[...inForce].map(({ promise }) => promise), ...memory.ended.filter(counts)];
    const debits = memory.entries.filter(counts).map(debitOf);
    return new Ledger(promises, debits, forgottenOf(memory, counts));
  }

  /**
   * The ledger of the limit, which sums over all streams, those that were left too; as it binds one of
   * them, from which the others' reserves are kept free. Without a limit it allows everything.
   * @param {Enrolment | null} [asking]
   */
  limitLedger(asking = null) {
    const { limits, enrolments, entries } = this.#memory;
    if (!limits.length) return new Ledger([]);
    const reserves = enrolments
      .filter(({ reserveNano }) => reserveNano)
      .map(({ id, reserveNano: nano }) => ({ nano, asks: id === asking?.id, debits: this.#debitsOf(id) }));
    return new Ledger(limits, entries.map(debitOf), forgottenOf(this.#memory, () => true), reserves);
  }

  /** @param {number} id @returns {import("./ledger.js").Debit[]} of the stream itself, without what it inherited */
  #debitsOf(id) {
    return this.#memory.entries.filter((one) => !one.left && one.enrolment === id).map(debitOf);
  }

  /**
   * Set the limit, or null for none. One that is tighter binds at once. One that is looser lets the old one bind
   * until its span has passed.
   * @param {import("./limit.js").Limit | null} given
   */
  async setLimit(given) {
    const limit = given && readLimit(given);
    await this.change((change) => {
      const { memory } = change;
      const known = inForce(memory);
      if (known?.epsilonNano === limit?.epsilonNano && known?.span === limit?.span) return;
      const reserved = reservedIn(memory);
      if (limit && reserved > limit.epsilonNano) {
        throw new DeviceError("limit-too-small", { limit: limit.epsilonNano, needed: reserved });
      }
      const ownMs = this.ownMsIn(memory);
      memory.limits = limitsAfter(memory.limits, limit, ownMs);
      this.markNow(change, ownMs);
    });
  }

  /** @param {string} place @param {string} stream @returns {Enrolment | null} in this stream, there */
  at(place, stream) {
    const { enrolments } = this.#memory;
    return enrolments.find((one) => one.url === place && this.termsOf(one).stream === stream) ?? null;
  }

  /** @param {Enrolment} enrolment @returns {string[]} the pins of all terms that it has had, and of those before */
  lineageOf(enrolment) {
    const terms = [this.termsOf(enrolment), this.successorOf(enrolment)];
    return [...new Set([...enrolment.earlier, ...terms.flatMap((one) => (one ? pinsOf(one) : []))])];
  }

  /**
   * Return where else the device has, or had, these terms, those before, or some that follow them; null:
   * nowhere. There is one epsilon for a pin, so they never get a second ledger beside it.
   * @param {Terms} terms @param {number} id of the enrolment that would have them
   */
  holderOf(terms, id) {
    const { enrolments, former } = this.#memory;
    const pins = pinsOf(terms);
    const isHeld = (/** @type {string} */ pin) => pins.includes(pin);
    const other = enrolments.find((one) => one.id !== id && this.lineageOf(one).some(isHeld));
    if (other) return other.url;
    const wasLeft = former.some((one) => isHeld(one.pin) && !countsFor(one, id));
    return wasLeft ? "an address that it has left" : null;
  }

  /**
   * Return the secret of an enrolment at this place, and what is shown of it to enrol.
   * @param {string} place @param {string} stream
   */
  async introduction(place, stream) {
    const known = this.at(place, stream);
    const { secret: root, rejoins } = this.#memory;
    const secret = known?.secret ?? (await streamSecret(root, place, stream));
    const shown = await enrolmentSecret(secret, place, stream, known?.rejoins ?? rejoins);
    return { root, secret, shown };
  }

  /**
   * Commit what was agreed on by who introduced itself so. A wallet whose past is unknown starts as spent
   * (rule 6). Of a later enrolment in the same stream is taken what the collector knows the device by, and
   * the address if the stream has moved; the level, whose old promise binds until its span has passed; and
   * terms that follow.
   * @param {{root: Uint8Array, secret: Uint8Array}} introduced @param {Terms} terms at the level
   * @param {Offered} offered @param {Wishes} [wishes]
   * @param {{movedFrom?: string | null, asBefore?: boolean}} [how] `asBefore`: the level is meant to be that
   *   of before, which another page may have changed
   * @returns {Promise<number>} the id of the enrolment
   */
  async enrol({ root, secret }, terms, offered, wishes = {}, { movedFrom = null, asBefore = false } = {}) {
    this.learn(terms);
    for (const { terms: canonical } of this.#memory.enrolments) {
      // Another level of terms that are known: of those of before, or of those that follow.
      if (!this.#known(canonical, terms.level)) await this.#read(canonical, terms.level);
    }
    return this.change((change) => {
      const { memory } = change;
      const there = this.at(offered.url, terms.stream);
      const known = there ?? (movedFrom === null ? null : this.at(movedFrom, terms.stream));
      const expected = there ? [there.secret, secret] : [memory.secret, root];
      const isOther = asBefore && known && known.level !== terms.level;
      if (isOther || toHex(expected[0]) !== toHex(expected[1])) {
        // The key is of another device, or level: another page has made this one, has left, or moved.
        throw new LedgerUnusable("ledger-replaced", { file: this.store.name });
      }
      const place = this.holderOf(terms, known?.id ?? memory.nextId);
      if (place !== null) {
        const facts = { file: this.store.name, stream: terms.stream, place };
        throw new DeviceError("stream-elsewhere", facts);
      }
      change.made = true;
      const rejoins = there?.rejoins ?? memory.rejoins;
      const agreed = { ...offered, secret, rejoins, ...wishes };
      if (known) enrolAgain(this, memory, known, terms, agreed);
      const made = known ?? enrolFirst(this, change, terms, agreed);
      checkLimit(this, memory, made);
      return made.id;
    });
  }

  /** @param {number} id @param {number} reserveNano of the limit that are kept free for this stream */
  async setReserve(id, reserveNano) {
    await this.change((change) => {
      const enrolment = change.memory.enrolments.find((one) => one.id === id);
      if (!enrolment) throw new DeviceError("not-enrolled", { file: this.store.name });
      enrolment.reserveNano = reserveNano;
      checkLimit(this, change.memory, enrolment);
      change.made = true;
    });
  }

  /**
   * Forget an enrolment, its key, its secret and all its reports, in one transaction. The debits stay, and
   * the promise binds until its span has passed: to join again is no way around it.
   * @param {number} id
   */
  async leave(id) {
    await this.change((change) => {
      const { memory } = change;
      const enrolment = memory.enrolments.find((one) => one.id === id);
      if (!enrolment) throw new DeviceError("not-enrolled", { file: this.store.name });
      const ownMs = this.ownMsIn(memory);
      this.#forgetPromises(memory, ownMs);
      endPromise(this, memory, enrolment);
      memory.enrolments = memory.enrolments.filter((one) => one.id !== id);
      handOver(memory, id, this.lineageOf(enrolment));
      memory.secret = randomBytes(memory.secret.length);
      memory.rejoins += 1;
      // They may name the collector.
      memory.refusals = memory.refusals.filter((one) => one.enrolment && one.enrolment !== id);
      this.markNow(change, ownMs);
    });
  }

  /**
   * Leave out debits that no promise depends on any more, and promises that do not bind any more; remember
   * up to when.
   * @param {Memory} memory @param {number} ownMs
   */
  forgetOld(memory, ownMs) {
    const spans = new Map();
    const spanOf = (/** @type {Owned} */ one) => {
      const key = `${one.left} ${one.enrolment}`;
      if (!spans.has(key)) spans.set(key, this.#spanOf(memory, one));
      return spans.get(key);
    };
    memory.entries = memory.entries.filter((one) => {
      if (one.ownMs > ownMs - spanOf(one)) return true;
      forget(memory, one, one.ownMs);
      return false;
    });
    this.#forgetPromises(memory, ownMs);
  }

  /** @param {Memory} memory @param {number} ownMs */
  #forgetPromises(memory, ownMs) {
    // Another page may still read a value for which it was checked against a promise; it cannot read for
    // longer than a timestamp.
    const intervals = memory.enrolments.map((one) => this.termsOf(one).intervalMs);
    const beganMs = ownMs - Math.max(0, ...intervals);
    memory.ended = memory.ended.filter(({ until }) => beganMs < until);
    memory.limits = memory.limits.filter(({ until = Infinity }) => beganMs < until);
  }

  /** @param {Enrolment} enrolment @returns {number} of its terms and those that follow */
  longestSpanOf(enrolment) {
    return Math.max(this.termsOf(enrolment).promise.span, this.successorOf(enrolment)?.promise.span ?? 0);
  }

  /** @param {Enrolment} enrolment @returns {import("./memory.js").Entry[]} what counts against its promise */
  entriesOf({ id }) {
    return this.#memory.entries.filter((one) => countsFor(one, id));
  }

  /** @param {Memory} memory @param {Owned} owned for how long a debit of this owner can count */
  #spanOf({ enrolments, ended, limits }, owned) {
    const heirs = enrolments.filter(({ id }) => countsFor(owned, id));
    const isHeirs = (/** @type {Owned} */ one) =>
      (one.left && owned.left && one.enrolment === owned.enrolment) ||
      heirs.some(({ id }) => countsFor(one, id));
    const spans = [...limits, ...ended.filter(isHeirs)].map(({ span }) => span);
    for (const heir of heirs) {
      spans.push(this.termsOf(heir).promise.span, this.successorOf(heir)?.promise.span ?? 0);
    }
    return Math.max(0, ...spans);
  }

  /**
   * Put own time on disk, if it can be done: now and then, since a page that crashes would lose it,
   * and when the wall clock was moved, which the next page would take for time that has passed.
   */
  async markTime() {
    const memory = this.#memory;
    const ownMs = this.ownMs();
    const counts = memory.entries.some((one) => one.ownMs > ownMs - this.#spanOf(memory, one));
    if (!counts || !this.#isDue()) return;
    await this.try((change) => {
      // Another page may have done so: it must not be set back to what this one knows of it.
      if (this.#isDue()) this.markNow(change, this.ownMs());
    });
  }

  #isDue() {
    if (this.#time.wallWasMoved) return true;
    const { enrolments, ended, limits } = this.#memory;
    const promises = [...enrolments.map((one) => this.termsOf(one).promise), ...ended, ...limits];
    return this.#time.passedMs * MARKS_PER_SPAN >= Math.min(...promises.map(({ span }) => span));
  }
}

/** @param {Terms} terms @returns {string[]} their pin, and that of those that they follow */
const pinsOf = ({ pin, succeeds }) => (succeeds ? [pin, succeeds.pin] : [pin]);

/** @param {import("./memory.js").Entry} entry @returns {import("./ledger.js").Debit} */
const debitOf = ({ ownMs, nano }) => [ownMs, nano];
