/**
 * The part of a device that keeps the promise of one stream, as `device/account.py`: decide by the rules,
 * commit, and only then hand out. No network here: what `consider` returns to be sent is on disk, with its
 * debit. The wallet is shared with the device's other streams.
 */

import { leaveMac, proof, renewMac, reportMac, reportsPath, roundsMac, termsMac } from "./authentication.js";
import { toHex } from "./bytes.js";
import { LabelTime, lookAt } from "./clock.js";
import { goOver, keepPromise } from "./enrolments.js";
import { Budget } from "./ledger.js";
import { DeviceError, Refused } from "./problems.js";
import { Refusals } from "./refusals.js";
import { keyOf } from "./rounds.js";
import { Silence, decide, isSelected } from "./rules.js";
import { Policy, objection, renamedBy } from "./succession.js";
import { nextTurnOf } from "./turns.js";

/** @typedef {import("./rounds.js").Round} Round */
/** @typedef {import("./clock.js").Look} Look */
/** The clocks before a value was read, and own time by them. @typedef {{look: Look, ownMs: number}} Before */
/** @typedef {import("./store.js").Change} Change */
/** @typedef {import("./memory.js").Enrolment} Enrolment */
/** @typedef {import("./rules.js").Decision} Decision */
/** @typedef {import("./randomness.js").Source} Source */
/** @typedef {import("./terms.js").Terms} Terms */
/** Reads the value held now: `values.js`. @typedef {(terms: Terms, source: Source, renamed: Record<string, string>) => number} Reading */
/**
 * A report that is on disk, and may leave.
 * @typedef {{round: Round, url: string, path: string, report: Uint8Array, headers: Record<string, string>}} Submission
 */
/** @typedef {{send: Submission} | {waitMs: number} | {silence: string} | {refusal: Refused}} Considered */

/** In place of the id of an enrolment. */
const NOBODY = 0;

export class Account {
  /** The revision of the wallet's memory that the following were taken from. */
  #revision = -1;
  /** @type {Enrolment | null} */ #enrolment = null;
  /** @type {Map<string, Uint8Array>} */ #answered = new Map();
  /** @type {Set<string>} under this number */ #delivered = new Set();
  #number = "";
  #refusals = new Refusals();

  /** @type {number} the id of the enrolment; 0 if there is none */ #id;

  /**
   * @param {import("./wallet.js").Wallet} wallet
   * @param {number} [id] of the enrolment; without it, of the first that is the only one of the wallet
   */
  constructor(wallet, id = NOBODY) {
    this.wallet = wallet;
    this.#id = id;
    this.label = new LabelTime(wallet.clock);
    /** What the application says of this device: its public attributes. @type {Readonly<Record<string, unknown>>} */
    this.described = {};
  }

  get clock() {
    return this.wallet.clock;
  }

  /** Read it again: another page may have left the stream. @returns {Promise<string>} the number */
  async refresh() {
    await this.wallet.load();
    this.#look();
    return this.#number;
  }

  /** See what the wallet remembers of this stream. */
  #look() {
    const { memory, revision } = this.wallet;
    if (revision === this.#revision) return;
    this.#revision = revision;
    const { enrolments } = memory;
    // Never of another one, once it is bound: what the application holds is for that stream.
    if (this.#id === NOBODY && enrolments.length === 1) this.#id = enrolments[0].id;
    this.#enrolment = enrolments.find(({ id }) => id === this.#id) ?? null;
    const number = this.#enrolment ? toHex(this.#enrolment.number) : "";
    if (number !== this.#number) this.#forgetHeard(number);
    this.#answered = new Map();
    for (const { enrolment, left, t, round, version, report } of memory.entries) {
      if (report && !left && enrolment === this.#enrolment?.id) {
        this.#answered.set(`${version} ${keyOf({ t, name: round })}`, report);
      }
    }
  }

  /** Forget what was heard under another number, which it would link; refusals may name its collector. */
  /** @param {string} number */
  #forgetHeard(number) {
    this.#delivered.clear();
    this.label.restart();
    this.#number = number;
    this.#refusals.clear();
  }

  /** The id of the enrolment; 0 if there is none. */
  get id() {
    this.#look();
    return this.#enrolment?.id ?? NOBODY;
  }

  /** Whether it stands for an enrolment that is no more. */
  get wasLeft() {
    this.#look();
    return this.#id !== NOBODY && !this.#enrolment;
  }

  /** @returns {Enrolment} */
  get enrolment() {
    this.#look();
    if (!this.#enrolment) throw new DeviceError("not-enrolled", { file: this.wallet.store.name });
    return this.#enrolment;
  }

  /** @returns {Terms} that are agreed on, at the device's level */
  get enrolled() {
    return this.wallet.termsOf(this.enrolment);
  }

  /** What is agreed on; null before an enrolment. */
  get terms() {
    this.#look();
    return this.#enrolment && this.wallet.termsOf(this.#enrolment);
  }

  /** @param {number} t @returns {Terms} under which the device reports for this timestamp */
  termsAt(t) {
    const next = this.wallet.successorOf(this.enrolment);
    return next?.succeeds && t >= next.succeeds.fromT ? next : this.enrolled;
  }

  /** The terms under which the device reports now. */
  get termsNow() {
    return this.termsAt(this.enrolled.timestampAt(this.label.nowMs()));
  }

  /**
   * Whether the collector is known to have taken a report under the successor. Until then that may not have
   * begun, whatever the collector says of the time.
   */
  get wentOver() {
    const next = this.wallet.successorOf(this.enrolment);
    return next !== null && [...this.#delivered].some((key) => key.startsWith(`${next.version} `));
  }

  /** @param {Terms} terms @returns {Budget} of the stream, within the limit over all streams */
  budget(terms) {
    const { wallet, enrolment } = this;
    return new Budget(wallet.ledgerOf(enrolment, terms), wallet.limitLedger(enrolment));
  }

  /** @param {Round} round @returns {number} own time until the budget allows its report; 0 if it never does */
  freeInMs({ t, epsilonNano }) {
    const free = this.budget(this.termsAt(t)).freeFrom(epsilonNano) ?? 0;
    return Math.max(0, free - this.wallet.ownMs());
  }

  /** The headers by which this device leaves its stream: made while there is a key. */
  async farewell() {
    const { key, number } = this.enrolment;
    return proof(number, await leaveMac(key, this.enrolled.stream));
  }

  /** Forget the enrolment: what it has spent is kept (`Wallet.leave`). */
  async leave() {
    await this.wallet.leave(this.enrolment.id);
    this.#refusals.clear();
    await this.refresh();
  }

  /**
   * Return the next report that is due, in a timestamp other than `taken`.
   * @param {number | null} taken @returns {Promise<import("./turns.js").Turn>}
   */
  async turn(taken) {
    await this.refresh();
    return nextTurnOf(this, taken);
  }

  /** @param {Round} round @returns {boolean} whether its report was drawn */
  hasDrawn(round) {
    return this.#answered.has(this.#keyOf(round));
  }

  /** @param {Round} round @returns {boolean} whether the collector is known to have it */
  hasDelivered(round) {
    return this.#delivered.has(this.#keyOf(round));
  }

  /** @param {Round} round @returns {string} what makes it the same round under the same terms */
  #keyOf(round) {
    return `${this.termsAt(round.t).version} ${keyOf(round)}`;
  }

  /**
   * Decide about a round that was announced under `pin`, to who had this number. Rejects with
   * `LedgerUnusable` if the disk does not take it; then nothing may be sent.
   * @param {string} pin @param {Round | Refused} asked @param {Reading} reading
   * @param {string | null} [number] null: whichever it has
   * @returns {Promise<Considered>}
   */
  async consider(pin, asked, reading, number = null) {
    if (asked instanceof Refused) return { refusal: await this.note(asked) };
    const now = await this.refresh();
    // The stream may have been left, or have another address, where nobody has asked.
    if (number !== null && now !== number) return { silence: Silence.ELSEWHERE };
    const { secret, slotKey } = this.enrolment;
    const terms = this.termsAt(asked.t);
    const seen = await terms.seenBy(slotKey, this.described);
    const selected = await isSelected(asked, terms, secret, slotKey);
    const look = lookAt(this.clock);
    const before = { look, ownMs: this.wallet.ownAt(look) };
    let decision = this.#decide(pin, asked, selected, before.ownMs);
    if ("fresh" in decision) {
      // The value may be looked at from here on, and is not looked at in vain.
      const value = reading(seen, this.wallet.source, this.#renamedUnder(terms));
      decision = await this.#draw(pin, asked, selected, before, value, seen);
    }
    if (decision instanceof Refused) return { refusal: await this.note(decision) };
    if (!("repeat" in decision)) return decision;
    return this.hasDelivered(asked)
      ? { silence: Silence.DELIVERED }
      : { send: await this.#submission(asked, decision.repeat) };
  }

  /** @param {Terms} terms @returns {Record<string, string>} what labels of earlier terms are called under them */
  #renamedUnder(terms) {
    const { enrolled } = this;
    const { renamed } = this.enrolment;
    return terms === enrolled ? renamed : renamedBy(enrolled, terms, renamed);
  }

  /** @param {string} pin @param {Round} asked @param {boolean} selected @param {number} ownMs */
  #decide(pin, asked, selected, ownMs) {
    const terms = this.termsAt(asked.t);
    const { ledgers: [ledger, limit] } = this.budget(terms);
    const report = this.#answered.get(this.#keyOf(asked));
    const answered = new Map(report && [[keyOf(asked), report]]);
    const state = { terms, ledger, limit, answered, selected };
    return decide(pin, asked, state, ownMs, this.label.nowMs());
  }

  /**
   * Decide again, with all others locked out, and commit a report of this value. The check is made
   * with the own time before the value was read, the debit is entered with the own time after it.
   * @param {string} pin @param {Round} asked @param {boolean} selected
   * @param {Before} before @param {number} value @param {Terms} seen the terms that it is a value of
   * @returns {Promise<Exclude<Decision, {fresh: true}>>}
   */
  async #draw(pin, asked, selected, before, value, seen) {
    const { wallet } = this;
    const number = this.#number;
    const decision = await wallet.change((change) => {
      this.#look();
      // Another page has left, enrolled elsewhere, moved to another level, or gone over to a successor.
      const terms = this.#enrolment && this.#number === number ? this.termsAt(asked.t) : null;
      if (terms?.pin !== seen.pin || terms.level !== seen.level) return { silence: Silence.ELSEWHERE };
      const checkedMs = this.#ownAt(before);
      const decision = this.#decide(pin, asked, selected, checkedMs);
      if (!("fresh" in decision)) {
        const ended = decision instanceof Refused && decision.code === "round-past";
        return ended ? { silence: Silence.MOVED_ON } : decision;
      }
      return { repeat: this.#enter(change, asked, checkedMs, seen.randomiser(asked.epsilonNano), value) };
    });
    if ("repeat" in decision) {
      this.#look();
      this.#delivered = new Set([...this.#delivered].filter((key) => this.#answered.has(key)));
    }
    return decision;
  }

  /**
   * Return own time as it was before a reading. Another page may have marked it since: by its count that
   * moment may come out earlier, or later where a wall clock was moved. The earliest counts.
   * @param {Before} before
   */
  #ownAt({ look, ownMs }) {
    const { wallet } = this;
    return Math.min(ownMs, wallet.ownAt(look), wallet.ownMs());
  }

  /**
   * @param {Change} change @param {Round} asked @param {number} checkedMs
   * @param {import("./oracle.js").Oracle} randomiser @param {number} value
   */
  #enter(change, asked, checkedMs, randomiser, value) {
    const { wallet, enrolment } = this;
    const terms = this.termsAt(asked.t);
    const { name: round, t, epsilonNano: nano } = asked;
    const report = randomiser.report(value, wallet.source);
    const ownMs = Math.max(checkedMs, wallet.ownMs());
    this.budget(terms).check(checkedMs, nano);
    const whose = { enrolment: enrolment.id, left: false };
    wallet.enter(change, { ...whose, t, round, version: terms.version, nano, report }, ownMs);
    if (terms !== this.enrolled) keepPromise(change.memory, enrolment, terms, ownMs);
    wallet.forgetOld(change.memory, ownMs);
    this.#refusals.put(change.memory, enrolment.id);
    return report;
  }

  /** @param {Round} asked @param {Uint8Array} report @returns {Promise<Submission>} */
  async #submission(asked, report) {
    const { stream, pin, level } = this.termsAt(asked.t);
    const { url, number, key } = this.enrolment;
    const headers = proof(number, await reportMac(key, stream, pin, asked.name, report, level));
    return { round: asked, url, path: reportsPath(stream, asked.name), report, headers };
  }

  /**
   * The headers that let this device hear of its rounds.
   * @param {number} after the serial that it asks from @returns {Promise<Record<string, string>>}
   */
  async proof(after) {
    const { number, key } = this.enrolment;
    return proof(number, await roundsMac(key, this.enrolled.stream, after));
  }

  /** @param {string} pin the headers by which this device fetches the terms with this pin */
  async termsProof(pin) {
    const { number, key } = this.enrolment;
    return proof(number, await termsMac(key, this.enrolled.stream, pin));
  }

  /** The headers by which this device asks for a key of a new master secret. */
  async renewalProof() {
    const { number, key } = this.enrolment;
    return proof(number, await renewMac(key, this.enrolled.stream));
  }

  /**
   * Keep a new key, if the device is still the one that had this key before; and that one too, until the
   * collector has taken a report with the new one.
   * @param {Uint8Array} before @param {{key: Uint8Array, slotKey: Uint8Array}} keys
   */
  async renew(before, { key, slotKey }) {
    await this.wallet.change((change) => {
      const { enrolment } = this;
      if (toHex(enrolment.key) !== toHex(before)) return;
      const otherKeys = enrolment.otherKeys ?? { key: enrolment.key, slotKey: enrolment.slotKey };
      Object.assign(enrolment, { key, slotKey, otherKeys });
      change.made = true;
    });
  }

  /** Use the key of before a renewal, or the renewed one: the collector has refused the other. */
  async doubtKey() {
    if (!this.enrolment.otherKeys) return;
    await this.wallet.change((change) => {
      const { enrolment } = this;
      const { key, slotKey, otherKeys } = enrolment;
      if (!otherKeys) return;
      Object.assign(enrolment, { ...otherKeys, otherKeys: { key, slotKey } });
      change.made = true;
    });
  }

  /**
   * Accept terms that follow those of this stream, if nothing speaks against it. They apply from their
   * first timestamp on, or from now. If they follow a successor that may not have begun, they are neither
   * accepted nor declined: who let go of the terms before it by mistake would be silent until it begins.
   * @param {Terms} next whole
   */
  async accept(next) {
    const { wallet } = this;
    const isEarly = () => this.termsNow !== this.enrolled && !this.wentOver;
    if (isEarly()) return;
    const why = this.objectionTo(next);
    if (why) throw new Refused("successor-refused", { pin: next.pin, what: why });
    wallet.learn(next.atLevel(this.enrolment.level));
    await wallet.change((change) => {
      // Another page may have left, moved to another level, or accepted them.
      if (isEarly() || this.objectionTo(next)) return;
      const { enrolment } = this;
      if (this.termsNow !== this.enrolled) goOver(wallet, change.memory, enrolment);
      if (enrolment.successor) return;
      enrolment.successor = { terms: next.canonical };
      change.made = true;
    });
    await this.refresh();
  }

  /** @param {Terms} next @returns {string | null} why this device does not accept them; null if it does */
  objectionTo(next) {
    const old = this.termsNow;
    const why = objection(old, next);
    if (why) return why;
    if (this.wallet.holderOf(next, this.id) !== null) return "another enrolment has them, or had";
    const agrees = new Policy(this.enrolment.policy).agrees(old, next);
    return agrees ? null : "the application has not agreed to such a change";
  }

  /** Remember that the collector has a report; it is not sent again. So its key is valid. @param {Round} asked */
  async arrived(asked) {
    this.#delivered.add(this.#keyOf(asked));
    if (!this.enrolment.otherKeys) return;
    await this.wallet.try((change) => {
      this.enrolment.otherKeys = null;
      change.made = true;
    });
  }

  /** Count a refusal; put it on disk with the next report, or at once if it is a new kind. */
  /** @template {DeviceError} T @param {T} fault @returns {Promise<T>} */
  async note(fault) {
    if (this.#refusals.count(fault, this.clock.wallMs())) await this.saveRefusals();
    return fault;
  }

  /** How often what was refused, whether or not it is on disk. */
  get refusals() {
    return this.#refusals.of(this.wallet.memory, this.id);
  }

  /** Put the counts of refusals on disk, if it can be done: they are no more than counts. */
  async saveRefusals() {
    if (!this.#refusals.size) return;
    await this.wallet.try((change) => {
      this.#look();
      if (this.wasLeft) this.#refusals.clear();
      if (!this.#refusals.size) return; // it was another stream's collector
      this.#refusals.put(change.memory, this.#enrolment?.id ?? NOBODY);
      change.made = true;
    });
  }

  /** Put on disk what can be: counts of refusals, and how far own time has come. */
  async close() {
    await this.saveRefusals();
    await this.wallet.markTime();
  }
}
