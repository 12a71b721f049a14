/** What a device agreed to at enrolment: the terms of one stream, and the pin that names them. */

import { areAttributes, combinationOf, combinationsOf, readAttributes } from "./attributes.js";
import { sha256, toHex, utf8 } from "./bytes.js";
import { LARGEST_NANO } from "./odds.js";
import { DeviceError, TermsRefused, shown } from "./problems.js";
import { isRandomiser, randomiserOf } from "./randomisers.js";
import { FINEST, Range, areApart, cellsOf } from "./range.js";
import { groupOf } from "./slots.js";
import { areLevels, isSuccession, readLevels, readSuccession, stratumSuffix } from "./strata.js";
import { Tagged } from "./tagged.js";
import { Vocabulary } from "./vocabulary.js";
import { LATEST_MS, LONGEST_WINDOW, haveKeys, isObject, whole } from "./wholes.js";

/** The newest format of terms; format 2 is kept for those without levels and attributes that follow no others. */
export const TERMS_FORMAT = 3;
const LONGEST_INTERVAL_MS = 2 ** 41;
const MOST_LABELS = 2 ** 16;
const LONGEST_LABEL = 1000;
const STREAM = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** @type {Record<string, (value: any, sent: Record<string, any>) => boolean>} */
const CHECKS = {
  attributes: areAttributes,
  bits: (_, sent) => Vocabulary.read(sent) !== null,
  bins: (bins, sent) =>
    whole(bins, 2, FINEST) && sent.steps + 1 === cellsOf(bins) && areApart(Range.read(sent), bins),
  deadline_ms: (ms, sent) => whole(ms, 1, sent.interval_ms),
  epsilon_nano: (nano) => whole(nano, 1, LARGEST_NANO),
  high: (_, sent) => Range.read(sent) !== null,
  interval_ms: (ms) => whole(ms, 1, LONGEST_INTERVAL_MS),
  labels: areLabels,
  levels: areLevels,
  low: (_, sent) => Range.read(sent) !== null,
  oracle: (name, { query }) => isRandomiser(query, name),
  other: (label, { labels }) => typeof label === "string" && labels.includes(label),
  // Texts only with slots: a round says no more than t.
  query: (query, { selection }) =>
    Object.hasOwn(VALUE_KEYS, query) && (query !== "vocabulary" || selection === "slots"),
  prefixes: (_, sent) => Vocabulary.read(sent) !== null,
  salt: (_, sent) => Vocabulary.read(sent) !== null,
  selection: (selection) => SELECTIONS.includes(selection),
  start_ms: (ms) => whole(ms, 0, LATEST_MS),
  steps: (_, sent) => Range.read(sent) !== null,
  stream: isStreamName,
  succeeds: isSuccession,
  version: (version, sent) => version === formatOf(sent),
  window: (window, sent) =>
    whole(window, 1, LONGEST_WINDOW) && window * sent.interval_ms <= LATEST_MS,
};

const COMMON_KEYS = "epsilon_nano interval_ms oracle query start_ms stream version window".split(" ");
/** @type {Record<string, string[]>} */
const VALUE_KEYS = {
  histogram: ["labels"],
  mean: ["high", "low", "steps"],
  distribution: ["bins", "high", "low", "steps"],
  vocabulary: ["bits", "prefixes", "salt"],
};
const SELECTIONS = ["slots", "open", "roster"];
const STRATA_KEYS = ["levels", "succeeds"];
const NEWER_KEYS = [...STRATA_KEYS, "attributes"];

/** @param {Record<string, any>} sent @returns {number} the oldest format that can say all of this */
function formatOf(sent) {
  // Terms of the first version do not say how devices are reached.
  if (!Object.hasOwn(sent, "selection")) return 1;
  return NEWER_KEYS.some((key) => Object.hasOwn(sent, key)) ? TERMS_FORMAT : 2;
}

/**
 * The keys that terms must have, in the order of canonical JSON, given those on which others depend.
 * @param {Record<string, any>} sent
 */
function keysOf(sent) {
  const { query } = sent;
  if (typeof query !== "string" || !Object.hasOwn(VALUE_KEYS, query)) return [];
  const keys = [...COMMON_KEYS, ...VALUE_KEYS[query]];
  if (query === "histogram" && Object.hasOwn(sent, "other")) keys.push("other");
  if (Object.hasOwn(sent, "selection")) {
    keys.push("selection", ...newerKeys(query).filter((key) => Object.hasOwn(sent, key)));
  }
  if (sent.selection === "slots") keys.push("deadline_ms");
  return keys.sort();
}

/** @param {string} query @returns {string[]} what else such terms may have */
function newerKeys(query) {
  if (query === "vocabulary") return [];
  return query === "distribution" ? ["attributes"] : NEWER_KEYS;
}

/** @param {unknown} name @returns {name is string} */
export function isStreamName(name) {
  return typeof name === "string" && STREAM.test(name);
}

/** @param {any} labels strings, each once */
function areLabels(labels) {
  return (
    Array.isArray(labels) &&
    whole(labels.length, 2, MOST_LABELS) &&
    labels.every(isLabel) &&
    new Set(labels).size === labels.length
  );
}

/** @param {any} label no lone surrogates, which UTF-8 cannot write; its length is in code points */
function isLabel(label) {
  return (
    typeof label === "string" &&
    label.length <= 2 * LONGEST_LABEL &&
    !/\p{Surrogate}/u.test(label) &&
    [...label].length <= LONGEST_LABEL
  );
}

/** One version of the public terms of a stream, as they bind a device at a level; it never changes. */
export class Terms {
  /** @type {Record<string, any>} */ #fields;

  /** @param {Record<string, any>} fields @param {string} canonical @param {string} pin @param {string} [level] @param {number} [tag] */
  constructor(fields, canonical, pin, level = "", tag = 0) {
    this.#fields = fields;
    /** @type {string} */ this.stream = fields.stream;
    /** @type {"histogram" | "mean" | "distribution" | "vocabulary"} */ this.query = fields.query;
    /** @type {readonly string[] | null} null in a stream of numbers or texts */
    this.labels = fields.labels ? Object.freeze([...fields.labels]) : null;
    /** @type {Range | null} null in a stream of labels or texts */
    this.range = fields.labels ? null : Range.read(/** @type {any} */ (fields));
    /** @type {Vocabulary | null} null unless a value is any text */
    this.vocabulary = Vocabulary.read(/** @type {any} */ (fields));
    /** @type {number} */ this.epsilonNano = fields.epsilon_nano;
    /** @type {number} */ this.window = fields.window;
    /** @type {number} */ this.intervalMs = fields.interval_ms;
    /** @type {number} */ this.startMs = fields.start_ms;
    /** @type {string} */ this.oracle = fields.oracle;
    /** @type {number | null} the index of the label to report when there is no usable value */
    this.other = fields.other === undefined ? null : fields.labels.indexOf(fields.other);
    /** @type {"slots" | "open" | "roster" | null} null in terms of version 1, which do not say */
    this.selection = fields.selection ?? null;
    /** @type {number | null} with slots: how long after its start a timestamp takes reports */
    this.deadlineMs = fields.deadline_ms ?? null;
    /** The levels of privacy that a person may choose in place of the stream's own. */
    this.levels = readLevels(fields.levels ?? []);
    /** @type {import("./strata.js").Succession | null} null for the first terms of a stream */
    this.succeeds = fields.succeeds ? readSuccession(fields.succeeds) : null;
    /** The public attributes that a report tells of its device. */
    this.attributes = readAttributes(fields.attributes ?? []);
    /** With tags: that of the device by which these terms are seen (`seenBy`); it is not pinned. */
    this.tag = tag;
    /** The level at which these terms are seen; it is not pinned. */
    this.level = level;
    const chosen = this.levels.find(({ name }) => name === level);
    if (chosen) {
      [this.epsilonNano, this.window, this.oracle] = [chosen.epsilonNano, chosen.window, chosen.oracle];
    }
    this.canonical = canonical;
    this.pin = pin;
    Object.freeze(this);
  }

  /**
   * Check what a collector sent. A key that this version does not know may loosen another.
   * @param {unknown} sent @returns {Promise<Terms>}
   */
  static async read(sent) {
    const names = isObject(sent) ? keysOf(sent) : [];
    if (!isObject(sent) || !names.length || !haveKeys(sent, names)) {
      throw new TermsRefused("terms-malformed", { what: `the keys: ${shown(sent)}` });
    }
    for (const name of names) {
      if (!CHECKS[name](sent[name], sent)) {
        throw new TermsRefused("terms-malformed", { what: `${name}: ${shown(sent[name])}` });
      }
    }
    const canonical = JSON.stringify(sorted(sent));
    return new Terms(sent, canonical, toHex(await sha256(utf8(canonical))));
  }

  /** The number of these terms among those of the stream, from 1. */
  get version() {
    return this.succeeds?.version ?? 1;
  }

  /** The format of their JSON. */
  get format() {
    return formatOf(this.#fields);
  }

  /** @param {string} name whether a device may choose this level; the empty name is the stream's own */
  hasLevel(name) {
    return !name || this.levels.some((level) => level.name === name);
  }

  /** @param {string} name @returns {Terms} these terms as they bind a device at a level, under the same pin */
  atLevel(name) {
    if (!this.hasLevel(name)) {
      const known = this.levels.map((level) => level.name).join(", ") || "none";
      throw new DeviceError("level-unknown", { given: shown(name), stream: this.stream, known });
    }
    return new Terms(this.#fields, this.canonical, this.pin, name);
  }

  /**
   * Return these terms as the device of this key sees them, of which this is said. With attributes its
   * reports tell which of them it has; with a vocabulary, its group.
   * @param {Uint8Array} slotKey @param {Readonly<Record<string, unknown>>} described @returns {Promise<Terms>}
   */
  async seenBy(slotKey, described) {
    if (!this.tags) return this;
    const tag = this.vocabulary
      ? await groupOf(slotKey, this.tags)
      : combinationOf(this.attributes, described);
    return new Terms(this.#fields, this.canonical, this.pin, this.level, tag);
  }

  /**
   * How many parts of the fleet reports tell apart by a tag at their end: the groups of a vocabulary, or the
   * combinations of attributes. 0: there is no tag.
   */
  get tags() {
    if (this.vocabulary) return this.vocabulary.groups.length;
    return this.attributes.length ? combinationsOf(this.attributes) : 0;
  }

  /** The end of the names of the rounds under these terms, at this level. */
  get suffix() {
    return stratumSuffix(this.version, this.level);
  }

  /** What the device keeps to: epsilon in any span of w intervals of its own time, in ms. */
  /** @returns {import("./ledger.js").Promised} */
  get promise() {
    // Exact up to 2^53 ms; no difference of two moments reaches a longer span.
    return { epsilonNano: this.epsilonNano, span: this.window * this.intervalMs };
  }

  /** How many values there are: labels, levels of the range, or buckets. */
  get size() {
    if (this.vocabulary) return this.vocabulary.buckets;
    return this.labels?.length ?? /** @type {Range} */ (this.range).levels;
  }

  /** @param {unknown} value a label by its name or index, a number, or a text @returns {number | null} */
  place(value) {
    if (this.vocabulary) return this.vocabulary.bucket(value, this.tag);
    if (this.range) return this.range.level(value);
    const labels = /** @type {readonly string[]} */ (this.labels);
    const index = typeof value === "string" ? labels.indexOf(value) : value;
    return whole(index, 0, labels.length - 1) ? index : null;
  }

  /** @param {number} nano @returns {import("./oracle.js").Oracle} what makes reports with this epsilon */
  randomiser(nano) {
    const inner = randomiserOf(this.query, this.oracle, this.size, nano);
    return this.tags ? new Tagged(inner, this.tag) : inner;
  }

  /** @param {number} ms @returns {number} the timestamp of a moment; below 1 before the start */
  timestampAt(ms) {
    return Math.floor((ms - this.startMs) / this.intervalMs) + 1;
  }

  /** @param {number} t @returns {number} the moment at which it begins */
  startOf(t) {
    return this.startMs + (t - 1) * this.intervalMs;
  }

  /** @param {number} t @returns {number} the moment at which it is over */
  endOf(t) {
    return this.startOf(t + 1);
  }

  /** @param {number} t @returns {number} the moment at which it takes no more reports, with slots */
  deadlineOf(t) {
    return this.startOf(t) + (this.deadlineMs ?? this.intervalMs);
  }
}

/** @param {any} value @returns {any} the same, with the keys of all objects in order */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
