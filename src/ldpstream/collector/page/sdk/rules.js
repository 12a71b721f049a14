/**
 * What a device does with a round: rules 1, 2, 4 and 5 as one decision, without a disk, a clock or a
 * socket, as `device/rules.py`. Rules 3 and 6 are kept by `account.js`, 7 by the oracles.
 */

import { hmacSha256, toBigInt, utf8 } from "./bytes.js";
import { Budget } from "./ledger.js";
import { Refused, shown } from "./problems.js";
import { keyOf } from "./rounds.js";
import { isTurn, roundName } from "./slots.js";

/** @typedef {import("./rounds.js").Round} Round */
/** @typedef {import("./terms.js").Terms} Terms */

/** On average over a window: a mechanism asks twice at most, and each answer is stored. */
const ANSWERS_PER_TIMESTAMP = 4;
/** Before the deadline it is too late to wait: a report that comes too late is paid for in vain. */
const MARGIN_MS = 1000;

/** Reasons to send nothing that are nobody's fault. */
export const Silence = Object.freeze({
  NOT_SELECTED: "the coin, or the slot, said no",
  TOO_LATE: "the deadline has passed",
  MOVED_ON: "its timestamp ended while the value was read",
  ELSEWHERE: "the stream was left meanwhile, or goes on at another address or under other terms",
  DELIVERED: "the report has arrived",
  TOO_EARLY: "the budget is not free yet, and the application does not wait",
});

/**
 * All that a decision rests on.
 * @typedef {object} State
 * @property {Terms} terms
 * @property {import("./ledger.js").Ledger} ledger of the stream
 * @property {import("./ledger.js").Ledger} [limit] over all streams, as it binds this one
 * @property {Map<string, Uint8Array>} answered reports by `keyOf` their round
 * @property {boolean} selected what `isSelected` says
 */

/**
 * Draw a fresh report, send the same bytes again, wait so many ms, or send nothing.
 * @typedef {{fresh: true} | {repeat: Uint8Array} | {waitMs: number} | {silence: string} | Refused} Decision
 */

/**
 * Decide about a round that was announced under `pin`, at this own time and label time.
 * @param {string} pin @param {Round} asked @param {State} state
 * @param {number} ownMs @param {number} labelMs @returns {Decision}
 */
export function decide(pin, asked, state, ownMs, labelMs) {
  if (pin !== state.terms.pin) {
    return new Refused("terms-differ", { given: shown(pin), expected: state.terms.pin });
  }
  const report = state.answered.get(keyOf(asked));
  if (report) return { repeat: report };
  const now = state.terms.timestampAt(labelMs);
  if (asked.t !== now) {
    const code = asked.t > now ? "round-ahead" : "round-past";
    return new Refused(code, { round: asked.name, t: asked.t, now });
  }
  if (asked.deadlineMs <= labelMs) return { silence: Silence.TOO_LATE };
  if (!state.selected) return { silence: Silence.NOT_SELECTED };
  return withinBudget(asked, state, ownMs, labelMs);
}

/**
 * @param {Round} asked @param {State} state @param {number} ownMs @param {number} labelMs
 * @returns {Decision}
 */
function withinBudget(asked, state, ownMs, labelMs) {
  const [{ name: round, t, epsilonNano }, { terms, ledger, limit }] = [asked, state];
  const most = ANSWERS_PER_TIMESTAMP * terms.window;
  const recent = ledger.debits.filter(([at]) => at > ownMs - terms.promise.span);
  if (recent.length >= most) return new Refused("too-many-rounds", { round, most });
  const budget = limit ? new Budget(ledger, limit) : new Budget(ledger);
  if (budget.allows(ownMs, epsilonNano)) return { fresh: true };
  const freeMs = budget.freeFrom(epsilonNano);
  if (freeMs !== null) {
    const waitMs = freeMs - ownMs;
    if (labelMs + waitMs < lastMomentMs(asked, terms)) return { waitMs };
  }
  const left = budget.left(ownMs);
  return new Refused("budget-spent", { round, t, asked: epsilonNano, left });
}

/** @param {Round} asked @param {Terms} terms until when, by label time, a device waits for its budget */
export function lastMomentMs({ t, deadlineMs }, terms) {
  const endMs = Math.min(deadlineMs, terms.endOf(t));
  const [interval, round] = [terms.intervalMs / 16, (endMs - terms.startOf(t)) / 8];
  return endMs - Math.min(MARGIN_MS, Math.floor(interval), Math.floor(round));
}

/**
 * Return whether it is for this device to answer; its value has no part in that. With slots nobody
 * asks: an announced round other than that of the device's own turn is not one.
 * @param {Round} asked @param {Terms} terms @param {Uint8Array} secret @param {Uint8Array} key of slots
 */
export async function isSelected(asked, terms, secret, key) {
  if (terms.selection !== "slots") return selects(secret, asked);
  return asked.name === roundName(asked.t, terms.suffix) && isTurn(key, terms.window, asked.t);
}

/**
 * The device's coin for this round: the same whenever it is asked, and kept to itself. The hash is
 * compared with the rate, so that who asks again with another fraction sees the same toss.
 * @param {Uint8Array} secret @param {Pick<Round, "t" | "name" | "rate">} asked
 * @returns {Promise<boolean>}
 */
export async function selects(secret, asked) {
  const [favour, total] = asked.rate;
  const message = utf8(`ldpstream coin 1\n${asked.t}\n${asked.name}`);
  const toss = toBigInt(await hmacSha256(secret, message));
  return toss * BigInt(total) < BigInt(favour) << 256n;
}
