/** The revised history of what is in view: what all reports since then say, asked for as they come. */

import * as api from "./api.js";
import { byLabel } from "./versions.js";

/** @typedef {{values: Float32Array, low: Float32Array, high: Float32Array}} Figures of all labels, NaN where there is none */
/** @typedef {import("./api.js").Change} Change */

const LEAST_PAUSE_MS = 1500;
const PATIENCE = 8; // a collector is asked again after so many times as long as it took

export class Revised {
  #known = "";
  #asking = false;
  /** Of each timestamp. @type {Map<number, Figures>} */ figures = new Map();
  /** @type {Change[]} */ changes = [];

  /**
   * @param {import("./api.js").Stream} stream @param {import("./view.js").View} view @param {() => void} news
   * @param {AbortSignal} signal
   */
  constructor(stream, view, news, signal) {
    this.stream = stream.terms.stream;
    this.ends = stream.unit.ends ?? [0, 1];
    this.isKept = !stream.texts;
    this.view = view;
    this.news = news;
    this.signal = signal;
  }

  /** Ask, unless nothing is new or an answer is on its way: then what is new by then is asked for. */
  async refresh() {
    if (!this.isKept || this.#asking || document.hidden) return;
    this.#asking = true;
    try {
      while (!this.signal.aborted && this.#wanted !== this.#known) {
        const began = performance.now();
        await this.#ask();
        const pause = Math.max(LEAST_PAUSE_MS, PATIENCE * (performance.now() - began));
        await new Promise((done) => setTimeout(done, pause));
      }
    } catch (error) {
      // The lines do without; the next release asks again.
      if (!this.signal.aborted && !(error instanceof api.Unavailable)) throw error;
    } finally {
      this.#asking = false;
    }
  }

  get #wanted() {
    const { from, to } = this.view.range;
    return to ? `${from} ${to} ${this.view.history.lastT}` : "";
  }

  /** By the labels of all versions. @param {import("./api.js").Revised} told @returns {Figures} */
  #placed({ version, values, low, high }) {
    const { labels, places } = this.view.history;
    const placed = (/** @type {number[]} */ numbers) =>
      byLabel(numbers, labels, places.get(version) ?? null);
    return { values: placed(values), low: placed(low), high: placed(high) };
  }

  /** Before the first report there are no figures, though a model would go back for ever. @param {number} t */
  #isHeard(t) {
    const { history } = this.view;
    const row = history.rows[history.at(t)];
    return row?.t === t && !row.unheard;
  }

  /**
   * Whether it says anything: intervals as wide as all values are those of somebody who has heard nothing.
   * @param {import("./api.js").Revised} told
   */
  #saysSomething({ low, high }) {
    const [least, most] = this.ends;
    return low.some((one) => one > least) || high.some((one) => one < most);
  }

  async #ask() {
    const [wanted, { from, to }] = [this.#wanted, this.view.range];
    const { figures, changes } = await api.revisedBetween(this.stream, from, to, this.signal);
    this.#known = wanted;
    const telling = [...figures].filter(([t, told]) => this.#isHeard(t) && this.#saysSomething(told));
    this.figures = new Map(telling.map(([t, told]) => [t, this.#placed(told)]));
    this.changes = changes;
    this.news();
  }
}
