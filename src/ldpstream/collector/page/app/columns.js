/**
 * Timestamps put together into columns of a picture. A column covers the same timestamps whatever
 * is in view, so it is added up once and kept: moving the view, or one new timestamp, costs only
 * the columns that are new.
 */

/** @typedef {import("./history.js").Row} Row */
/**
 * @typedef {object} Column
 * @property {number} from the first timestamp that it was made of
 * @property {number} rows how many
 * @property {Float32Array} means of all labels; NaN of those that none of its timestamps has
 * @property {number} most the greatest of them
 * @property {boolean} fresh whether any of its timestamps was
 * @property {boolean} missed
 * @property {Uint32Array | null} pixels its colours, for the scale of now
 */

export class Columns {
  /** @type {Map<number, Column>} */ #kept = new Map();
  size = 1;

  /** @param {number} labels */
  constructor(labels) {
    this.labels = labels;
  }

  /**
   * The columns of some rows in a row, at most `most`; null where there is no row.
   * @param {Row[]} rows @param {number} most
   * @returns {{first: number, columns: (Column | null)[]}} `first`: the place of the first
   */
  of(rows, most) {
    const [from, to] = [rows[0].t, rows[rows.length - 1].t];
    const size = Math.max(1, Math.ceil((to - from + 1) / Math.max(1, most - 1)));
    if (size !== this.size) this.#kept.clear();
    this.size = size;
    const first = Math.floor(from / size);
    /** @type {(Column | null)[]} */
    const columns = new Array(Math.floor(to / size) - first + 1).fill(null);
    for (let start = 0; start < rows.length; ) {
      const place = Math.floor(rows[start].t / size);
      let end = start + 1;
      while (end < rows.length && rows[end].t < (place + 1) * size) end += 1;
      columns[place - first] = this.#column(place, rows, start, end);
      start = end;
    }
    this.#forget(first, columns.length);
    return { first, columns };
  }

  /** Colours no longer hold. */
  repaint() {
    for (const column of this.#kept.values()) column.pixels = null;
  }

  /** @param {number} place @param {Row[]} rows @param {number} start @param {number} end */
  #column(place, rows, start, end) {
    const kept = this.#kept.get(place);
    if (kept && kept.from === rows[start].t && kept.rows === end - start) return kept;
    const made = added(rows, start, end, this.labels);
    this.#kept.set(place, made);
    return made;
  }

  /** Keep as much again as is in view. @param {number} first @param {number} number */
  #forget(first, number) {
    if (this.#kept.size <= 3 * number + 100) return;
    for (const place of this.#kept.keys()) {
      if (place < first - number || place > first + 2 * number) this.#kept.delete(place);
    }
  }
}

/** @param {Row[]} rows @param {number} start @param {number} end @param {number} labels @returns {Column} */
function added(rows, start, end, labels) {
  const means = new Float32Array(labels);
  const known = new Uint32Array(labels);
  let [most, fresh, missed] = [0, false, false];
  for (let at = start; at < end; at += 1) {
    const { data } = rows[at];
    for (let label = 0; label < labels; label += 1) {
      if (Number.isNaN(data[label])) continue;
      means[label] += data[label];
      known[label] += 1;
    }
    fresh ||= rows[at].fresh;
    missed ||= rows[at].missed;
  }
  for (let label = 0; label < labels; label += 1) {
    means[label] /= known[label];
    if (means[label] > most) most = means[label];
  }
  return { from: rows[start].t, rows: end - start, means, most, fresh, missed, pixels: null };
}

/** A scale that changes seldom: the next of these times a power of 10. @param {number} most */
export function niceScale(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [1, 1.2, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 10].find((one) => one * power >= most * 0.999);
  return (step ?? 10) * power;
}
