/** What the owner of a device may see of one stream. */

import { toHex } from "./bytes.js";

/** Return the state of an enrolment: it spends nothing. @param {import("./account.js").Account} account */
export const statusOf = (account) => {
  const { wallet, enrolment } = account;
  const terms = account.termsNow;
  const [ownMs, budget] = [wallet.ownMs(), account.budget(terms)];
  const fullMs = budget.freeFrom(terms.epsilonNano) ?? Infinity;
  return {
    stream: terms.stream,
    /** The level of privacy; "": the stream's own. */
    level: terms.level,
    number: toHex(enrolment.number),
    t: terms.timestampAt(account.label.nowMs()),
    leftNano: budget.left(ownMs),
    /** Own time until the whole epsilon can be spent; Infinity if the limit never allows it. */
    fullInMs: Math.max(0, fullMs - ownMs),
    /** How much of the limit is kept free for this stream. */
    reserveNano: enrolment.reserveNano,
    /** The pin of terms that the device has accepted, and that have not begun. */
    successor: terms === account.enrolled ? (wallet.successorOf(enrolment)?.pin ?? null) : null,
    entries: wallet.entriesOf(enrolment),
    refusals: account.refusals,
  };
};
