/** What enrolling and leaving change in a wallet's memory. */

import { toHex } from "./bytes.js";
import { countsFor, forgottenOf, inForce, reservedIn } from "./memory.js";
import { DeviceError, TermsRefused } from "./problems.js";
import { NO_POLICY, Policy, objection } from "./succession.js";

/** @typedef {import("./memory.js").Memory} Memory */
/** @typedef {import("./memory.js").Enrolment} Enrolment */
/** @typedef {import("./store.js").Change} Change */
/** @typedef {import("./terms.js").Terms} Terms */
/** @typedef {import("./wallet.js").Wallet} Wallet */
/** What a collector has offered. @typedef {Pick<Enrolment, "url" | "number" | "key" | "slotKey" | "atMs">} Offered */
/** What the application says with it; what it does not say stays. @typedef {Partial<Pick<Enrolment, "policy" | "reserveNano">>} Wishes */
/** @typedef {Offered & Wishes & Pick<Enrolment, "secret" | "rejoins">} Agreed */

/** @param {Wallet} wallet @param {Change} change @param {Terms} terms @param {Agreed} agreed @returns {Enrolment} */
export function enrolFirst(wallet, change, { canonical, level }, agreed) {
  const { memory } = change;
  const made = {
    id: memory.nextId,
    terms: canonical,
    level,
    successor: null,
    renamed: {},
    policy: NO_POLICY,
    reserveNano: 0,
    doubtful: false,
    ...agreed,
  };
  memory.enrolments.push(made);
  memory.nextId += 1;
  if (!memory.pastKnown) wallet.countAsSpent(change);
  return made;
}

/** @param {Wallet} wallet @param {Memory} memory @param {Enrolment} known @param {Terms} terms @param {Agreed} agreed */
export function enrolAgain(wallet, memory, known, terms, agreed) {
  const [number, level, expected] = [toHex(known.number), known.level, wallet.termsOf(known).pin];
  if (terms.level !== level) {
    endPromise(wallet, memory, known);
    // Whether the successor has this level is not known: the collector names it again.
    Object.assign(known, { level: terms.level, successor: null });
  }
  Object.assign(known, agreed);
  /** @type {Terms | undefined} those of before may not have this level */
  const old = wallet.termsOf(known);
  if (terms.pin !== old?.pin && terms.pin !== wallet.successorOf(known)?.pin) {
    // As in `Account.accept`, the first one stays: a report may have been drawn under its promise.
    const agrees = old && !known.successor && new Policy(known.policy).agrees(old, terms);
    if (!agrees || objection(old, terms)) {
      throw new TermsRefused("terms-differ", { given: terms.pin, expected });
    }
    known.successor = { terms: terms.canonical, drawn: false };
  }
  if (toHex(known.number) === number && known.level === level) return;
  // The same bytes would link two numbers, or be refused.
  for (const one of memory.entries) if (!one.left && one.enrolment === known.id) one.report = null;
}

/** Refuse an enrolment that the limit would never let report, or reserves beyond it. */
/** @param {Wallet} wallet @param {Memory} memory @param {Enrolment} enrolment */
export function checkLimit(wallet, memory, enrolment) {
  const limit = inForce(memory);
  if (!limit) return;
  const { reserveNano } = enrolment;
  const { selection, epsilonNano } = wallet.termsOf(enrolment);
  const atOnce = selection === "slots" ? epsilonNano : 1;
  const needed = reservedIn(memory) - reserveNano + Math.max(reserveNano, atOnce);
  if (needed > limit.epsilonNano) {
    throw new DeviceError("limit-too-small", { limit: limit.epsilonNano, needed });
  }
}

/** Let the promise of an enrolment end: it binds spans that hold a report made under it, and only those. */
/** @param {Wallet} wallet @param {Memory} memory @param {Enrolment} enrolment */
export function endPromise(wallet, memory, enrolment) {
  const { id, successor, doubtful } = enrolment;
  // Terms that follow are never looser: they imply those that they follow.
  const terms = (successor?.drawn && wallet.successorOf(enrolment)) || wallet.termsOf(enrolment);
  const { epsilonNano, span } = terms.promise;
  const ownMs = wallet.ownMsIn(memory);
  const since = ownMs - span;
  const forgotten = forgottenOf(memory, (one) => countsFor(one, id));
  const unknown = doubtful && (forgotten ?? since) > since;
  const own = memory.entries.filter((one) => !one.left && one.enrolment === id && one.t > 0);
  if (unknown || own.some((one) => one.ownMs > since)) {
    memory.ended.push({ enrolment: id, left: false, epsilonNano, span, until: ownMs + span });
  }
}
