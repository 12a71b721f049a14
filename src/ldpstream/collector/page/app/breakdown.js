/** The groups of a fleet that public attributes tell apart: compared in lines and a table, and shown alone. */

import { OTHER } from "../sdk/attributes.js";
import { choice, fill, h, heads, scrolled } from "./dom.js";
import { grouped, percent } from "./format.js";
import { figureOf, largest, partKey } from "./history.js";
import { Lines } from "./lines.js";
import { Alerts } from "./alerts.js";
import { CURVES, curveColour } from "./theme.js";

/** @typedef {import("./history.js").Row} Row */
/** @typedef {import("./history.js").Part} Part */
/** @typedef {import("./history.js").Group} Group */

const MOST_LABELS = 2000;

export class Breakdown {
  /** Rows by value, for the attribute and label that are chosen. @type {WeakMap<Row, Row>} */ #turned = new WeakMap();
  #drawn = "";
  /** Whether it is settled which label is compared. */ #settled = false;

  /**
   * @param {import("./api.js").Stream} stream @param {import("./view.js").View} view
   * @param {(group: Group | null) => void} show only one group on the whole page, or all devices if null
   */
  constructor(stream, view, show) {
    this.stream = stream;
    this.view = view;
    this.show = show;
    const attributes = stream.attributes.map(({ name }) => name);
    this.attribute = choice({ "aria-label": "Attribute", onchange: () => this.#choose() }, attributes);
    const onchange = () => {
      this.#settled = true;
      this.#choose();
    };
    this.label = choice({ "aria-label": "Figure of", onchange }, stream.labels.slice(0, MOST_LABELS));
    this.frame = h("div", {});
    this.table = scrolled("Groups now, as a table");
    this.note = h("p", { class: "note" });
    this.action = h(
      "div",
      { class: "controls" },
      stream.attributes.length > 1 ? named("Attribute", this.attribute) : null,
      stream.labels.length > 1 ? named("Figure of", this.label) : null,
    );
    this.element = h("div", {}, this.frame, this.table, this.note);
    /** @type {Lines | null} */ this.lines = null;
  }

  /** The values of the attribute that is chosen. */
  get values() {
    const { values } = this.stream.attributes[this.attribute.selectedIndex];
    return [...values, OTHER];
  }

  #choose() {
    this.#turned = new WeakMap();
    this.rebuild();
  }

  /** Colours have changed, or what is compared. */
  rebuild() {
    this.lines?.destroy();
    this.lines = null;
    this.#drawn = "";
    this.draw();
  }

  destroy() {
    this.lines?.destroy();
  }

  draw() {
    const { row, history } = this.view;
    if (!this.#settled && row) {
      this.#settled = true;
      [this.label.selectedIndex] = largest(this.stream, history.rows.slice(-30), 1);
    }
    const lines = (this.lines ??= this.#newLines());
    const shares = this.values.map((value) => this.#part(row, value)?.share ?? -1);
    const ranked = [...shares.keys()].sort((a, b) => shares[b] - shares[a] || a - b);
    const drawn = new Set(ranked.filter((at) => shares[at] >= 0).slice(0, CURVES));
    // A group keeps its colour, whichever are drawn.
    const kept = lines.curves.filter(({ label }) => drawn.delete(label));
    const free = [...Array(CURVES).keys()].filter((slot) => !kept.some((curve) => curve.slot === slot));
    lines.curves = [...kept, ...[...drawn].map((label, at) => ({ label, slot: free[at] }))];
    lines.draw();
    this.#drawTable(row, ranked);
  }

  #newLines() {
    const stream = { ...this.stream, labels: this.values, thresholds: {} };
    const lines = new Lines(stream, this.view, new Alerts(stream), (row) => this.#byValue(row));
    fill(this.frame, lines.element);
    return lines;
  }

  /** @param {Row | undefined} row @param {string} value @returns {Part | undefined} */
  #part(row, value) {
    return row?.parts.get(partKey({ attribute: this.attribute.value, value }));
  }

  /**
   * The same row, with the figure of the label in each group in place of those of all labels.
   * @param {Row} row @returns {Row}
   */
  #byValue(row) {
    const known = this.#turned.get(row);
    if (known) return known;
    const { values } = this;
    const data = new Float32Array(3 * values.length).fill(NaN);
    values.forEach((value, at) => {
      const part = this.#part(row, value);
      if (!part) return;
      figureOf(part.data, this.label.selectedIndex).forEach((one, end) => (data[end * values.length + at] = one));
    });
    const made = { ...row, data };
    this.#turned.set(row, made);
    return made;
  }

  /** @param {Row | undefined} row @param {number[]} ranked places of the values, by their share */
  #drawTable(row, ranked) {
    const { group } = this.view.history;
    const parts = ranked.flatMap((at) => this.#part(row, this.values[at]) ?? []);
    const told = JSON.stringify([row?.t, this.attribute.value, this.label.value, group, this.lines?.curves]);
    if (told === this.#drawn) return; // a button that has the focus keeps it
    const focused = this.table.contains(document.activeElement) ? document.activeElement?.getAttribute("data-group") : null;
    this.#drawn = told;
    const whole = row && { share: 1, devices: row.devices?.heard ?? NaN, data: row.whole };
    fill(
      this.table,
      h(
        "table",
        { class: "plain groups" },
        h("caption", {}, row ? `t ${grouped(row.t)}: ${this.#figure}, by ${this.attribute.value}` : "No release yet."),
        heads(HEADS),
        h(
          "tbody",
          {},
          whole ? this.#line(h("th", { scope: "row" }, "all devices"), whole, null) : null,
          ...parts.map((part) => this.#line(this.#nameOf(part), part, part)),
        ),
      ),
    );
    if (focused) /** @type {HTMLElement | null} */ (this.table.querySelector(`[data-group="${CSS.escape(focused)}"]`))?.focus();
    const none = row && !row.unheard && !parts.length ? "No group is large enough yet to have a figure. " : "";
    const missing = parts.length > CURVES ? `The ${CURVES} largest groups have a line. ` : none;
    this.note.textContent = `${missing}Attributes are public: devices send them as they are, beside their reports.`;
  }

  get #figure() {
    const { labels, unit } = this.stream;
    return labels.length > 1 ? labels[this.label.selectedIndex] : unit.title.toLowerCase();
  }

  /** @param {Part} part */
  #nameOf({ value, merged }) {
    const curve = this.lines?.curves.find(({ label }) => this.values[label] === value);
    const dot = h("i", { class: "dot" });
    if (curve) dot.style.background = curveColour(curve.slot);
    const others = merged.filter((one) => one !== value);
    const note = others.length ? h("small", {}, `merged, too small alone: ${others.join(", ")}`) : null;
    return h("th", { scope: "row" }, dot, value, note && " ", note);
  }

  /**
   * @param {HTMLElement} name @param {Pick<Part, "share" | "devices" | "data">} figures
   * @param {Group | null} group null for all devices
   */
  #line(name, { share, devices, data }, group) {
    const { unit } = this.stream;
    const [value, low, high] = figureOf(data, this.label.selectedIndex);
    const { group: shown } = this.view.history;
    const isShown = (shown && partKey(shown)) === (group && partKey(group));
    const called = group ? `${group.attribute} ${group.value}` : "all devices";
    const press = () => this.show(isShown ? null : group && { attribute: group.attribute, value: group.value });
    return h(
      "tr",
      {},
      name,
      h("td", {}, h("b", {}, unit.show(value))),
      h("td", {}, Number.isNaN(value) ? "" : unit.range(low, high)),
      h(
        "td",
        {},
        h(
          "button",
          {
            type: "button",
            "aria-pressed": String(isShown),
            "aria-label": `Show only ${called} on this page`,
            "data-group": group ? partKey(group) : "",
            onclick: press,
          },
          group ? "Only" : "All",
        ),
      ),
      h("td", {}, percent(share)),
      h("td", {}, Number.isNaN(devices) ? "–" : grouped(devices)),
    );
  }
}

const HEADS = ["Group", "Figure", "90 % interval", "Show", "Share of reports", "Devices heard"];

/** @param {string} name @param {HTMLElement} input */
const named = (name, input) => h("span", { class: "named" }, h("span", { class: "note", "aria-hidden": "true" }, name), input);

/** Says which group the page shows, and leads back to all devices. */
export class Filter {
  /** @param {import("./view.js").View} view @param {() => void} end */
  constructor(view, end) {
    this.view = view;
    this.words = h("span", { role: "status" });
    this.button = h("button", { type: "button", onclick: end }, "Show all devices");
    this.element = h("div", { class: "card filter", hidden: true }, this.words, this.button);
  }

  draw() {
    const { group } = this.view.history;
    this.element.hidden = !group;
    if (!group) return;
    const part = this.view.row?.parts.get(partKey(group));
    const known = part
      ? `${percent(part.share)} of the reports, ${grouped(part.devices)} devices heard`
      : `too small to be shown by itself at this time, and part of "${OTHER}"`;
    const words = `Only ${group.attribute} ${group.value}: ${known}.`;
    if (this.words.textContent !== words) this.words.textContent = words;
  }
}
