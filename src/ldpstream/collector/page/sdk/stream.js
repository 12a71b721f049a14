/** When a device turns to the collector of one stream, as `device/session.py`: its turn, news, a farewell. */

import { devicesPath, roundsPath } from "./authentication.js";
import { toHex } from "./bytes.js";
import { Errands } from "./errands.js";
import { readReserve } from "./enrolling.js";
import { exchange, noticeIn, readObject, refusalIn } from "./exchange.js";
import { Halting } from "./halting.js";
import { PATIENCE_MS, UNAUTHORIZED, insist, pauseMs, retryAfterMs } from "./insist.js";
import { LONGEST_SLEEP_MS, pausing } from "./pausing.js";
import { DeviceError } from "./problems.js";
import { Reporter } from "./reporter.js";
import { readAnnouncement } from "./rounds.js";
import { statusOf } from "./status.js";
import { unheeded } from "./values.js";

/** @typedef {import("./account.js").Account} Account */
/** @typedef {import("./insist.js").Io} Io */
/** @typedef {import("./reporter.js").Heard} Heard */
/** @typedef {import("./reporter.js").Manner} Manner */
/** @typedef {import("./turns.js").Turn} Turn */
/** @typedef {import("./values.js").HeldValue} HeldValue */
const LONGEST_WAIT = 25;
const FIRST_PAUSE_MS = 1000;
const LEAST_PAUSE_MS = 50;
/** If a collector asks for a longer pause, a farewell is given up. */
const LONGEST_FAREWELL_PAUSE_MS = 60_000;
/** The next turn is no more than two windows away, once the budget is free. */
const MOST_SPANS = 2;
const FAREWELL_TRIES = 3;
/** Errands are run if the next turn is further away than they can take, or than half a window. */
const ERRANDS_MS = 15_000;

/** One stream of a device. */
export class Stream {
  #serial = 0;
  /** Whether it tells its number when it listens, though all are asked alike. */
  #named = false;
  /** @type {number | null} the timestamp in which it has last taken its turn */
  #taken = null;
  /** @type {number | null} the timestamp whose report has come too early, once */
  #early = null;
  /** The number under which it has heard and said all of this. */
  #number = "";
  /** @type {import("./pausing.js").Pause} */ #pause;
  /** @type {Reporter} */ #reporter;

  /** @param {Account} account @param {HeldValue} value @param {Io} io */
  constructor(account, value, io) {
    this.account = account;
    this.value = value;
    this.io = io;
    this.errands = new Errands(account, io);
    this.halting = new Halting(account);
    this.#pause = pausing(io, account.wallet);
    this.#reporter = new Reporter(account, value, io, this.#pause, (notice) => this.#heed(notice));
  }

  /** What the device has agreed to, as it binds it now, at its level; null before an enrolment. */
  get terms() {
    return this.account.terms && this.account.termsNow;
  }

  /**
   * Hold this value from now on: a label by its name or index; in a stream of numbers a number, which is
   * clamped to the range; for an open vocabulary any text, of which 256 bytes count.
   *
   * What is no value of the stream (null, NaN, an unknown label) never means silence, which would tell of
   * it: the stream's `other` label is reported or, where there is none, a value drawn at random. That draws
   * a label's figure f towards 1/d, by theta (1/d - f) if a share theta of the fleet has no value; the
   * collector cannot see it.
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

  /**
   * Set this device's public attributes, by the names that the terms declare. They are sent
   * beside every report and nothing protects them, so they must not depend on the value. What is not
   * declared, or not said, counts as `other`; each call replaces the last.
   * @param {Readonly<Record<string, string>>} attributes
   */
  describe(attributes) {
    this.account.described = { ...attributes };
  }

  /** What the owner may see: it spends nothing. */
  status() {
    return statusOf(this.account);
  }

  /** @param {number} epsilon of the limit over all streams that others leave to this one */
  async reserve(epsilon) {
    await this.account.wallet.setReserve(this.account.enrolment.id, readReserve(epsilon));
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
      const response = await insist(
        this.io,
        { url, path: devicesPath(stream), method: "DELETE", headers },
        {
          giveUp: (failures, ms) => failures >= FAREWELL_TRIES || ms > LONGEST_FAREWELL_PAUSE_MS,
          pause: this.#pause,
          signal,
        },
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
    return this.#speaksUnasked ? this.#waitMs(await this.#turn()) : null;
  }

  get #speaksUnasked() {
    return this.account.enrolled.selection === "slots";
  }

  /** Go on from an enrolment. @param {import("./notice.js").Notice} notice in the collector's answer */
  async enrolled({ nowMs, ...notice }) {
    await this.#refresh();
    if (nowMs !== null) this.account.label.correct(nowMs);
    this.errands = new Errands(this.account, this.io);
    this.errands.hear({ nowMs, ...notice, renew: false });
    this.halting.hear({ nowMs, ...notice });
  }

  /** Read the memory again; forget what was heard under another number, which it would link. */
  async #refresh() {
    const number = await this.account.refresh();
    if (number === this.#number) return;
    [this.#serial, this.#named, this.#number] = [0, false, number];
    [this.#taken, this.#early] = [null, null];
    this.errands = new Errands(this.account, this.io);
    this.halting = new Halting(this.account);
  }

  /**
   * Return the next turn. Ignore a collector's time that would put it off for long: a device that is
   * not asked hears of the right one only when it reports again.
   */
  async #turn() {
    const { account } = this;
    const turn = await account.turn(this.#taken);
    const plausibleMs = account.freeInMs(turn.round) + MOST_SPANS * account.wallet.longestSpanOf(account.enrolment);
    if (this.#until(turn) <= plausibleMs) return turn;
    account.label.restart();
    return account.turn(this.#taken);
  }

  /** @returns {Heard} */
  #nothing() {
    const { stream } = this.account.enrolled;
    return { stream, serial: 0, delivered: [], undelivered: [], refusals: [], silences: [] };
  }

  /** @param {Turn} turn */
  #until({ atMs }) {
    return Math.max(0, atMs - this.account.label.nowMs());
  }

  /** How long to wait for a turn; for that of a retired stream, much longer. @param {Turn} turn */
  #waitMs(turn) {
    return Math.max(this.#until(turn), this.halting.restsMs);
  }

  /**
   * Ask for rounds, waiting up to so many seconds for news, and answer them. With slots: take the
   * device's turn, if it comes within so many seconds. A round for which it is too early is waited for,
   * within its timestamp and for at most `mostMs`.
   * @param {number} [wait] @param {AbortSignal} [signal] @param {number} [mostMs] @returns {Promise<Heard>}
   */
  async poll(wait = 0, signal, mostMs = Infinity) {
    await this.#refresh();
    const heard = this.#nothing();
    try {
      if (!this.#speaksUnasked) await this.#listen(heard, wait, signal, mostMs);
      else await this.#attendFor(heard, 1000 * wait, signal);
    } catch (fault) {
      if (!(fault instanceof DeviceError) || !this.account.wasLeft) throw fault; // else it was left meanwhile
    } finally {
      await this.account.wallet.markTime();
    }
    return heard;
  }

  /** Take the device's turn if it comes within `mostMs`. */
  /** @param {Heard} heard @param {number} mostMs @param {AbortSignal} [signal] */
  async #attendFor(heard, mostMs, signal) {
    const number = this.#number;
    const turn = await this.#turn();
    if (this.#waitMs(turn) > mostMs) return;
    await this.#pause(this.#waitMs(turn), signal);
    await this.#take(heard, turn, { number, signal, mostMs });
    await this.errands.run(signal);
  }

  /**
   * Report, now that it is the device's turn. To connect first, as the Python device does, is not
   * possible with `fetch`: a report that does not arrive is debited, and sent again until it is over.
   * Nothing is drawn for a stream that takes no reports: whether it does again is asked at each turn.
   * @param {Heard} heard @param {Turn} turn @param {Manner} manner
   */
  async #take(heard, { round }, manner) {
    if (this.halting.halt !== null) {
      await this.#inquire(0, manner.signal);
      if (this.#number !== manner.number) return;
      if (this.halting.halt !== null) {
        this.#taken = round.t;
        return;
      }
    }
    const { pin } = this.account.termsAt(round.t);
    const isDone = await this.#reporter.answer(heard, pin, [round], manner);
    if (!isDone) return;
    // What came too early is sent again, in the same bytes, when its time has come; but only once, since
    // a collector may say so for ever.
    const again = this.#early !== round.t && heard.undelivered.some(isEarly);
    if (again) this.#early = round.t;
    else this.#taken = round.t;
  }

  /**
   * Ask for the rounds that are open, and hear what else the collector has to say.
   * @param {number} wait @param {AbortSignal | undefined} signal
   */
  async #inquire(wait, signal) {
    const { account } = this;
    const number = this.#number;
    const [{ url }, { stream, selection, version }] = [account.enrolment, account.termsNow];
    const ofVersion = version > 1 ? `&version=${version}` : "";
    const path = `${roundsPath(stream)}?after=${this.#serial}&wait=${wait}${ofVersion}`;
    const patienceMs = PATIENCE_MS + wait * 1000;
    // With open selection everyone is asked alike, and who listens is nobody's business, unless the
    // stream is private: then it is unknown to whoever does not prove to take part.
    const anonymous = selection === "open";
    const ask = async () => {
      const headers = this.#named || !anonymous ? await account.proof(this.#serial) : {};
      return exchange(this.io.fetcher, url, path, { headers }, patienceMs, signal);
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
      if (status === UNAUTHORIZED) await account.doubtKey();
      throw refusalIn(response, "to list rounds");
    }
    const announcement = readAnnouncement(readObject(response, "rounds"));
    const notice = noticeIn(response);
    await this.#refresh();
    if (this.#number !== number) return null; // it was told to who had another one
    if (announcement.nowMs !== null) account.label.correct(announcement.nowMs);
    this.halting.hear(notice);
    return { announcement, notice };
  }

  /** @param {Heard} heard @param {number} wait @param {AbortSignal | undefined} signal @param {number} mostMs */
  async #listen(heard, wait, signal, mostMs) {
    const number = this.#number;
    if (this.halting.restsMs > 1000 * wait) return;
    const told = await this.#inquire(wait, signal);
    if (told === null) return;
    const { announcement, notice } = told;
    const { serial, pin } = announcement;
    const rounds = notice.halt === null ? announcement.rounds : [];
    heard.serial = serial;
    const isDone = await this.#reporter.answer(heard, pin, rounds, { number, signal, mostMs });
    if (this.#number !== number) return;
    // Not before: what a fault of the disk left unanswered must be announced again. So must what
    // was put off, or open when the signal said stop, to whoever starts again.
    if (isDone) this.#serial = serial;
    if (notice.successor !== null || notice.renew) this.errands.hear(notice);
    await this.errands.run(signal);
  }

  /**
   * Poll until the signal says stop, or the device has left or is enrolled elsewhere; go on after every
   * fault, with growing pauses.
   * @param {AbortSignal} signal @param {(heard: Heard) => unknown} [tell]
   * @param {(fault: DeviceError, stream: string) => unknown} [complain]
   */
  async run(signal, tell = () => undefined, complain = () => undefined) {
    // It may be the last thing that a page hears.
    const hiding = () => unheeded(this.account.wallet.markTime());
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
   * @param {AbortSignal} signal @param {(fault: DeviceError, stream: string) => unknown} complain
   * @param {(failures: number) => Promise<number>} step is told how often it has failed in a row, and
   *   resolves with that number as it is then
   */
  async #goOn(signal, complain, step) {
    const number = toHex(this.account.enrolment.number); // it ends here if it never was
    const { stream, intervalMs } = this.account.enrolled;
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
        unheeded(complain(fault, stream));
        failures += 1;
        await this.#pause(pauseMs(failures, retryAfterMs(fault), intervalMs), signal);
      }
    }
  }

  /** Ask once for rounds, and answer them. */
  /** @param {AbortSignal} signal @param {(heard: Heard) => unknown} tell */
  async #hear(signal, tell) {
    const { clock } = this.account;
    if (this.halting.restsMs > 0) {
      await this.#pause(Math.min(this.halting.restsMs, LONGEST_SLEEP_MS), signal);
      return 0;
    }
    const [before, askedMs] = [this.#serial, clock.steadyMs()];
    const heard = await this.poll(LONGEST_WAIT, signal);
    unheeded(tell(heard));
    if (!heard.delivered.length && clock.steadyMs() - askedMs < 1000) {
      // A collector that does not hold the question back must not be asked in a frenzy.
      const leastMs = heard.serial === before ? FIRST_PAUSE_MS : LEAST_PAUSE_MS;
      await this.#pause(pauseMs(1, leastMs, this.account.enrolled.intervalMs), signal);
    }
    return 0;
  }

  /** Wait for the device's turn, or for the time to look again; take it if it has come. */
  /** @param {AbortSignal} signal @param {(heard: Heard) => unknown} tell @param {number} failures */
  async #attend(signal, tell, failures) {
    const turn = await this.#turn();
    const waitMs = this.#waitMs(turn);
    if (this.errands.due && waitMs > Math.min(ERRANDS_MS, this.account.enrolled.promise.span / 2)) {
      await this.errands.run(signal);
      return failures;
    }
    if (waitMs > 0) {
      await this.#pause(Math.min(waitMs, LONGEST_SLEEP_MS), signal);
      return failures;
    }
    const heard = this.#nothing();
    await this.#take(heard, turn, { number: this.#number, signal, mostMs: Infinity });
    await this.account.wallet.markTime();
    unheeded(tell(heard));
    if (!heard.undelivered.length) return 0;
    // Else a collector that refuses, and says that it is another t, is flooded.
    await this.#pause(pauseMs(failures + 1, 0, this.account.enrolled.intervalMs), signal);
    return failures + 1;
  }

  /** Correct label time by a notice, and remember what it asks for. */
  /** @param {import("./notice.js").Notice} notice */
  #heed(notice) {
    if (notice.nowMs !== null) this.account.label.correct(notice.nowMs);
    this.errands.hear(notice);
    this.halting.hear(notice);
  }

}

/** @param {DeviceError} fault whether its round has not begun by the collector's clock */
const isEarly = (fault) => fault.facts.code === "round-early";
