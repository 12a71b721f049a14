/** The releases that the page holds, in order of t: bounded, and thinned out before they are drawn. */

import { MOST_TEXTS, REST } from "./texts.js";
import { places } from "./versions.js";

/** @typedef {import("./api.js").Release} Release */
/**
 * One timestamp. `data` has the values of all labels, then the low ends, then the high ends; NaN
 * for a label that its terms do not have, and for all while nobody has reported: one over d is no figure.
 * @typedef {object} Row
 * @property {number} t
 * @property {number} atMs
 * @property {boolean} fresh
 * @property {boolean} missed
 * @property {number} asked
 * @property {number} received
 * @property {import("./api.js").Devices} [devices]
 * @property {boolean} unheard whether there was no report at all by then
 * @property {Map<string, Part>} parts of the fleet, by `partKey`
 * @property {Float32Array} whole the figures of the whole fleet
 * @property {Float32Array} data of the part of the fleet that the page shows, which may be all of it
 */
/**
 * What is known of a group of devices with the same value of an attribute.
 * @typedef {object} Part
 * @property {string} attribute
 * @property {string} value
 * @property {number} share of the reports in the last window
 * @property {number} devices heard in the last window
 * @property {string[]} merged values that are too small to be shown by themselves, if they are in this group
 * @property {Float32Array} data as that of a row
 */
/** @typedef {{attribute: string, value: string}} Group */

/** How a release came about, in words. @param {Pick<Row, "fresh" | "missed">} row */
export const kindOf = ({ fresh, missed }) => (missed ? "missed" : fresh ? "fresh" : "carried over");

/** When a timestamp begins, in milliseconds. @param {import("./api.js").Terms} terms @param {number} t */
export const startOf = ({ start_ms: start, interval_ms: interval }, t) => start + (t - 1) * interval;

/** @param {Group} group */
export const partKey = ({ attribute, value }) => `${attribute} ${value}`;

const MOST_ROWS = 12_000;
const MOST_NUMBERS = 12_000_000;
const NUMBERS_PER_REQUEST = 60_000;
const Z90 = 1.6448536269514722; // the interval that holds the truth with probability 0.9

export class History {
  /** @type {Row[]} */ rows = [];

  /** The group of devices that is shown, or null for the whole fleet. @type {Group | null} */ group = null;

  /**
   * @param {number} labels of all versions of the terms; of texts, how many are remembered
   * @param {Map<number, Int32Array | null>} [places] of each version's labels among them
   * @param {{texts?: import("./texts.js").Texts | null, groups?: number}} [more] of an open vocabulary; how
   *   many groups of devices have figures of their own
   */
  constructor(labels, places = new Map([[1, null]]), { texts = null, groups = 0 } = {}) {
    this.labels = labels;
    this.places = places;
    this.texts = texts;
    const numbers = labels * (1 + groups);
    this.mostRows = Math.max(32, Math.min(MOST_ROWS, Math.floor(MOST_NUMBERS / (3 * numbers))));
    this.page = Math.max(16, Math.min(1000, Math.floor(NUMBERS_PER_REQUEST / numbers)));
  }

  /** Show a group of devices, or with null the whole fleet. @param {Group | null} group */
  show(group) {
    this.group = group;
    for (const row of this.rows) row.data = this.#shown(row);
  }

  /** @param {Row} row */
  #shown(row) {
    if (!this.group) return row.whole;
    return row.parts.get(partKey(this.group))?.data ?? gap(this.labels);
  }

  get last() {
    return this.rows.at(-1);
  }

  get lastT() {
    return this.last?.t ?? 0;
  }

  get firstT() {
    return this.rows[0]?.t ?? 0;
  }

  /** Add releases wherever they belong. @param {Release[]} releases @returns {number} how many were new */
  add(releases) {
    const fresh = releases.filter((one) => this.knows(one)).map((one) => this.#row(one));
    const older = fresh.filter((row) => row.t < this.firstT);
    const newer = fresh.filter((row) => row.t > this.lastT);
    if (older.length) this.rows = [...older, ...this.rows];
    for (const row of newer) this.rows.push(row);
    if (this.rows.length > this.mostRows) {
      const excess = this.rows.length - this.mostRows;
      // Of what is too much, the end goes that did not just grow.
      if (newer.length) this.rows.splice(0, excess);
      else this.rows.length = this.mostRows;
    }
    return older.length + newer.length;
  }

  /** Whether the labels of a release are known. @param {Release} release */
  knows({ terms_version: version = 1, values, labels }) {
    if (this.texts) return labels !== undefined && labels.length === values.length;
    const places = this.places.get(version);
    return places !== undefined && values.length === (places?.length ?? this.labels);
  }

  /** @param {Release} release */
  #row(release) {
    const row = rowOf(release, this.labels, this.#placesIn(release));
    row.data = this.#shown(row);
    return row;
  }

  /** @param {Release} release @returns {Int32Array | null} where its labels are, or null if in the same places */
  #placesIn({ t, terms_version: version = 1, labels = [] }) {
    if (!this.texts) return this.places.get(version) ?? null;
    return this.texts.placesOf(labels, t, (place) => {
      for (const { whole } of this.rows) clear(whole, place);
    });
  }

  /** @param {number} t @returns {number} the first row at or after t */
  at(t) {
    let [low, high] = [0, this.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].t < t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** @param {number} from @param {number} to both included @returns {Row[]} */
  between(from, to) {
    return this.rows.slice(this.at(from), this.at(to + 1));
  }
}

/** One for the labels of all versions of a stream's terms. @param {import("./api.js").Stream} stream */
export function historyOf({ labels, versions, texts = null, attributes = [] }) {
  if (texts) return new History(MOST_TEXTS, new Map(), { texts });
  const groups = attributes.reduce((sum, { values }) => sum + values.length + 1, 0);
  return new History(labels.length, places(versions, labels), { groups });
}

/** @param {Release} release @param {number} labels @param {Int32Array | null} places @returns {Row} */
function rowOf(release, labels, places) {
  const { t, at_ms: atMs, fresh, missed, asked, received, devices, rest = null, groups = [] } = release;
  const unheard = release.heard_t === 0;
  const whole = unheard ? gap(labels) : figuresOf(release, labels, places);
  if (rest && !unheard) [whole[REST], whole[labels + REST], whole[2 * labels + REST]] = [rest.value, rest.low, rest.high];
  const parts = new Map(
    groups.map(({ attribute, value, share, devices, merged = [], ...figures }) => {
      const data = figuresOf(figures, labels, places);
      return [partKey({ attribute, value }), { attribute, value, share, devices, merged, data }];
    }),
  );
  return { t, atMs, fresh, missed, asked, received, devices, unheard, parts, whole, data: whole };
}

/** Figures that are not there. @param {number} labels */
const gap = (labels) => new Float32Array(3 * labels).fill(NaN);

/** @param {Float32Array} data of a row @param {number} label @returns {number[]} its figure, and the ends of its interval */
export function figureOf(data, label) {
  const labels = data.length / 3;
  return [0, 1, 2].map((end) => data[end * labels + label]);
}

/** @param {Float32Array} data @param {number} label */
function clear(data, label) {
  const labels = data.length / 3;
  for (const end of [0, 1, 2]) data[end * labels + label] = NaN;
}

/**
 * @param {Pick<Release, "values" | "variance" | "low" | "high">} release @param {number} labels
 * @param {Int32Array | null} places
 */
function figuresOf(release, labels, places) {
  const data = new Float32Array(3 * labels);
  if (places) data.fill(NaN);
  for (let at = 0; at < release.values.length; at += 1) {
    const label = places ? places[at] : at;
    if (label < 0) continue;
    const value = release.values[at];
    const reach = Z90 * Math.sqrt(Math.max(release.variance[at], 0));
    data[label] = value;
    data[labels + label] = release.low?.[at] ?? value - reach;
    data[2 * labels + label] = release.high?.[at] ?? value + reach;
  }
  return data;
}

/**
 * Rows for drawing some labels, at most about `most`: of each bucket of rows, two points with the
 * least and the greatest of every curve, in the order in which they came. Buckets cover the same
 * timestamps whatever is in view, so that a picture that moves does not flicker.
 * @param {Row[]} rows @param {number[]} columns of `data` @param {number} most
 * @param {(-1 | 0 | 1)[]} [ends] of the columns: only the least (-1), or only the greatest (1)
 * @returns {{x: number[], curves: Float64Array[]}} x are timestamps
 */
export function thinned(rows, columns, most, ends = []) {
  const size = Math.ceil(rows.length / Math.max(most / 2, 1));
  if (size <= 2) {
    return {
      x: rows.map((row) => row.t),
      curves: columns.map((column) => Float64Array.from(rows, (row) => row.data[column])),
    };
  }
  const skip = size - (rows[0].t % size); // rows before the first whole bucket
  const buckets = 1 + Math.ceil((rows.length - skip) / size);
  const x = new Array(2 * buckets);
  const curves = columns.map(() => new Float64Array(2 * buckets));
  for (let bucket = 0; bucket < buckets; bucket += 1) {
    const start = bucket ? skip + (bucket - 1) * size : 0;
    const end = Math.min(skip + bucket * size, rows.length);
    x[2 * bucket] = rows[start].t;
    x[2 * bucket + 1] = Math.max(rows[end - 1].t, rows[start].t + 0.5);
    columns.forEach((column, curve) => {
      let [least, most_, leastAt, mostAt] = [Infinity, -Infinity, start, start];
      for (let at = start; at < end; at += 1) {
        const value = rows[at].data[column];
        if (value < least) [least, leastAt] = [value, at];
        if (value > most_) [most_, mostAt] = [value, at];
      }
      if (least > most_) least = most_ = NaN; // no row of the bucket has this label
      if (ends[curve] > 0) least = most_;
      if (ends[curve] < 0) most_ = least;
      const [first, second] = leastAt <= mostAt ? [least, most_] : [most_, least];
      curves[curve][2 * bucket] = first;
      curves[curve][2 * bucket + 1] = second;
    });
  }
  return { x, curves };
}

/**
 * The labels that are largest: on average over some rows, and in the last of them, which counts as
 * much as all.
 * @param {Row[]} rows @param {number} labels @param {number} number @returns {number[]}
 */
export function topLabels(rows, labels, number) {
  const scores = new Float64Array(labels);
  const last = rows.at(-1)?.data ?? scores;
  for (const { data } of rows) {
    for (let at = 0; at < labels; at += 1) scores[at] += (data[at] || 0) / rows.length;
  }
  for (let at = 0; at < labels; at += 1) scores[at] += last[at] || 0;
  return Array.from(scores.keys())
    .sort((a, b) => scores[b] - scores[a] || a - b)
    .slice(0, number);
}

/**
 * The labels of a stream that are largest. Of texts only those that are listed.
 * @param {import("./api.js").Stream} stream @param {Row[]} rows @param {number} number @returns {number[]}
 */
export function largest({ labels, texts }, rows, number) {
  if (!texts) return topLabels(rows, labels.length, number);
  const isListed = (/** @type {number} */ place) => rows.some(({ data }) => !Number.isNaN(data[place]));
  const ranked = topLabels(rows, labels.length, labels.length);
  return ranked.filter((place) => place !== REST && isListed(place)).slice(0, number);
}
