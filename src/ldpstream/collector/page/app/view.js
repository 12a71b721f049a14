/** Which part of a stream is in view: the last so many timestamps, live, or a fixed range. */

const LEAST = 8;

export class View {
  /** @type {Set<() => void>} */ #listeners = new Set();
  /** @type {{from: number, to: number} | null} */ #fixed = null;

  /** @param {import("./history.js").History} history @param {number} span */
  constructor(history, span) {
    this.history = history;
    this.span = span;
    /** The timestamp looked at, or null for the last one. @type {number | null} */
    this.inspected = null;
  }

  /** @param {() => void} listener */
  onChange(listener) {
    this.#listeners.add(listener);
  }

  changed() {
    for (const listener of this.#listeners) listener();
  }

  /** Whether the whole fleet is shown, and not one group of it. */
  get isWhole() {
    return this.history.group === null;
  }

  /** The group that is shown, as alert rules name it; empty: the whole fleet. */
  get group() {
    const { group } = this.history;
    return group ? `${group.attribute}:${group.value}` : "";
  }

  get live() {
    return this.#fixed === null;
  }

  /** @returns {{from: number, to: number}} both included */
  get range() {
    if (this.#fixed) return this.#fixed;
    const to = this.history.lastT;
    return { from: Math.max(1, to - this.span + 1), to };
  }

  get rows() {
    const { from, to } = this.range;
    return this.history.between(from, to);
  }

  /** The row that the bars show. */
  get row() {
    if (this.inspected !== null) {
      const row = this.history.rows[this.history.at(this.inspected)];
      if (row) return row;
    }
    if (this.live) return this.history.last;
    return this.rows.at(-1) ?? this.history.last;
  }

  /** Follow the last `span` timestamps. @param {number} [span] */
  follow(span = this.span) {
    this.span = span;
    this.#fixed = null;
    this.inspected = null;
    this.changed();
  }

  pause() {
    this.show(this.range.from, this.range.to);
  }

  /** @param {number} from @param {number} to */
  show(from, to) {
    let [first, last] = [Math.round(Math.min(from, to)), Math.round(Math.max(from, to))];
    const missing = LEAST - (last - first + 1);
    if (missing > 0)
      [first, last] = [first - Math.floor(missing / 2), last + Math.ceil(missing / 2)];
    const over = last - this.history.lastT;
    if (over > 0) [first, last] = [first - over, last - over];
    this.#fixed = { from: Math.max(1, first), to: Math.max(last, 1) };
    this.changed();
  }

  /** @param {number} factor below 1: closer */
  zoom(factor) {
    const { from, to } = this.range;
    const width = Math.max(LEAST, Math.round((to - from + 1) * factor));
    if (this.live) {
      this.follow(Math.min(width, this.history.mostRows));
      return;
    }
    const middle = (from + to) / 2;
    this.show(middle - width / 2, middle + width / 2 - 1);
  }

  /** @param {number} share of the width, to the right if positive */
  pan(share) {
    const { from, to } = this.range;
    const step = Math.max(1, Math.round((to - from) * Math.abs(share))) * Math.sign(share);
    if (to + step >= this.history.lastT && step > 0) this.follow(to - from + 1);
    else this.show(Math.max(1, from + step), to + Math.max(step, 1 - from));
  }

  /** @param {number | null} t */
  inspect(t) {
    this.inspected = t;
    this.changed();
  }

  /** Keys that move the view. @param {KeyboardEvent} event */
  onKey(event) {
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => this.pan(-0.25),
      ArrowRight: () => this.pan(0.25),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      Home: () => this.show(1, this.range.to - this.range.from + 1),
      End: () => this.follow(),
      Escape: () => this.follow(),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  }
}
