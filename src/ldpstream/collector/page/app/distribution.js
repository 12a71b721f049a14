/** The distribution of the last release: a column for each bin of the range, with its interval. */

import { h } from "./dom.js";
import { grouped, percent, range } from "./format.js";

export class Distribution {
  /** @type {import("./api.js").Release | undefined} */ #last;
  /** @type {import("./history.js").Group | null} */ #group = null;

  /** @param {import("./api.js").Stream} stream */
  constructor(stream) {
    this.bins = stream.terms.bins ?? 0;
    this.names = stream.versions[0].labels.slice(0, this.bins);
    this.columns = this.names.map(() => h("span", {}, h("i", { class: "bar" }), h("i", { class: "reach" })));
    this.chart = h("div", { class: "distribution", role: "img" }, ...this.columns);
    this.most = h("span", {});
    const [low, high] = /** @type {[number, number]} */ (stream.unit.ends);
    this.element = h(
      "div",
      {},
      this.chart,
      h("p", { class: "note ends" }, h("span", {}, stream.unit.show(low)), this.most, h("span", {}, stream.unit.show(high))),
    );
  }

  /** Show a group of devices, or with null the whole fleet. @param {import("./history.js").Group | null} group */
  show(group) {
    this.#group = group;
    this.draw(this.#last);
  }

  /** @param {import("./api.js").Release} release what it says of the devices that are shown, if anything */
  #figuresIn(release) {
    const { attribute, value } = this.#group ?? {};
    if (attribute === undefined) return release;
    return release.groups?.find((one) => one.attribute === attribute && one.value === value);
  }

  /** @param {import("./api.js").Release | undefined} release */
  draw(release) {
    this.#last = release;
    const found = release && this.#figuresIn(release);
    const unheard = release?.heard_t === 0; // before the first report there are no figures
    this.chart.hidden = !found || unheard;
    if (unheard) this.most.textContent = "no report yet";
    if (!release || !found || unheard) return;
    const { values, low = values, high = values } = found;
    const top = Math.max(0.01, ...high.slice(0, this.bins));
    const length = (/** @type {number} */ share) => `${(100 * share) / top}%`;
    this.columns.forEach((column, bin) => {
      const [bar, reach] = /** @type {any} */ (column.children);
      bar.style.height = length(values[bin]);
      reach.style.bottom = length(low[bin]);
      reach.style.height = length(high[bin] - low[bin]);
      column.title = `${this.names[bin]}: ${percent(values[bin])} (${range(low[bin], high[bin])})`;
    });
    const most = values.slice(0, this.bins).indexOf(Math.max(...values.slice(0, this.bins)));
    const told = `Shares of ${this.bins} bins at t ${grouped(release.t)}; the largest is ${this.names[most]}`;
    this.chart.setAttribute("aria-label", `${told}, ${percent(values[most])}`);
    this.most.textContent = `most: ${this.names[most]}, ${percent(values[most])} (${range(low[most], high[most])})`;
  }
}
