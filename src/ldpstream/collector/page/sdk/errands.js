/**
 * What a notice asks of a device, as `device/errands.py`: to fetch a successor of its terms, and to renew its
 * key. Errands are run after a report has left, never before. A fault costs nothing: they are tried again
 * later, ever more rarely. So a collector that lies in its notices causes neither a flood nor silence.
 */

import { devicesPath, termsPath } from "./authentication.js";
import { toHex } from "./bytes.js";
import { LARGEST_ANSWER, exchange, readKeys, readObject, refusalIn } from "./exchange.js";
import { enrolmentBody } from "./enrolling.js";
import { enrolmentSecret } from "./identity.js";
import { DeviceError, Refused } from "./problems.js";
import { Terms } from "./terms.js";

/** @typedef {import("./account.js").Account} Account */
/** @typedef {import("./notice.js").Notice} Notice */

/** For the request of an errand, on which no report may have to wait: ... */
const LONGEST_PATIENCE_MS = 5000;
/** ... and no longer than this part of a window, which begins with a report. */
const PATIENCE_PER_SPAN = 1 / 4;
/** How many pins that were declined are remembered: a collector may name any number. */
const MOST_DECLINED = 16;

export class Errands {
  /** @type {string | null} the successor that was named last */ #named = null;
  #renew = false;
  /** @type {string[]} */ #declined = [];
  #attempts = 0;
  #notBeforeMs = -Infinity;

  /** @param {Account} account @param {import("./insist.js").Io} io */
  constructor(account, io) {
    this.account = account;
    this.io = io;
  }

  /** @param {Notice} notice what the answer to a report asks for */
  hear({ successor, renew }) {
    [this.#named, this.#renew] = [successor, renew];
    if (!renew && successor === null) this.#attempts = 0; // but not at once: notices may alternate
  }

  /** The pin of the successor that is to be fetched, if there is one, and it may be accepted. */
  get #wanted() {
    const [pin, { account }] = [this.#named, this];
    if (pin === null || !account.id || this.#declined.includes(pin)) return null;
    const { policy, successor } = account.enrolment;
    const willing = policy.accept !== "never" || policy.pins.includes(pin);
    const isPending = successor && !account.wentOver;
    const isKnown = pin === account.enrolled.pin || pin === account.termsNow.pin;
    return willing && !isPending && !isKnown ? pin : null;
  }

  /** Whether there is something to do, now. */
  get due() {
    const asked = this.#renew || this.#wanted !== null;
    return asked && this.account.clock.steadyMs() >= this.#notBeforeMs;
  }

  /** Do what is due; a fault is counted, and leaves it for later. @param {AbortSignal} [signal] */
  async run(signal) {
    const { account } = this;
    if (!this.due || !account.id || signal?.aborted) return;
    const { intervalMs, promise } = account.enrolled;
    const waitMs = Math.min(intervalMs * 2 ** Math.min(this.#attempts, 30), promise.span);
    this.#notBeforeMs = account.clock.steadyMs() + waitMs;
    this.#attempts += 1;
    try {
      // A key that was renewed must prove good first, or that of before would be lost.
      if (this.#renew && !account.enrolment.otherKeys) await this.#renewKey(signal);
      const pin = this.#wanted;
      if (pin !== null) await this.#fetch(pin, signal);
    } catch (fault) {
      if (!(fault instanceof DeviceError)) throw fault;
      if (!signal?.aborted) await account.note(fault);
    }
  }

  /** @param {AbortSignal} [signal] */
  async #renewKey(signal) {
    const { account } = this;
    const { url, number, key, secret, rejoins, level } = account.enrolment;
    const { stream } = account.enrolled;
    const shown = await enrolmentSecret(secret, url, stream, rejoins);
    const headers = { ...(await account.renewalProof()), "Content-Type": "application/json" };
    const request = { method: "POST", headers, body: enrolmentBody(toHex(shown), level) };
    const answer = await this.#ask(devicesPath(stream), request, "the renewal of a key", signal);
    await account.renew(key, readKeys(readObject(answer, "key", LARGEST_ANSWER), number));
    this.#renew = false;
  }

  /** @param {string} pin @param {AbortSignal} [signal] */
  async #fetch(pin, signal) {
    this.#named = null; // the next notice names it again
    const { account } = this;
    const path = termsPath(account.enrolled.stream, pin);
    const headers = await account.termsProof(pin);
    const answer = await this.#ask(path, { headers }, "the successor of its terms", signal);
    const sent = readObject(answer, "terms", LARGEST_ANSWER);
    const terms = await Terms.read(sent.terms ?? sent);
    // A wrong answer says nothing of the terms.
    if (terms.pin !== pin) throw new Refused("successor-refused", { pin, what: "they have another pin" });
    try {
      await account.accept(terms);
    } catch (fault) {
      const isVerdict = fault instanceof DeviceError && fault.code === "successor-refused";
      if (isVerdict) this.#declined = [...this.#declined, pin].slice(-MOST_DECLINED);
      throw fault;
    }
  }

  /** @param {string} path @param {RequestInit} request @param {string} what @param {AbortSignal} [signal] */
  async #ask(path, request, what, signal) {
    const { enrolment, enrolled } = this.account;
    const patienceMs = Math.min(LONGEST_PATIENCE_MS, enrolled.promise.span * PATIENCE_PER_SPAN);
    const answer = await exchange(this.io.fetcher, enrolment.url, path, request, patienceMs, signal);
    if (answer.status !== 200 && answer.status !== 201) throw refusalIn(answer, what);
    return answer;
  }
}
