/** How a device answers rounds: what the rules allow is drawn, debited, and sent until it has arrived. */

import { refusalIn } from "./exchange.js";
import { PATIENCE_MS, UNAUTHORIZED, insist } from "./insist.js";
import { LONGEST_SLEEP_MS } from "./pausing.js";
import { DeviceError } from "./problems.js";
import { Silence } from "./rules.js";

/** @typedef {import("./account.js").Account} Account */
/** @typedef {import("./account.js").Submission} Submission */
/** @typedef {import("./problems.js").Refused} Refused */
/** @typedef {import("./rounds.js").Round} Round */
/**
 * What came of one announcement, or of one turn.
 * @typedef {object} Heard
 * @property {string} stream
 * @property {number} serial of the announcement; 0 with slots
 * @property {{round: Round, report: Uint8Array}[]} delivered
 * @property {DeviceError[]} undelivered of reports not known to have arrived; their debit stands
 * @property {Refused[]} refusals
 * @property {{round: Round, why: string}[]} silences
 */

/**
 * For whom rounds are answered, and for how long.
 * @typedef {object} Manner
 * @property {string} number that was asked: nobody answers for another
 * @property {AbortSignal | undefined} signal no report is drawn, and none is sent again, once it says stop
 * @property {number} mostMs that are waited for budget
 */

/** A request has at least this long, even if its round is nearly over. */
const LEAST_PATIENCE_MS = 1000;

/** Answers the rounds of one stream. */
export class Reporter {
  #account;
  #value;
  #io;
  #pause;
  #heed;

  /**
   * @param {Account} account @param {import("./values.js").HeldValue} value @param {import("./insist.js").Io} io
   * @param {import("./pausing.js").Pause} pause
   * @param {(notice: import("./notice.js").Notice) => void} heed is told what each answer says besides
   */
  constructor(account, value, io, pause, heed) {
    this.#account = account;
    this.#value = value;
    this.#io = io;
    this.#pause = pause;
    this.#heed = heed;
  }

  /**
   * Answer rounds, as far as the rules allow.
   * @param {Heard} heard @param {string} pin @param {(Round | Refused)[]} rounds @param {Manner} manner
   * @returns {Promise<boolean>} whether none was put off
   */
  async answer(heard, pin, rounds, manner) {
    try {
      return await this.#answerAll(heard, pin, rounds, manner);
    } finally {
      this.#value.tell(); // after all have left: when they leave must not tell of a value
    }
  }

  /**
   * A round for which it is too early comes after the others. After `mostMs`, or what a request may take,
   * they are put off: no collector can hold a device.
   * @param {Heard} heard @param {string} pin @param {(Round | Refused)[]} rounds @param {Manner} manner
   */
  async #answerAll(heard, pin, rounds, { number, signal, mostMs }) {
    const account = this.#account;
    const nowMs = () => account.clock.steadyMs();
    const [waitUntilMs, endMs] = [mostMs, Math.max(mostMs, PATIENCE_MS)].map((ms) => nowMs() + ms);
    const reading = (/** @type {Parameters<import("./account.js").Reading>} */ ...given) => this.#value.place(...given);
    let isDone = true;
    let pending = rounds;
    while (pending.length) {
      /** @type {{asked: Round, waitMs: number}[]} */
      const early = [];
      for (const one of pending) {
        if (signal?.aborted || nowMs() >= endMs) return false;
        const asked = /** @type {Round} */ (one);
        const outcome = await account.consider(pin, one, reading, number);
        if ("send" in outcome) isDone = (await this.#deliver(outcome.send, heard, endMs, signal)) && isDone;
        else if ("waitMs" in outcome) {
          const { waitMs } = outcome;
          if (nowMs() + waitMs <= waitUntilMs) early.push({ asked, waitMs });
          else {
            heard.silences.push({ round: asked, why: Silence.TOO_EARLY });
            isDone = false;
          }
        }
        else if ("refusal" in outcome) heard.refusals.push(outcome.refusal);
        else heard.silences.push({ round: asked, why: outcome.silence });
      }
      if (early.length) {
        const waits = early.map(({ waitMs }) => waitMs);
        await this.#pause(Math.ceil(Math.min(...waits, LONGEST_SLEEP_MS)), signal);
      }
      pending = early.map(({ asked }) => asked);
    }
    return isDone && !signal?.aborted;
  }

  /**
   * Send a report until it arrives, is refused, or its round or its timestamp is over.
   * @param {Submission} submission @param {Heard} heard
   * @param {number} endMs of the steady clock, at which it is put off @param {AbortSignal} [signal]
   * @returns {Promise<boolean>} whether it was not put off
   */
  async #deliver({ round, url, path, report, headers }, heard, endMs, signal) {
    const account = this.#account;
    const { intervalMs } = account.enrolled;
    const overMs = Math.min(round.deadlineMs, account.enrolled.endOf(round.t));
    const leftMs = () => overMs - account.label.nowMs();
    const overAtMs = account.clock.steadyMs() + intervalMs; // however often time is corrected
    const giveUpMs = Math.min(overAtMs, endMs);
    let isFinal = false;
    try {
      const response = await insist(
        this.#io,
        {
          url,
          path,
          method: "POST",
          headers: { "Content-Type": "application/octet-stream", ...headers },
          body: /** @type {Uint8Array<ArrayBuffer>} */ (report),
        },
        {
          patienceMs: Math.min(PATIENCE_MS, Math.max(leftMs(), LEAST_PATIENCE_MS)),
          intervalMs,
          giveUp: (_, ms) => account.clock.steadyMs() + ms >= giveUpMs || ms >= leftMs(),
          heed: this.#heed,
          pause: this.#pause,
          signal,
        },
      );
      isFinal = true;
      if (response.status === UNAUTHORIZED) await account.doubtKey();
      if (response.status !== 200 && response.status !== 202) {
        throw refusalIn(response, `the report of round ${round.name}`);
      }
    } catch (fault) {
      if (!(fault instanceof DeviceError)) throw fault;
      heard.undelivered.push(await account.note(fault));
      return isFinal || giveUpMs < endMs;
    }
    heard.delivered.push({ round, report });
    await account.arrived(round);
    return true;
  }
}
