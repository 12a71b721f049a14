/** What a device says to a collector, as `device/session.py`: enrol, listen, answer, try again. */

import { Account } from "./account.js";
import { fromHex, toHex } from "./bytes.js";
import { offsetAtEnrolment, systemClock } from "./clock.js";
import {
  DeviceError,
  LedgerUnusable,
  Refused,
  TermsRefused,
  Unreachable,
  shown,
} from "./problems.js";
import { SystemSource } from "./randomness.js";
import { readAnnouncement } from "./rounds.js";
import { LATEST_MS, Terms, isObject, whole } from "./terms.js";

/** @typedef {import("./rounds.js").Round} Round */
/** @typedef {import("./account.js").Submission} Submission */
/**
 * What came of one announcement.
 * @typedef {object} Heard
 * @property {number} serial
 * @property {{round: Round, report: Uint8Array}[]} delivered
 * @property {DeviceError[]} undelivered of reports not known to have arrived; their debit stands
 * @property {Refused[]} refusals
 * @property {{round: Round, why: string}[]} silences
 */

const LONGEST_WAIT = 25;
const LONGEST_PAUSE_MS = 300_000;
const LONGEST_RETRY_SECONDS = 3600;
const ENROLMENT_TRIES = 6;
const PATIENCE_MS = 10_000;

export class Device {
  #serial = 0;
  /** When the last request that was insisted on left, by the wall clock. */
  #sentMs = 0;
  /** @type {import("./account.js").Reading} */ #reading = () => null;

  /** @param {Account} account @param {typeof fetch} fetcher @param {(ms: number) => Promise<void>} sleep */
  constructor(account, fetcher, sleep) {
    this.account = account;
    this.fetcher = fetcher;
    this.sleep = sleep;
  }

  /**
   * Open the device that lives in this store, or make one.
   * @param {import("./memory.js").Store} store
   * @param {object} [parts] others only in tests
   * @param {import("./clock.js").Clock} [parts.clock]
   * @param {import("./randomness.js").Source} [parts.source]
   * @param {typeof fetch} [parts.fetcher]
   * @param {(ms: number) => Promise<void>} [parts.sleep]
   */
  static async open(store, { clock, source, fetcher, sleep } = {}) {
    const account = new Account(store, clock ?? systemClock, source ?? new SystemSource());
    await account.open();
    const wait = (/** @type {number} */ ms) => new Promise((done) => setTimeout(done, ms));
    return new Device(
      account,
      fetcher ?? ((...given) => globalThis.fetch(...given)),
      sleep ?? /** @type {any} */ (wait),
    );
  }

  /** What was agreed at enrolment; null before. */
  get terms() {
    return this.account.terms;
  }

  /** @param {number | null} index of the label that the device holds from now on, or none */
  observe(index) {
    const labels = this.account.enrolled.labels.length;
    if (index !== null && !whole(index, 0, labels - 1)) {
      throw new DeviceError("value-range", { given: index, labels, last: labels - 1 });
    }
    this.#reading = () => index;
  }

  /** What the owner may see: it spends nothing. */
  status() {
    const terms = this.account.enrolled;
    const t = terms.timestampAt(this.account.nowMs());
    const { ledger, memory } = this.account;
    return {
      number: toHex(memory.number),
      t,
      leftNano: ledger.left(t),
      fullAt: Math.max(t, ledger.fullAt),
      entries: memory.entries,
      refusals: memory.refusals,
    };
  }

  /**
   * Agree on a stream's terms, once; later only the address and the key may change.
   * @param {string} url of the collector @param {string} stream
   * @param {string} token empty where the stream lets anyone enrol
   * @param {{pin?: string, firstInstall?: boolean}} [options] accept these terms only; and whether
   *   this user has never reported to this stream before (otherwise: silence for w timestamps)
   */
  async enrol(url, stream, token, { pin, firstInstall = false } = {}) {
    const { clock, memory } = this.account;
    const response = await this.#insist(
      `${url}/v1/streams/${stream}/devices`,
      {
        method: "POST",
        headers: {
          ...(token ? { Authorization: `Bearer ${token}` } : {}),
          "Content-Type": "application/json",
        },
        body: JSON.stringify({ device: toHex(memory.number) }),
      },
      (failures) => failures >= ENROLMENT_TRIES,
    );
    const receivedMs = clock.wallMs();
    if (response.status !== 200 && response.status !== 201) {
      throw await refusalIn(response, "the enrolment");
    }
    const answer = await readObject(response, "enrolment");
    const terms = await Terms.read(answer.terms);
    for (const wanted of [answer.pin, pin]) {
      if (wanted != null && wanted !== terms.pin) {
        throw new TermsRefused("terms-differ", { given: terms.pin, expected: shown(wanted) });
      }
    }
    if (terms.stream !== stream) {
      throw new TermsRefused("terms-malformed", { what: `they are of the stream ${terms.stream}` });
    }
    const offsetMs = whole(answer.now_ms, 0, LATEST_MS)
      ? offsetAtEnrolment(answer.now_ms, this.#sentMs, receivedMs)
      : 0;
    await this.account.enrol(
      terms,
      {
        url,
        key: readKey(answer.key),
        selection: answer.selection === "open" ? "open" : "roster",
        offsetMs,
        atMs: receivedMs,
      },
      firstInstall,
    );
    return terms;
  }

  /**
   * Ask for rounds, waiting up to so many seconds for news, and answer them.
   * @param {number} [wait] @param {AbortSignal} [signal] @returns {Promise<Heard>}
   */
  async poll(wait = 0, signal) {
    const terms = this.account.enrolled;
    const enrolment = /** @type {import("./memory.js").Enrolment} */ (
      this.account.memory.enrolment
    );
    // Where everyone is asked alike, who listens is nobody's business.
    const number = toHex(this.account.memory.number);
    const headers = /** @type {Record<string, string>} */ (
      enrolment.selection === "open" ? {} : { "Ldp-Device": number }
    );
    const query = `after=${this.#serial}&wait=${wait}`;
    const address = `${enrolment.url}/v1/streams/${terms.stream}/rounds?${query}`;
    const response = await this.#ask(address, { headers, signal }, PATIENCE_MS + wait * 1000);
    if (response.status !== 200) throw await refusalIn(response, "to list rounds");
    const announcement = readAnnouncement(await readObject(response, "rounds"));
    const heard = await this.answer(announcement, signal);
    // Not before: what a fault of the disk left unanswered must be announced again. So must what
    // was open when the signal said stop, to whoever starts again.
    if (!signal?.aborted) this.#serial = announcement.serial;
    return heard;
  }

  /**
   * @param {import("./rounds.js").Announcement} announcement
   * @param {AbortSignal} [signal] no report is drawn, and none is sent again, once it says stop
   * @returns {Promise<Heard>}
   */
  async answer(announcement, signal) {
    /** @type {Heard} */
    const heard = {
      serial: announcement.serial,
      delivered: [],
      undelivered: [],
      refusals: [],
      silences: [],
    };
    for (const asked of announcement.rounds) {
      if (signal?.aborted) break;
      const outcome = await this.account.consider(announcement.pin, asked, this.#reading);
      if ("send" in outcome) await this.#deliver(outcome.send, heard, signal);
      else if ("refusal" in outcome) heard.refusals.push(outcome.refusal);
      else heard.silences.push({ round: /** @type {Round} */ (asked), why: outcome.silence });
    }
    return heard;
  }

  /**
   * Poll until the signal says stop; go on after every fault, with growing pauses.
   * @param {AbortSignal} signal @param {(heard: Heard) => void} tell
   * @param {(fault: DeviceError) => void} [complain]
   */
  async run(signal, tell, complain = () => undefined) {
    let failures = 0;
    while (!signal.aborted) {
      const before = this.#serial;
      const askedMs = this.account.clock.steadyMs();
      try {
        const heard = await this.poll(LONGEST_WAIT, signal);
        failures = 0;
        tell(heard);
        // A collector that does not hold the question back must not be asked in a frenzy.
        const held = this.account.clock.steadyMs() - askedMs;
        if (heard.serial === before && held < 1000) await this.#pause(1, 1000);
      } catch (fault) {
        if (signal.aborted) return;
        if (!(fault instanceof DeviceError)) throw fault;
        if (!(fault instanceof LedgerUnusable)) await this.account.note(fault);
        complain(fault);
        failures += 1;
        await this.#pause(failures, Number(fault.facts.retryAfterMs ?? 0));
      }
    }
  }

  /** Send a report until it arrives, is refused, or its round is over. */
  /** @param {Submission} submission @param {Heard} heard @param {AbortSignal} [signal] */
  async #deliver({ round, path, report, mac }, heard, signal) {
    const { url } = /** @type {import("./memory.js").Enrolment} */ (this.account.memory.enrolment);
    try {
      const response = await this.#insist(
        url + path,
        {
          method: "POST",
          headers: {
            "Content-Type": "application/octet-stream",
            "Ldp-Device": toHex(this.account.memory.number),
            "Ldp-Mac": toHex(mac),
          },
          body: report,
          signal,
        },
        (_, pauseMs) => signal?.aborted || this.account.nowMs() + pauseMs >= round.deadlineMs,
      );
      if (response.status !== 200 && response.status !== 202) {
        throw await refusalIn(response, `the report of round ${round.name}`);
      }
    } catch (fault) {
      if (!(fault instanceof DeviceError)) throw fault;
      heard.undelivered.push(await this.account.note(fault));
      return;
    }
    this.account.arrived(round);
    heard.delivered.push({ round, report });
  }

  /**
   * Send the same request until there is an answer other than "later".
   * @param {string} address @param {RequestInit} request
   * @param {(failures: number, pauseMs: number) => boolean | undefined} giveUp
   */
  async #insist(address, request, giveUp) {
    for (let failures = 1; ; failures += 1) {
      let fault;
      try {
        this.#sentMs = this.account.clock.wallMs();
        const response = await this.#ask(address, request, PATIENCE_MS);
        if (response.status !== 429 && response.status < 500) return response;
        fault = await refusalIn(response, `${request.method} ${new URL(address).pathname}`);
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        fault = error;
      }
      const pauseMs = this.#pauseMs(failures, Number(fault.facts.retryAfterMs ?? 0));
      if (giveUp(failures, pauseMs)) throw fault;
      await this.sleep(pauseMs);
    }
  }

  /** @param {string} address @param {RequestInit} request @param {number} patienceMs */
  async #ask(address, request, patienceMs) {
    const tooLong = AbortSignal.timeout(patienceMs);
    try {
      // No cookies, no cache, and no redirect that would carry the token elsewhere.
      return await this.fetcher(address, {
        ...request,
        signal: request.signal ? AbortSignal.any([request.signal, tooLong]) : tooLong,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        referrerPolicy: "no-referrer",
      });
    } catch (error) {
      throw new Unreachable("unreachable", { url: new URL(address).origin, what: String(error) });
    }
  }

  /** @param {number} failures @param {number} atLeastMs */
  async #pause(failures, atLeastMs) {
    await this.sleep(this.#pauseMs(failures, atLeastMs));
  }

  /** Doubling, with jitter over its whole range so that a fleet does not come back as one. */
  /** @param {number} failures @param {number} atLeastMs */
  #pauseMs(failures, atLeastMs) {
    const first = Math.min(1000, (this.terms?.intervalMs ?? 10_000) / 10);
    const most = Math.min(LONGEST_PAUSE_MS, first * 2 ** Math.min(failures - 1, 30));
    return atLeastMs + Math.random() * most;
  }
}

/** @param {Response} response @param {string} what @returns {Promise<Record<string, any>>} */
async function readObject(response, what) {
  const text = await response.text().catch(() => "");
  try {
    const answer = JSON.parse(text);
    if (isObject(answer)) return answer;
  } catch {
    // told below
  }
  throw new Refused("answer-malformed", { what, given: shown(text.slice(0, 80)) });
}

/** @param {unknown} sent */
function readKey(sent) {
  if (typeof sent !== "string" || !/^[0-9a-fA-F]{64}$/.test(sent)) {
    throw new Refused("answer-malformed", { what: "key", given: "not 64 hex digits" });
  }
  return fromHex(sent);
}

/** What a problem body (RFC 9457) says, as an error of this device's. */
/** @param {Response} response @param {string} what */
async function refusalIn(response, what) {
  let [code, detail] = ["", "see the collector's log"];
  try {
    const body = JSON.parse(await response.text());
    code = String(body.type).split(/[/:#]/).pop() ?? "";
    detail = String(body.detail ?? detail);
  } catch {
    // a body that says nothing
  }
  const seconds = response.headers.get("retry-after") ?? "";
  const retryAfterMs = /^\d+$/.test(seconds)
    ? Math.min(Number(seconds), LONGEST_RETRY_SECONDS) * 1000
    : 0;
  return new Refused("collector-refused", {
    what,
    status: response.status,
    code,
    detail,
    retryAfterMs,
  });
}
