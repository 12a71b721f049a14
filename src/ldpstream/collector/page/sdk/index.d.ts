/** A device of ldpstream, in pages, workers and extensions. */

/** A level of privacy that a person may choose in place of the stream's own epsilon and window. */
export interface Level {
  readonly name: string;
  readonly epsilonNano: number;
  readonly window: number;
  readonly oracle: string;
}

/** One version of the public terms of a stream, as they bind a device at its level. */
export interface Terms {
  readonly stream: string;
  readonly query: "histogram" | "mean" | "distribution" | "vocabulary";
  /** The labels of a stream of labels; null in one of numbers or texts. */
  readonly labels: readonly string[] | null;
  /** The range of a stream of numbers; null in one of labels or texts. */
  readonly range: { readonly low: number; readonly high: number; readonly steps: number } | null;
  /** How texts become buckets, in a stream of any text; null in others. */
  readonly vocabulary: { readonly salt: string; readonly bits: number; readonly prefixes: readonly number[] } | null;
  readonly epsilonNano: number;
  readonly window: number;
  readonly intervalMs: number;
  readonly startMs: number;
  readonly oracle: string;
  /** The index of the label that is reported where there is no value. */
  readonly other: number | null;
  readonly selection: "slots" | "open" | "roster" | null;
  readonly deadlineMs: number | null;
  /** The levels that a person may choose. */
  readonly levels: readonly Level[];
  /** The public attributes that reports tell of a device (`describe`), each with the values that are told apart. */
  readonly attributes: readonly { readonly name: string; readonly values: readonly string[] }[];
  /** The level at which these terms are seen; "": the stream's own. */
  readonly level: string;
  /** The number of these terms among those of the stream, from 1. */
  readonly version: number;
  /** The SHA-256 of the terms, in hex; it is the same at all levels. */
  readonly pin: string;
}

/** A report that was asked for or, with slots, is due. */
export interface Round {
  readonly name: string;
  readonly t: number;
  readonly epsilonNano: number;
  readonly deadlineMs: number;
  readonly rate: readonly [number, number];
}

/**
 * What came of one announcement or, with slots, of one turn.
 *
 * @example
 * const heard = await device.poll(30);
 * console.log(heard.delivered.map(({ round, report }) => [round.t, report.length]));
 */
export interface Heard {
  readonly stream: string;
  readonly serial: number;
  readonly delivered: readonly { readonly round: Round; readonly report: Uint8Array }[];
  /** Of reports that are not known to have arrived; their debits stand. */
  readonly undelivered: readonly DeviceError[];
  readonly refusals: readonly Refused[];
  readonly silences: readonly { readonly round: Round; readonly why: string }[];
}

/**
 * What the owner of a device may see of one stream.
 *
 * @example
 * const { leftNano, fullInMs } = device.status();
 */
export interface Status {
  readonly stream: string;
  /** The level of privacy; "": the stream's own. */
  readonly level: string;
  /** The device's number in this stream, in hex. */
  readonly number: string;
  readonly t: number;
  /** What the stream's promise, and the limit over all streams, leave to be spent. */
  readonly leftNano: number;
  /** Own time until the whole epsilon can be spent; Infinity if the limit never allows it. */
  readonly fullInMs: number;
  /** How much of the limit over all streams is kept free for this one. */
  readonly reserveNano: number;
  /** The pin of terms that the device has accepted, and goes over to at their first timestamp. */
  readonly successor: string | null;
  readonly entries: readonly Entry[];
  readonly refusals: readonly RefusalCount[];
}

/**
 * At most so much epsilon in any span, such as "24h", over all streams of a device.
 *
 * @example
 * await device.setLimit({ epsilon: 1, span: "24h" });
 */
export interface Limit {
  readonly epsilon: number;
  readonly span: string;
}

export interface OpenOptions {
  /**
   * The limit over all streams; null: none. Without it, the stored one goes on. One that is not stricter than
   * that of before leaves the latter binding until its span has passed.
   */
  limit?: Limit | null;
  /** Told, once for each kind, of values that cannot be reported; the console unless it is given. */
  warn?: (problem: DeviceError) => unknown;
  /** Another fetch, for a proxy or a test. */
  fetcher?: typeof fetch;
}

export interface JoinOptions extends CreateOptions, EnrolOptions {
  /** The enrolment token; none where anyone may enrol. */
  token?: string;
}

export interface CreateOptions extends OpenOptions {
  /** An installer's word that this person's device has never reported; else it is first silent. */
  firstInstall?: boolean;
}

/**
 * Which successors of a stream's terms a device may go over to by itself. None is ever looser.
 *
 * @example
 * await device.enrol(url, "regions", token, { accept: { accept: "not-looser", leastEpsilon: 0.5 } });
 */
export interface Policy {
  /** "same-labels": if nothing changes that a value can be; "not-looser": whatever the labels are. */
  readonly accept?: Acceptance;
  /** Terms that the application has agreed to by their pin, whatever `accept` says. */
  readonly pins?: readonly string[];
  /** Without floors, a collector could make a device useless step by step. */
  readonly leastEpsilon?: number;
  readonly longestWindow?: number;
}

export type Acceptance = "never" | "same-labels" | "not-looser";

export interface EnrolOptions {
  /** Accept these terms only. */
  pin?: string;
  /** Enrol over plain http, where the network is trusted. */
  plainHttp?: boolean;
  /** The level of privacy that the person has chosen; "": the stream's own. Enrol again to move. */
  level?: string;
  /** Which new terms of the stream the device may go over to by itself; "never" at first. */
  accept?: Policy | Acceptance;
  /** Epsilon of the limit over all streams that is kept free for this one. */
  reserve?: number;
  signal?: AbortSignal;
}

/** What a device does in one stream. */
interface TakesPart {
  /** What was agreed, at the device's level; null before an enrolment, and after leaving. */
  readonly terms: Terms | null;

  /** Hold this value from now on: a label by its name or index, a number, or a text; null: there is none. */
  observe(value: string | number | null): void;

  /** Call `read` for the value whenever one is reported; it must return it at once. */
  follow(read: () => string | number | null): void;

  /**
   * Set this device's public attributes, by the names that the terms declare. They are sent with every
   * report, so they must not depend on the value. Each call replaces the last.
   */
  describe(attributes: Readonly<Record<string, string>>): void;

  status(): Status;

  /** Leave the stream; resolve with whether the collector could be told. What was spent is kept. */
  leave(options?: { signal?: AbortSignal }): Promise<boolean>;

  /** Milliseconds until the next report, with slots: wake the device then, and `poll`. Else null. */
  dueInMs(): Promise<number | null>;

  /** Take the device's turn, if it comes within so many seconds; or ask for rounds, and answer. */
  poll(wait?: number, signal?: AbortSignal): Promise<Heard>;

  /** Go on, whatever goes wrong, until the signal says stop, or the device has left or moved on. */
  run(
    signal: AbortSignal,
    tell?: (heard: Heard) => unknown,
    complain?: (fault: DeviceError, stream: string) => unknown,
  ): Promise<void>;
}

/**
 * One of the streams of a device.
 *
 * @example
 * device.stream("regions").observe("north");
 */
export interface Stream extends TakesPart {
  /** Keep so much epsilon of the limit over all streams free for this one. */
  reserve(epsilon: number): Promise<void>;
}

/**
 * A device that lives in a store; what it promises is in docs/device.md. `observe`, `follow`, `describe`,
 * `status`, `terms` and `leave` are for a device with one stream: with several, name it (`stream`).
 *
 * @example
 * const device = await Device.join(new IndexedDbStore("regions"), "https://collector.example", "regions");
 * device.follow(() => region.value); // a <select> of the page
 * await device.run(new AbortController().signal);
 */
export class Device implements TakesPart {
  private constructor();

  /** Make a device in an empty store: for installers, once. */
  static create(store: Store, options?: CreateOptions): Promise<Device>;

  /** Open the device that lives in this store. It never makes one. */
  static open(store: Store, options?: OpenOptions): Promise<Device>;

  /**
   * Open the device of this store, or make one, and enrol it unless it takes part in the stream already: for a
   * page or a program that has no installer.
   */
  static join(store: Store, url: string, stream: string, options?: JoinOptions): Promise<Device>;

  /**
   * Agree on a stream's terms; the token is empty where anyone may enrol. A device may take part in several
   * streams. In one that it takes part in, address, key and level may change.
   */
  enrol(url: string, stream: string, token: string, options?: EnrolOptions): Promise<Terms>;

  /** A stream by its name; give its collector's URL if two have the same. */
  stream(name: string, url?: string): Stream;

  /** All streams that this device takes part in. */
  get streams(): readonly Stream[];

  /** The limit over all streams, and what is left of it now; null: there is none. */
  get limit(): { readonly epsilonNano: number; readonly spanMs: number; readonly leftNano: number } | null;

  /** Set the limit over all streams; null: none (`OpenOptions.limit`). */
  setLimit(limit: Limit | null): Promise<void>;

  get terms(): Terms | null;
  observe(value: string | number | null): void;
  follow(read: () => string | number | null): void;
  describe(attributes: Readonly<Record<string, string>>): void;
  status(): Status;

  /** Leave the only stream; the value that was held for it is forgotten. */
  leave(options?: { signal?: AbortSignal }): Promise<boolean>;

  /** The next report of any stream. */
  dueInMs(): Promise<number | null>;

  /**
   * Poll all streams; resolve with what came of all of them, or reject with the fault of one when all were
   * polled. With several streams, what would take longer than `wait` is put off to the next poll.
   */
  poll(wait?: number, signal?: AbortSignal): Promise<Heard>;

  /** Run all streams, side by side. */
  run(
    signal: AbortSignal,
    tell?: (heard: Heard) => unknown,
    complain?: (fault: DeviceError, stream: string) => unknown,
  ): Promise<void>;

  /** Put on disk what can be, and let go of the store. */
  close(): Promise<void>;
}

/**
 * Any error of a device: a code of docs/protocol.md or of the device, and the facts of the case.
 *
 * @example
 * await device.poll().catch((error) => console.warn(error.code, error.facts));
 */
export class DeviceError extends Error {
  constructor(code: string, facts?: Record<string, unknown>);
  readonly code: string;
  readonly facts: Record<string, unknown>;
}

/** The device said no to something that the collector asked, or the collector to the device. */
export class Refused extends DeviceError {}

/** The collector wants something that this device did not, or cannot, agree to. */
export class TermsRefused extends DeviceError {}

/** The ledger cannot be read or written, so the device keeps silent. */
export class LedgerUnusable extends DeviceError {}

/** No answer. Whether the request arrived is not known. */
export class Unreachable extends DeviceError {}

/** The clocks by which a device in a store counts time. */
export interface Clock {
  wallMs(): number;
  steadyMs(): number;
  boot(): string | null;
  /** Whether the steady clock begins anew with each page load. */
  readonly endsWithPage?: boolean;
}

/** A debit with its report; with none where the past is unknown, or its stream was left. */
export interface Entry {
  /** The id of the enrolment; if it was `left`, of every one that is made later. */
  enrolment: number;
  left: boolean;
  t: number;
  round: string;
  /** Of the terms that it was made under. */
  version: number;
  nano: number;
  report: Uint8Array | null;
  ownMs: number;
  atMs: number;
}

export interface RefusalCount {
  enrolment: number;
  code: string;
  times: number;
  lastMs: number;
  detail: string;
}

/** All that a device remembers: structured data, with bytes as `Uint8Array`. */
export interface Memory {
  format: number;
  commits: number;
  pastKnown: boolean;
  entries: Entry[];
  refusals: RefusalCount[];
  [member: string]: unknown;
}

/** A transaction under way, alone on the memory. */
export interface Change {
  memory: Memory;
  /** Whether the memory is no older copy; if it may be, everything counts as spent. */
  vouchedFor: boolean;
  /** Whether there is something to commit. */
  made: boolean;
}

/** Where a device lives. To read, decide and commit is one transaction, all others locked out. */
export interface Store {
  readonly name: string;
  readonly clock: Clock;
  /** Keep a new memory; refuse if there is one. */
  create(memory: Memory): Promise<void>;
  load(): Promise<Memory>;
  /** Call `act`, which does not wait; resolve when what it changed is on disk. */
  change<T>(act: (change: Change) => T): Promise<T>;
  close(): Promise<void>;
}

/**
 * A device in IndexedDB: for pages, workers and service workers of a secure origin.
 *
 * @example
 * const device = await Device.open(new IndexedDbStore("regions"));
 */
export class IndexedDbStore implements Store {
  constructor(name: string);
  readonly name: string;
  readonly clock: Clock;
  create(memory: Memory): Promise<void>;
  load(): Promise<Memory>;
  change<T>(act: (change: Change) => T): Promise<T>;
  close(): Promise<void>;
  /** Delete a memory that was never enrolled. */
  discard(): Promise<void>;
}

/**
 * A store that forgets everything with the process: for tests.
 *
 * @example
 * const device = await Device.create(new MemoryStore(), { firstInstall: true });
 */
export class MemoryStore implements Store {
  constructor(name?: string);
  readonly name: string;
  readonly clock: Clock;
  create(memory: Memory): Promise<void>;
  load(): Promise<Memory>;
  change<T>(act: (change: Change) => T): Promise<T>;
  close(): Promise<void>;
}
