/** What enrolling and leaving change in a wallet's memory. */

import { toHex } from "./bytes.js";
import { countsFor, forgottenOf, inForce, reservedIn } from "./memory.js";
import { DeviceError, TermsRefused } from "./problems.js";
import { Policy, objection, renamedBy } from "./succession.js";

/** @typedef {import("./memory.js").Memory} Memory */
/** @typedef {import("./memory.js").Enrolment} Enrolment */
/** @typedef {import("./store.js").Change} Change */
/** @typedef {import("./terms.js").Terms} Terms */
/** @typedef {import("./wallet.js").Wallet} Wallet */
/** What a collector has offered. @typedef {Pick<Enrolment, "url" | "number" | "key" | "slotKey" | "atMs">} Offered */
/** What the application says with it; what it does not say stays. @typedef {Partial<Pick<Enrolment, "policy" | "reserveNano">>} Wishes */
/** @typedef {Offered & Wishes & Pick<Enrolment, "secret" | "rejoins">} Agreed */

/** @param {Wallet} wallet @param {Change} change @param {Terms} terms @param {Agreed} agreed @returns {Enrolment} */
export function enrolFirst(wallet, change, terms, agreed) {
  const { memory } = change;
  const { canonical, level } = terms;
  const made = {
    id: memory.nextId,
    terms: canonical,
    level,
    successor: null,
    renamed: {},
    earlier: [],
    reserveNano: 0,
    doubtful: false,
    ...agreed,
    policy: new Policy(agreed.policy).within(terms).agreed,
  };
  memory.enrolments.push(made);
  memory.nextId += 1;
  if (!memory.pastKnown) wallet.countAsSpent(change);
  return made;
}

/** @param {Wallet} wallet @param {Memory} memory @param {Enrolment} known @param {Terms} terms @param {Agreed} agreed */
export function enrolAgain(wallet, memory, known, terms, agreed) {
  known.earlier = wallet.lineageOf(known);
  const accepted = wallet.successorOf(known)?.pin;
  const follows = terms.succeeds && terms.succeeds.pin === accepted;
  // Or only those that were accepted have the level.
  const needed = terms.pin === accepted && !wallet.termsOf(known).hasLevel(terms.level);
  if (follows || needed) goOver(wallet, memory, known);
  const [number, level, expected] = [toHex(known.number), known.level, wallet.termsOf(known).pin];
  // Terms that were accepted may be in force: what was agreed to stays so, if they are offered.
  const policies = wallet.successorOf(known)?.pin === terms.pin ? [known.policy] : [];
  if (terms.level !== level) {
    endPromise(wallet, memory, known);
    // Whether the successor has this level is not known: the collector names it again.
    Object.assign(known, { level: terms.level, successor: null });
  }
  /** @type {Terms | undefined} those of before may not have this level */
  const old = wallet.termsOf(known);
  const policy = policyOf(known, agreed.policy, old, level);
  Object.assign(known, agreed, { policy, otherKeys: null });
  if (terms.pin !== old?.pin && terms.pin !== wallet.successorOf(known)?.pin) {
    const agrees = (/** @type {Enrolment["policy"]} */ one) => old && new Policy(one).agrees(old, terms);
    if (!old || known.successor || objection(old, terms) || ![policy, ...policies].some(agrees)) {
      throw new TermsRefused("terms-differ", { given: terms.pin, expected });
    }
    known.successor = { terms: terms.canonical };
  }
  if (toHex(known.number) === number && known.level === level) return;
  // The same bytes would link two numbers, or be refused.
  for (const one of memory.entries) if (!one.left && one.enrolment === known.id) one.report = null;
}

/**
 * Return what the application agrees to from now on. Floors that it does not give stay: they are those of the
 * window under which the device first enrolled at its level.
 * @param {Enrolment} known @param {Enrolment["policy"] | undefined} given @param {Terms | undefined} old
 * @param {string} level that it had
 */
function policyOf({ policy, level: now }, given, old, level) {
  const kept = now === level ? policy.longestWindow : null;
  const agreed = given ?? { ...policy, longestWindow: kept };
  const leastEpsilonNano = agreed.leastEpsilonNano || policy.leastEpsilonNano;
  const wanted = new Policy({ ...agreed, leastEpsilonNano, longestWindow: agreed.longestWindow ?? kept });
  return (old ? wanted.within(old) : wanted).agreed;
}

/**
 * Let a successor's promise bind every span that holds the report that is made now under it. Label time may
 * be wrong, and the device go on under the terms of before: see `goOver`.
 * @param {Memory} memory @param {Enrolment} enrolment @param {Terms} terms @param {number} ownMs
 */
export function keepPromise(memory, { id }, { promise: { epsilonNano, span } }, ownMs) {
  const isSame = (/** @type {import("./memory.js").Ended} */ one) =>
    !one.left && one.enrolment === id && one.epsilonNano === epsilonNano && one.span === span;
  memory.ended = memory.ended.filter((one) => !isSame(one));
  memory.ended.push({ enrolment: id, left: false, epsilonNano, span, until: ownMs + span });
}

/**
 * Drop the terms before the successor. Only now, when others follow those: until then a time that was
 * wrong costs nothing.
 * @param {Wallet} wallet @param {Memory} memory @param {Enrolment} enrolment
 */
export function goOver(wallet, memory, enrolment) {
  const [old, next] = [wallet.termsOf(enrolment), wallet.successorOf(enrolment)];
  if (!next) return;
  endPromise(wallet, memory, enrolment);
  const renamed = renamedBy(old, next, enrolment.renamed);
  const earlier = wallet.lineageOf(enrolment);
  Object.assign(enrolment, { terms: next.canonical, successor: null, renamed, earlier });
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
  const { id, doubtful } = enrolment;
  const { epsilonNano, span } = wallet.termsOf(enrolment).promise;
  const ownMs = wallet.ownMsIn(memory);
  const since = ownMs - span;
  const forgotten = forgottenOf(memory, (one) => countsFor(one, id));
  const unknown = doubtful && (forgotten ?? since) > since;
  const own = memory.entries.filter((one) => !one.left && one.enrolment === id && one.t > 0);
  if (unknown || own.some((one) => one.ownMs > since)) {
    memory.ended.push({ enrolment: id, left: false, epsilonNano, span, until: ownMs + span });
  }
}
