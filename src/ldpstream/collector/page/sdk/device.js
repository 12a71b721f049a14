/** What a device says to a collector, as `device/session.py`: enrol, report, try again, leave. */

import { Account } from "./account.js";
import { devicesPath, roundsPath } from "./authentication.js";
import { toHex } from "./bytes.js";
import { lookAt } from "./clock.js";
import {
  LARGEST_ANSWER,
  exchange,
  noticeIn,
  readKey,
  readObject,
  refusalIn,
  sleep as waiting,
} from "./exchange.js";
import { enrolmentSecret, numberOf, readAddress } from "./identity.js";
import { DeviceError, Refused, TermsRefused, Unreachable, shown } from "./problems.js";
import { SystemSource } from "./randomness.js";
import { readAnnouncement } from "./rounds.js";
import { Silence } from "./rules.js";
import { newMemory } from "./store.js";
import { Terms, isStreamName } from "./terms.js";
import { LATEST_MS, whole } from "./wholes.js";
import { HeldValue, unheeded } from "./values.js";

/** @typedef {import("./rounds.js").Round} Round */
/** @typedef {import("./account.js").Submission} Submission */
/** @typedef {import("./exchange.js").Answer} Answer */
/** @typedef {import("./store.js").Store} Store */
/** @typedef {(ms: number, signal?: AbortSignal) => Promise<void>} Sleep */
/**
 * Others only in tests, except `warn`.
 * @typedef {object} Parts
 * @property {import("./values.js").Warn} [warn] told, once for each kind, of values that cannot be
 *   reported; to the console unless it is given
 * @property {import("./clock.js").Clock} [clock]
 * @property {import("./randomness.js").Source} [source]
 * @property {typeof fetch} [fetcher]
 * @property {Sleep} [sleep]
 */
/**
 * What came of one announcement, or of one turn.
 * @typedef {object} Heard
 * @property {number} serial of the announcement; 0 with slots
 * @property {{round: Round, report: Uint8Array}[]} delivered
 * @property {DeviceError[]} undelivered of reports not known to have arrived; their debit stands
 * @property {Refused[]} refusals
 * @property {{round: Round, why: string}[]} silences
 */

const PROTOCOL = 2;
const LONGEST_WAIT = 25;
const LONGEST_PAUSE_MS = 300_000;
/** Without a look at the clocks: a wall clock that is moved must be noticed before the page closes. */
const LONGEST_SLEEP_MS = 60_000;
const FIRST_PAUSE_MS = 1000;
const LEAST_PAUSE_MS = 50;
/** If a collector asks for a longer pause, an enrolment fails and says so. */
const LONGEST_ENROLMENT_PAUSE_MS = 60_000;
/** The next turn is no more than two windows away, but for a budget that is not free. */
const MOST_SPANS = 3;
const ENROLMENT_TRIES = 6;
const FAREWELL_TRIES = 3;
/** Too early by the collector's clock, or too many requests. */
const TRY_AGAIN = [425, 429];
/** For a whole request, apart from what a collector is asked to hold back. */
const PATIENCE_MS = 10_000;

export class Device {
  #serial = 0;
  /** Whether it tells its number when it listens, though all are asked alike. */
  #named = false;
  /** @type {number | null} the timestamp in which it has last taken its turn */
  #taken = null;
  /** @type {number | null} the timestamp whose report has come too early, once */
  #early = null;
  /** The number under which it has heard and said all of this. */
  #number = "";

  /** @param {Account} account @param {HeldValue} value @param {typeof fetch} fetcher @param {Sleep} sleep */
  constructor(account, value, fetcher, sleep) {
    this.account = account;
    this.value = value;
    this.fetcher = fetcher;
    this.sleep = sleep;
  }

  /**
   * Make a device in an empty store: for installers, once. Say `firstInstall` if this person's
   * device has never reported before: only an installer can know. Otherwise it first keeps silent
   * for w intervals, since a ledger that was lost looks like one that never was.
   * @param {Store} store @param {Parts & {firstInstall?: boolean}} [options]
   */
  static async create(store, { firstInstall = false, ...parts } = {}) {
    await store.create(newMemory(firstInstall, lookAt(parts.clock ?? store.clock)));
    return Device.open(store, parts);
  }

  /** Open the device that lives in this store. It never makes one. */
  /** @param {Store} store @param {Parts} [parts] */
  static async open(store, { warn, clock, source, fetcher, sleep } = {}) {
    const account = new Account(store, clock ?? store.clock, source ?? new SystemSource());
    await account.open();
    return new Device(
      account,
      new HeldValue(warn),
      fetcher ?? ((...given) => globalThis.fetch(...given)),
      sleep ?? waiting,
    );
  }

  /** What was agreed at enrolment; null before. */
  get terms() {
    return this.account.terms;
  }

  /**
   * Hold this value from now on: a label by its name or index or, in a stream of numbers, a number,
   * which is clamped to the range. What is no value of the stream (null, NaN, an unknown label) never
   * means silence, which would tell of it: the stream's `other` label is reported or, where there is
   * none, a value drawn at random. That draws a label's figure f towards 1/d, by theta (1/d - f) if a
   * share theta of the fleet has no value; the collector cannot see it.
   * @param {unknown} value
   */
  observe(value) {
    this.value.observe(value);
  }

  /**
   * Call `read` for the value whenever one is reported. It must return, at once, the value that is
   * held at that moment; an exception, or a promise, is treated like null.
   * @param {() => unknown} read
   */
  follow(read) {
    this.value.follow(read);
  }

  /** What the owner may see: it spends nothing. */
  status() {
    const { account } = this;
    const terms = account.enrolled;
    const { ledger, memory } = account;
    const ownMs = account.ownMs();
    const fullMs = /** @type {number} */ (ledger.freeFrom(terms.epsilonNano));
    return {
      number: toHex(account.enrolment.number),
      t: terms.timestampAt(account.label.nowMs()),
      leftNano: ledger.left(ownMs),
      /** Own time until the whole epsilon can be spent. */
      fullInMs: Math.max(0, fullMs - ownMs),
      entries: memory.entries,
      refusals: account.refusals,
    };
  }

  /**
   * Agree on a stream's terms, once; later only the address and the key may change.
   * @param {string} url of the collector @param {string} stream
   * @param {string} token empty where the stream lets anyone enrol
   * @param {{pin?: string, plainHttp?: boolean, signal?: AbortSignal}} [options] `pin`: accept these
   *   terms only; `plainHttp`: show the secret of the enrolment to whoever reads along
   */
  async enrol(url, stream, token, { pin, plainHttp = false, signal } = {}) {
    if (!isStreamName(stream)) {
      const expected = "a stream's name: letters, digits, '.', '_' and '-'";
      throw new DeviceError("option", { option: "the stream", given: shown(stream), expected });
    }
    if (!/^[ -~]*$/.test(token)) {
      // Not shown: it is a secret, if a broken one.
      const [given, expected] = ["unprintable", "plain ASCII"];
      throw new DeviceError("option", { option: "the token", given, expected });
    }
    const place = readAddress(url, plainHttp);
    const { account } = this;
    const { secret, rejoins } = account.memory;
    const shownSecret = await enrolmentSecret(secret, place, stream, rejoins);
    const response = await this.#insist(
      place,
      devicesPath(stream),
      {
        method: "POST",
        headers: {
          ...(token ? { Authorization: `Bearer ${token}` } : {}),
          "Content-Type": "application/json",
        },
        body: JSON.stringify({ secret: toHex(shownSecret), version: PROTOCOL }),
      },
      PATIENCE_MS,
      (failures, pauseMs) => failures >= ENROLMENT_TRIES || pauseMs > LONGEST_ENROLMENT_PAUSE_MS,
      signal,
    );
    if (response.status !== 200 && response.status !== 201) {
      throw refusalIn(response, "the enrolment");
    }
    const answer = readObject(response, "enrolment", LARGEST_ANSWER);
    const terms = await Terms.read(answer.terms);
    for (const wanted of [answer.pin, pin]) {
      if (wanted != null && wanted !== terms.pin) {
        throw new TermsRefused("terms-differ", { given: terms.pin, expected: shown(wanted) });
      }
    }
    if (terms.stream !== stream) {
      throw new TermsRefused("terms-malformed", { what: `they are of the stream ${terms.stream}` });
    }
    const number = await numberOf(shownSecret);
    if (answer.device !== toHex(number)) {
      throw new Refused("answer-malformed", { what: "device", given: shown(answer.device) });
    }
    if (whole(answer.now_ms, 0, LATEST_MS)) account.label.correct(answer.now_ms);
    const atMs = account.clock.wallMs();
    await account.enrol(secret, terms, { url: place, number, key: readKey(answer.key), atMs });
    await this.#refresh();
    return terms;
  }

  /**
   * Leave the stream: tell the collector, and forget key, secret and reports. What was spent is kept
   * until its span has passed, so that joining again finds it. If the collector cannot be told, the
   * device has left all the same.
   * @param {{signal?: AbortSignal}} [options] @returns {Promise<boolean>} whether it was told
   */
  async leave({ signal } = {}) {
    const { account } = this;
    const [{ url }, { stream }] = [account.enrolment, account.enrolled];
    const headers = await account.farewell();
    await account.leave();
    await this.#refresh();
    try {
      const response = await this.#insist(
        url,
        devicesPath(stream),
        { method: "DELETE", headers },
        PATIENCE_MS,
        (failures, pauseMs) => failures >= FAREWELL_TRIES || pauseMs > LONGEST_ENROLMENT_PAUSE_MS,
        signal,
      );
      return response.status === 200;
    } catch (fault) {
      if (!(fault instanceof DeviceError)) throw fault;
      return false;
    }
  }

  /**
   * Return in how many ms this device reports next, for whoever wakes it up (and calls `poll`) then;
   * null where its collector asks, and the device must listen.
   * @returns {Promise<number | null>}
   */
  async dueInMs() {
    await this.#refresh();
    return this.#speaksUnasked ? this.#until(await this.#turn()) : null;
  }

  get #speaksUnasked() {
    return this.account.enrolled.selection === "slots";
  }

  /** Read the memory again; forget what was heard under another number, which it would link. */
  async #refresh() {
    const number = await this.account.refresh();
    if (number === this.#number) return;
    [this.#serial, this.#named, this.#number] = [0, false, number];
    [this.#taken, this.#early] = [null, null];
  }

  /**
   * Return the next turn. Do without a collector's time that would put it off for long: a device that is
   * not asked hears of the right one only when it reports again.
   */
  async #turn() {
    const { account } = this;
    const turn = await account.turn(this.#taken);
    if (this.#until(turn) <= MOST_SPANS * account.enrolled.promise.span) return turn;
    account.label.restart();
    return account.turn(this.#taken);
  }

  /** @param {import("./account.js").Turn} turn */
  #until({ atMs }) {
    return Math.max(0, atMs - this.account.label.nowMs());
  }

  /**
   * Ask for rounds, waiting up to so many seconds for news, and answer them. With slots: take the
   * device's turn, if it comes within so many seconds.
   * @param {number} [wait] @param {AbortSignal} [signal] @returns {Promise<Heard>}
   */
  async poll(wait = 0, signal) {
    try {
      await this.#refresh();
      if (!this.#speaksUnasked) return await this.#listen(wait, signal);
      const turn = await this.#turn();
      if (this.#until(turn) > 1000 * wait) return nothingHeard(0);
      await this.#pause(this.#until(turn), signal);
      return await this.#take(turn, 1000 * wait, signal);
    } finally {
      await this.account.markTime();
    }
  }

  /**
   * Report, now that it is the device's turn. To connect first, as the Python device does, is not
   * possible with `fetch`: a report that does not arrive is debited, and sent again until it is over.
   * @param {import("./account.js").Turn} turn @param {number} mostMs @param {AbortSignal} [signal]
   * @returns {Promise<Heard>}
   */
  async #take({ round }, mostMs, signal) {
    const heard = await this.#answer(0, this.account.enrolled.pin, [round], signal, mostMs);
    if (signal?.aborted) return heard;
    // What came too early is sent again, in the same bytes, when its time has come; but only once, since
    // a collector may say so for ever.
    const again = this.#early !== round.t && heard.undelivered.some(isEarly);
    if (again) this.#early = round.t;
    else this.#taken = round.t;
    return heard;
  }

  /** @param {number} wait @param {AbortSignal} [signal] @returns {Promise<Heard>} */
  async #listen(wait, signal) {
    const { account } = this;
    const [{ url }, { stream, selection }] = [account.enrolment, account.enrolled];
    const path = `${roundsPath(stream)}?after=${this.#serial}&wait=${wait}`;
    const patienceMs = PATIENCE_MS + wait * 1000;
    // With open selection everyone is asked alike, and who listens is nobody's business, unless the
    // stream is private: then it is unknown to whoever does not prove to take part.
    const anonymous = selection === "open";
    const ask = async () => {
      const headers = this.#named || !anonymous ? await account.proof(this.#serial) : {};
      return exchange(this.fetcher, url, path, { headers }, patienceMs, signal);
    };
    let response = await ask();
    if (response.status === 404 && !this.#named && anonymous) {
      this.#named = true;
      response = await ask();
    }
    const { status } = response;
    if (status !== 200) {
      if (status >= 400 && status < 500 && status !== 429) {
        this.#serial = 0; // it may be what the collector does not take
      }
      throw refusalIn(response, "to list rounds");
    }
    const announcement = readAnnouncement(readObject(response, "rounds"));
    if (announcement.nowMs !== null) account.label.correct(announcement.nowMs);
    const { serial, pin, rounds } = announcement;
    const heard = await this.#answer(serial, pin, rounds, signal);
    // Not before: what a fault of the disk left unanswered must be announced again. So must what
    // was open when the signal said stop, to whoever starts again.
    if (!signal?.aborted) this.#serial = serial;
    return heard;
  }

  /**
   * Answer rounds, as far as the rules allow. A round for which it is too early comes after the others.
   * @param {number} serial @param {string} pin @param {(Round | Refused)[]} rounds
   * @param {AbortSignal} [signal] no report is drawn, and none is sent again, once it says stop
   * @param {number} [mostMs] that are waited for budget @returns {Promise<Heard>}
   */
  async #answer(serial, pin, rounds, signal, mostMs = Infinity) {
    const heard = nothingHeard(serial);
    try {
      await this.#answerAll(heard, pin, rounds, signal, mostMs);
    } finally {
      this.value.tell(); // after all have left: when they leave must not tell of a value
    }
    return heard;
  }

  /**
   * @param {Heard} heard @param {string} pin @param {(Round | Refused)[]} rounds
   * @param {AbortSignal | undefined} signal @param {number} mostMs
   */
  async #answerAll(heard, pin, rounds, signal, mostMs) {
    let pending = rounds;
    while (pending.length) {
      /** @type {{asked: Round, waitMs: number}[]} */
      const early = [];
      for (const one of pending) {
        if (signal?.aborted) return;
        const asked = /** @type {Round} */ (one);
        const outcome = await this.account.consider(pin, one, (terms, source) =>
          this.value.place(terms, source),
        );
        if ("send" in outcome) await this.#deliver(outcome.send, heard, signal);
        else if ("waitMs" in outcome) {
          if (outcome.waitMs <= mostMs) early.push({ asked, waitMs: outcome.waitMs });
          else heard.silences.push({ round: asked, why: Silence.TOO_EARLY });
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
  }

  /**
   * Poll until the signal says stop, or the device has left or is enrolled elsewhere; go on after every
   * fault, with growing pauses.
   * @param {AbortSignal} signal @param {(heard: Heard) => unknown} [tell]
   * @param {(fault: DeviceError) => unknown} [complain]
   */
  async run(signal, tell = () => undefined, complain = () => undefined) {
    // It may be the last thing that a page hears.
    const hiding = () => unheeded(this.account.markTime());
    globalThis.document?.addEventListener("visibilitychange", hiding);
    try {
      await this.#goOn(signal, complain, (failures) =>
        this.#speaksUnasked ? this.#attend(signal, tell, failures) : this.#hear(signal, tell),
      );
    } finally {
      globalThis.document?.removeEventListener("visibilitychange", hiding);
    }
  }

  /**
   * Take step after step; after a fault, which is counted and told, only after a pause.
   * @param {AbortSignal} signal @param {(fault: DeviceError) => unknown} complain
   * @param {(failures: number) => Promise<number>} step is told how often it has failed in a row, and
   *   resolves with that number as it is then
   */
  async #goOn(signal, complain, step) {
    const number = toHex(this.account.enrolment.number); // it ends here if it never was
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#refresh();
        if (this.#number !== number) return; // what the application holds is for the other stream
        failures = await step(failures);
      } catch (fault) {
        if (signal.aborted) return;
        if (!(fault instanceof DeviceError)) throw fault;
        if (fault.code === "not-enrolled") return; // it has left
        await this.account.note(fault);
        unheeded(complain(fault));
        failures += 1;
        await this.#pause(this.#pauseMs(failures, retryAfterMs(fault)), signal);
      }
    }
  }

  /** Ask once for rounds, and answer them. */
  /** @param {AbortSignal} signal @param {(heard: Heard) => unknown} tell */
  async #hear(signal, tell) {
    const { clock } = this.account;
    const [before, askedMs] = [this.#serial, clock.steadyMs()];
    const heard = await this.poll(LONGEST_WAIT, signal);
    unheeded(tell(heard));
    if (!heard.delivered.length && clock.steadyMs() - askedMs < 1000) {
      // A collector that does not hold the question back must not be asked in a frenzy.
      const leastMs = heard.serial === before ? FIRST_PAUSE_MS : LEAST_PAUSE_MS;
      await this.#pause(this.#pauseMs(1, leastMs), signal);
    }
    return 0;
  }

  /** Wait for the device's turn, or for the time to look again; take it if it has come. */
  /** @param {AbortSignal} signal @param {(heard: Heard) => unknown} tell @param {number} failures */
  async #attend(signal, tell, failures) {
    const turn = await this.#turn();
    const waitMs = this.#until(turn);
    if (waitMs > 0) {
      await this.#pause(Math.min(waitMs, LONGEST_SLEEP_MS), signal);
      return failures;
    }
    const heard = await this.#take(turn, Infinity, signal);
    await this.account.markTime();
    unheeded(tell(heard));
    if (!heard.undelivered.length) return 0;
    // Else a collector that refuses, and says that it is another t, is flooded.
    await this.#pause(this.#pauseMs(failures + 1, 0), signal);
    return failures + 1;
  }

  /** Put on disk what can be, counts of refusals and how far own time has come; let go of the store. */
  async close() {
    await this.account.close();
    await this.account.store.close();
  }

  /** Send a report until it arrives, is refused, or its round or its timestamp is over. */
  /** @param {Submission} submission @param {Heard} heard @param {AbortSignal} [signal] */
  async #deliver({ round, path, report, headers }, heard, signal) {
    const { account } = this;
    const { intervalMs } = account.enrolled;
    const overMs = Math.min(round.deadlineMs, account.enrolled.endOf(round.t));
    const leftMs = () => overMs - account.label.nowMs();
    const giveUpMs = account.clock.steadyMs() + intervalMs; // however often time is corrected
    try {
      const response = await this.#insist(
        account.enrolment.url,
        path,
        {
          method: "POST",
          headers: { "Content-Type": "application/octet-stream", ...headers },
          body: /** @type {Uint8Array<ArrayBuffer>} */ (report),
        },
        Math.min(PATIENCE_MS, Math.max(leftMs(), FIRST_PAUSE_MS)),
        (_, pauseMs) => account.clock.steadyMs() + pauseMs >= giveUpMs || pauseMs >= leftMs(),
        signal,
      );
      if (response.status !== 200 && response.status !== 202) {
        throw refusalIn(response, `the report of round ${round.name}`);
      }
    } catch (fault) {
      if (!(fault instanceof DeviceError)) throw fault;
      heard.undelivered.push(await account.note(fault));
      return;
    }
    account.arrived(round);
    heard.delivered.push({ round, report });
  }

  /**
   * Send the same request until there is an answer other than "later". Each is heeded: it may correct
   * label time.
   * @param {string} url @param {string} path @param {RequestInit} request @param {number} patienceMs
   * @param {(failures: number, pauseMs: number) => boolean} giveUp @param {AbortSignal} [signal]
   * @returns {Promise<Answer>}
   */
  async #insist(url, path, request, patienceMs, giveUp, signal) {
    for (let failures = 1; ; failures += 1) {
      let fault;
      try {
        const response = await exchange(this.fetcher, url, path, request, patienceMs, signal);
        const { nowMs } = noticeIn(response);
        if (nowMs !== null) this.account.label.correct(nowMs);
        if (!TRY_AGAIN.includes(response.status) && response.status < 500) return response;
        fault = refusalIn(response, `${request.method} ${path}`);
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        fault = error;
      }
      const pauseMs = this.#pauseMs(failures, retryAfterMs(fault));
      if (signal?.aborted || giveUp(failures, pauseMs)) throw fault;
      await this.#pause(pauseMs, signal);
      if (signal?.aborted) throw fault;
    }
  }

  /** Wait, and look at the clocks meanwhile. @param {number} ms @param {AbortSignal} [signal] */
  async #pause(ms, signal) {
    for (let leftMs = ms; leftMs > 0 && !signal?.aborted; leftMs -= LONGEST_SLEEP_MS) {
      await this.sleep(Math.min(leftMs, LONGEST_SLEEP_MS), signal);
      await this.account.markTime();
    }
  }

  /** Doubling, with jitter over its whole range so that a fleet does not come back as one. */
  /** @param {number} failures @param {number} atLeastMs */
  #pauseMs(failures, atLeastMs) {
    const first = Math.min(FIRST_PAUSE_MS, (this.terms?.intervalMs ?? 10_000) / 10);
    const most = Math.min(LONGEST_PAUSE_MS, first * 2 ** Math.min(failures - 1, 30));
    return atLeastMs + Math.random() * most;
  }
}

/** @param {number} serial @returns {Heard} */
const nothingHeard = (serial) => ({
  serial,
  delivered: [],
  undelivered: [],
  refusals: [],
  silences: [],
});

/** @param {DeviceError} fault whether its round has not begun by the collector's clock */
const isEarly = (fault) => fault.facts.code === "round-early";

/** @param {DeviceError} fault how long the collector wants to be left alone */
const retryAfterMs = (fault) => Number(fault.facts.retryAfterMs ?? 0);
