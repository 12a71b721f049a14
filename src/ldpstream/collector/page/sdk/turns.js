/** When a device with slots reports next. */

import { Refused } from "./problems.js";
import { lastMomentMs } from "./rules.js";
import { momentMs, nextTurn, roundName } from "./slots.js";

/** @typedef {import("./account.js").Account} Account */
/** @typedef {import("./rounds.js").Round} Round */
/** @typedef {import("./terms.js").Terms} Terms */
/** A report that is due unasked, by label time. @typedef {{round: Round, atMs: number}} Turn */

/**
 * Return the next report that is due, in a timestamp other than `taken`. Turns for which the budget is not
 * free in time are passed over: too soon after an epoch has changed the slot, for example.
 * @param {Account} account @param {number | null} taken @returns {Promise<Turn>}
 */
export async function nextTurnOf(account, taken) {
  const nowMs = account.label.nowMs();
  const nowT = Math.max(1, account.enrolled.timestampAt(nowMs));
  const first = await nextRound(account, nowT);
  if (account.hasDrawn(first) && !account.hasDelivered(first) && first.t !== taken) {
    const terms = account.termsAt(first.t);
    const atMs = first.t === nowT ? nowMs : terms.startOf(first.t) + (await intoMs(account, terms));
    return { round: first, atMs }; // the same bytes again
  }
  for (let t = nowT; ; ) {
    const round = await nextRound(account, t);
    const terms = account.termsAt(round.t);
    const firstMs = nowMs + freeInMs(account, terms, round.t);
    const atMs = Math.max(firstMs, terms.startOf(round.t) + (await intoMs(account, terms)));
    const isNew = round.t !== taken && !account.hasDrawn(round);
    if (isNew && atMs < lastMomentMs(round, terms)) return { round, atMs };
    t = Math.max(round.t + 1, Math.min(terms.timestampAt(firstMs), changesAt(account, round.t)));
  }
}

/** @param {Account} account @param {number} t @returns {number} the first timestamp after t under other terms */
function changesAt({ wallet, enrolment }, t) {
  const fromT = wallet.successorOf(enrolment)?.succeeds?.fromT ?? Infinity;
  return fromT > t ? fromT : Infinity;
}

/**
 * Return the own time until the epsilon of terms is free; Infinity if that is never before other terms apply.
 * @param {Account} account @param {Terms} terms @param {number} t the timestamp that they are to apply for
 */
function freeInMs(account, terms, t) {
  const free = account.budget(terms).freeFrom(terms.epsilonNano);
  if (free !== null) return Math.max(0, free - account.wallet.ownMs());
  if (changesAt(account, t) < Infinity) return Infinity;
  throw new Refused("limit-spent", { asked: terms.epsilonNano, stream: terms.stream });
}

/** @param {Account} account @param {Terms} terms */
const intoMs = ({ enrolment }, { stream, deadlineMs }) =>
  // Of a key, which is another one at every collector: moments link no numbers.
  momentMs(enrolment.slotKey, stream, /** @type {number} */ (deadlineMs));

/** @param {Account} account @param {number} from @returns {Promise<Round>} of the first turn from then on */
async function nextRound(account, from) {
  const { slotKey } = account.enrolment;
  const turnUnder = (/** @type {Terms} */ { window, succeeds }) =>
    nextTurn(slotKey, window, Math.max(from, succeeds?.fromT ?? 1));
  let terms = account.termsAt(from);
  let t = await turnUnder(terms);
  if (account.termsAt(t) !== terms) {
    // The window may be another one: the turn is that of the terms that apply then.
    terms = account.termsAt(t);
    t = await turnUnder(terms);
  }
  const { epsilonNano, suffix } = terms;
  return { name: roundName(t, suffix), t, epsilonNano, deadlineMs: terms.deadlineOf(t), rate: [1, 1] };
}
