/** The releases that the page holds, in order of t: bounded, and thinned out before they are drawn. */

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
 * @property {Float32Array} data
 */

const MOST_ROWS = 12_000;
const MOST_NUMBERS = 12_000_000;
const NUMBERS_PER_REQUEST = 60_000;
const Z90 = 1.6448536269514722; // the interval that holds the truth with probability 0.9

export class History {
  /** @type {Row[]} */ rows = [];

  /**
   * @param {number} labels of all versions of the terms
   * @param {Map<number, Int32Array | null>} [places] of each version's labels among them
   */
  constructor(labels, places = new Map([[1, null]])) {
    this.labels = labels;
    this.places = places;
    this.mostRows = Math.max(32, Math.min(MOST_ROWS, Math.floor(MOST_NUMBERS / (3 * labels))));
    this.page = Math.max(16, Math.min(1000, Math.floor(NUMBERS_PER_REQUEST / labels)));
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
  knows({ terms_version: version = 1, values }) {
    const places = this.places.get(version);
    return places !== undefined && values.length === (places?.length ?? this.labels);
  }

  /** @param {Release} release */
  #row(release) {
    return rowOf(release, this.labels, this.places.get(release.terms_version ?? 1) ?? null);
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
export const historyOf = ({ labels, versions }) => 
  new History(labels.length, places(versions, labels));

/** @param {Release} release @param {number} labels @param {Int32Array | null} places @returns {Row} */
function rowOf(release, labels, places) {
  const { t, at_ms: atMs, fresh, missed, asked, received, devices } = release;
  const unheard = release.heard_t === 0;
  const data = unheard ? new Float32Array(3 * labels).fill(NaN) : figuresOf(release, labels, places);
  return { t, atMs, fresh, missed, asked, received, devices, unheard, data };
}

/** @param {Release} release @param {number} labels @param {Int32Array | null} places */
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
