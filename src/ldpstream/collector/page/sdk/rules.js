/**
 * What a device does with a round: rules 1, 2, 4 and 5 as one decision, without a disk, a clock or a
 * socket, as `device/rules.py`. Rules 3 and 6 are kept by `account.js`, 7 by the oracles.
 */

import { hmacSha256, toBigInt, utf8 } from "./bytes.js";
import { Refused, shown } from "./problems.js";
import { keyOf } from "./rounds.js";

/** @typedef {import("./rounds.js").Round} Round */

/** Reasons to send nothing that are nobody's fault. */
export const Silence = Object.freeze({
  NOT_SELECTED: "the coin said no",
  NO_VALUE: "there is no value to report",
  TOO_LATE: "the deadline has passed",
  DELIVERED: "the report has arrived",
});

/**
 * All that a decision rests on.
 * @typedef {object} State
 * @property {import("./terms.js").Terms} terms
 * @property {import("./ledger.js").Ledger} ledger
 * @property {Map<string, Uint8Array>} answered reports by `keyOf` their round
 * @property {number} lastT the latest timestamp with an entry
 * @property {Uint8Array} secret
 * @property {Held} value asked only if there is no other reason to be silent
 */

/** @typedef {() => number | null} Held the index of the label that the device holds, or null */
/** @typedef {{fresh: number} | {repeat: Uint8Array} | {silence: string} | Refused} Decision */

/**
 * What to do about a round that was announced under `pin`, at this moment of the own clock.
 * @param {string} pin @param {Round} asked @param {State} state @param {number} nowMs
 * @returns {Promise<Decision>}
 */
export async function decide(pin, asked, state, nowMs) {
  if (pin !== state.terms.pin) {
    return new Refused("terms-differ", { given: shown(pin), expected: state.terms.pin });
  }
  const before = state.answered.get(keyOf(asked));
  if (before) return { repeat: before };
  const fault = timeFault(asked, state, nowMs);
  if (fault) return fault;
  if (asked.deadlineMs <= nowMs) return { silence: Silence.TOO_LATE };
  if (!(await selects(state.secret, asked))) return { silence: Silence.NOT_SELECTED };
  const value = state.value();
  if (value === null) return { silence: Silence.NO_VALUE };
  if (!state.ledger.allows(asked.t, asked.epsilonNano)) {
    return new Refused("budget-spent", {
      round: asked.name,
      t: asked.t,
      asked: asked.epsilonNano,
      left: state.ledger.left(asked.t),
    });
  }
  return { fresh: value };
}

/**
 * Time goes forward only, at the pace of the own clock: neither ahead of it nor far behind.
 * @param {Round} asked @param {State} state @param {number} nowMs @returns {Refused | null}
 */
function timeFault(asked, { terms, lastT }, nowMs) {
  const now = terms.timestampAt(nowMs);
  if (asked.t > terms.timestampAt(nowMs + terms.slackMs)) {
    return new Refused("round-ahead", { round: asked.name, t: asked.t, now });
  }
  if (asked.t < Math.max(now - 1, lastT)) {
    return new Refused("round-past", { round: asked.name, t: asked.t, now: Math.max(now, lastT) });
  }
  return null;
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
