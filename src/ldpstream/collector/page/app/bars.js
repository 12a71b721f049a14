/** The histogram of one timestamp: bars with error bars, in a table that reads well aloud. */

import { Alerts } from "./alerts.js";
import { fill, h } from "./dom.js";
import { clock, grouped } from "./format.js";
import { figureOf, kindOf, startOf } from "./history.js";
import { REST } from "./texts.js";

const MOST = 24;
const HEADS = ["Label", "Bar", "Share released, and the 90 % interval of the truth"];

/** @param {string} text for those who listen only */
const unseen = (text) => h("span", { class: "unseen" }, text);

export class Bars {
  /** @type {"size" | "domain"} */ #order = "size";
  /** @type {HTMLTableRowElement[]} */ #lines = [];
  /** @type {HTMLTableRowElement} */ #restLine;

  /**
   * @param {import("./api.js").Stream} stream @param {import("./view.js").View} view
   * @param {(label: number) => string | null} colourOf that of a curve, if it has one
   * @param {Alerts} [alerts]
   */
  constructor(stream, view, colourOf, alerts = new Alerts(stream)) {
    this.alerts = alerts;
    this.stream = stream;
    this.view = view;
    this.colourOf = colourOf;
    this.caption = h("caption", {});
    this.body = h("tbody", {});
    this.more = h("p", { class: "note" });
    this.rest = h("tfoot", { hidden: true });
    this.#restLine = newLine(this.rest);
    this.order = h("button", { type: "button", class: "quiet", onclick: () => this.#reorder() });
    this.element = h(
      "div",
      {},
      h(
        "table",
        { class: "bars" },
        this.caption,
        h("colgroup", {}, h("col", { class: "names" }), h("col"), h("col", { class: "figures" })),
        h(
          "thead",
          {},
          h("tr", {}, ...HEADS.map((text) => h("th", { scope: "col" }, unseen(text)))),
        ),
        this.body,
        this.rest,
      ),
      this.more,
    );
    this.#nameOrder();
  }

  #reorder() {
    this.#order = this.#order === "size" ? "domain" : "size";
    this.#nameOrder();
    this.draw();
  }

  #nameOrder() {
    this.order.textContent = this.#order === "size" ? "Largest first" : "In order";
    this.order.setAttribute("aria-label", `Order of labels: ${this.order.textContent}. Change it`);
  }

  draw() {
    const { row } = this.view;
    const { labels } = this.stream;
    if (!row) {
      fill(this.caption, "No release yet.");
      return;
    }
    const kind = row.unheard ? "no report yet" : row.missed ? "missed, carried over" : kindOf(row);
    fill(
      this.caption,
      `t ${grouped(row.t)} · ${clock(startOf(this.stream.terms, row.t), true)} · `,
      h("span", { class: row.fresh ? "mark fresh" : "mark" }, kind),
    );
    const chosen = this.#chosen(row);
    const { unit } = this.stream;
    const [bottom, ceiling] = unit.ends ?? [0, unit.least];
    const figures = chosen.map((label) => figureOf(row.data, label));
    const measured = row.unheard ? [] : figures;
    const high = Math.max(ceiling, ...measured.map(([, , to]) => to));
    const low = Math.min(bottom, ...measured.map(([, from]) => from));
    const limits = chosen.map((label) => this.alerts.limits(labels[label], this.view.group)[0]?.at ?? null);
    const reach = Math.max(high, ...limits.map((limit) => limit ?? high));
    const top = reach + (reach - low) * 0.02;
    const place = (/** @type {number} */ value) => `${(100 * (value - low)) / (top - low)}%`;
    while (this.#lines.length < chosen.length) this.#lines.push(newLine(this.body));
    while (this.#lines.length > chosen.length) this.#lines.pop()?.remove();
    chosen.forEach((label, at) => {
      const [value, from, to] = figures[at];
      const [name, track, figure] = /** @type {any} */ (this.#lines[at].children);
      const [bar, whisker, limit] = track.firstChild.children;
      name.textContent = labels[label];
      name.title = labels[label];
      bar.style.left = place(Math.min(bottom, value));
      bar.style.right = `calc(100% - ${place(Math.max(bottom, value))})`;
      bar.style.background = this.colourOf(label) ?? "";
      whisker.style.left = place(from);
      whisker.style.right = `calc(100% - ${place(to)})`;
      limit.hidden = limits[at] === null;
      limit.style.left = place(limits[at] ?? 0);
      limit.title = `threshold ${unit.show(limits[at] ?? 0)}`;
      bar.hidden = whisker.hidden = row.unheard;
      figure.firstChild.textContent = unit.show(value);
      figure.lastChild.textContent = row.unheard ? "" : unit.range(from, to);
    });
    const hidden = this.#known(row).length - chosen.length;
    this.#drawRest(row);
    if (this.stream.texts && !chosen.length) this.more.textContent = noTextYet(this.stream.terms);
    else this.more.textContent = hidden ? `and ${grouped(hidden)} more ${this.#elsewhere}` : "";
  }

  get #elsewhere() {
    return this.stream.texts ? "texts, in the API" : "labels, in the heat map and the API";
  }

  /**
   * What is not listed: as a figure alone, since it may be larger than all that is.
   * @param {import("./history.js").Row} row
   */
  #drawRest({ data }) {
    const { unit, labels, texts } = this.stream;
    this.rest.hidden = !texts || Number.isNaN(data[REST]);
    if (this.rest.hidden) return;
    const [value, low, high] = figureOf(data, REST);
    const [name, track, figure] = /** @type {any} */ (this.#restLine.children);
    track.firstChild.hidden = true;
    name.textContent = name.title = labels[REST];
    figure.firstChild.textContent = unit.show(value);
    figure.lastChild.textContent = unit.range(low, high);
  }

  /** @param {import("./history.js").Row} row @returns {number[]} */
  #chosen(row) {
    const { data } = row;
    const all = this.#known(row);
    if (this.#order === "size") all.sort((a, b) => data[b] - data[a] || a - b);
    return all.slice(0, MOST);
  }

  /** The labels that the terms of a row have. @param {import("./history.js").Row} row @returns {number[]} */
  #known({ data, unheard }) {
    const all = Array.from(this.stream.labels.keys());
    if (this.stream.texts) return all.filter((place) => place !== REST && !Number.isNaN(data[place]));
    return unheard ? all : all.filter((label) => !Number.isNaN(data[label]));
  }
}

/** @param {import("./api.js").Terms} terms of an open vocabulary */
function noTextYet({ prefixes = [] }) {
  const appear = "No text is listed yet. Texts appear by themselves, once enough devices hold them to stand out from the noise";
  if (!prefixes.length) return "No text is listed yet. Texts that this stream's operator has named appear once they stand out from the noise.";
  return `${appear}: those of at most ${Math.max(...prefixes) + 2} bytes, and longer ones that this stream's operator has named.`;
}

/** @param {HTMLElement} body */
function newLine(body) {
  const line = h(
    "tr",
    {},
    h("th", { scope: "row" }),
    h(
      "td",
      { class: "track-cell", "aria-hidden": "true" },
      h(
        "div",
        { class: "track" },
        h("i", { class: "bar" }),
        h("i", { class: "whisker" }),
        h("i", { class: "limit", hidden: true }),
      ),
    ),
    h("td", { class: "figure" }, h("b", {}), h("small", {})),
  );
  body.append(line);
  return line;
}
