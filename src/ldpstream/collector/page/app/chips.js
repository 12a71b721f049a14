/** Which labels have a line: the largest by themselves, or those that the reader chose. */

import { fill, h } from "./dom.js";
import { largest } from "./history.js";
import { CURVES, curveColour } from "./theme.js";

const USUAL = 5;

/** @typedef {import("./lines.js").Curve} Curve */

export class Chips {
  /** @type {Curve[]} */ curves = [];
  #automatic = true;
  #drawn = "";
  #known = -1;

  /**
   * @param {import("./api.js").Stream} stream @param {import("./view.js").View} view
   * @param {() => void} onChange
   */
  constructor(stream, view, onChange) {
    this.stream = stream;
    this.view = view;
    this.onChange = onChange;
    this.list = h("ul", { class: "chips", "aria-label": "Labels with a line" });
    this.input = h("input", {
      type: "text",
      list: "labels",
      placeholder: stream.texts ? "Add a text" : "Add a label",
      "aria-label": `Add a ${stream.texts ? "text" : "label"} to the lines`,
      autocomplete: "off",
      hidden: stream.labels.length < 2 && !stream.texts,
      onchange: () => this.#addTyped(),
    });
    this.known = h("datalist", { id: "labels" });
    this.reset = h(
      "button",
      { type: "button", class: "quiet", hidden: true, onclick: () => this.#auto() },
      "Largest",
    );
    this.element = h("div", { class: "chip-row" }, this.list, this.input, this.known, this.reset);
  }

  #auto() {
    this.#automatic = true;
    this.curves = [];
    this.update();
    this.onChange();
  }

  #addTyped() {
    const label = this.stream.labels.indexOf(this.input.value);
    if (label < 0) return;
    this.input.value = "";
    this.#automatic = false;
    if (!this.curves.some((curve) => curve.label === label)) {
      if (this.curves.length === CURVES) this.curves.pop();
      this.curves.push({ label, slot: this.#freeSlot() });
    }
    this.update();
    this.onChange();
  }

  /** @param {number} label */
  #remove(label) {
    this.#automatic = false;
    this.curves = this.curves.filter((curve) => curve.label !== label);
    this.update();
    this.onChange();
  }

  #freeSlot() {
    for (let slot = 0; ; slot += 1)
      if (!this.curves.some((curve) => curve.slot === slot)) return slot;
  }

  /** @param {number} label @returns {string | null} */
  colourOf(label) {
    const curve = this.curves.find((one) => one.label === label);
    return curve ? curveColour(curve.slot) : null;
  }

  /** Follow the stream: the largest have a line, and whoever has one keeps it if that is close. */
  update() {
    if (this.#automatic) this.#choose();
    if (this.stream.texts) this.stream.texts.kept = new Set(this.curves.map(({ label }) => label));
    this.#offer();
    this.reset.hidden = this.#automatic;
    this.#draw();
  }

  /** Offer the labels to add: of texts there may be others by now. */
  #offer() {
    const { labels, texts } = this.stream;
    const changes = texts?.changes ?? 0;
    if (changes === this.#known) return;
    this.#known = changes;
    fill(this.known, ...labels.slice(0, 1000).map((label) => h("option", { value: label })));
  }

  #choose() {
    const number = Math.min(USUAL, this.stream.labels.length);
    const ranked = largest(this.stream, this.view.history.rows.slice(-30), number + 2);
    const kept = ranked.filter((label) => this.curves.some((curve) => curve.label === label));
    const wanted = new Set([...ranked.slice(0, number - 1), ...kept, ...ranked]);
    const chosen = new Set([...wanted].slice(0, number));
    this.curves = this.curves.filter(({ label }) => chosen.delete(label));
    for (const label of chosen) this.curves.push({ label, slot: this.#freeSlot() });
  }

  #draw() {
    const { labels } = this.stream;
    const wanted = this.curves.map(({ label, slot }) => `${label}:${slot}`).join();
    if (wanted !== this.#drawn) {
      this.#drawn = wanted;
      fill(this.list, ...this.curves.map((curve) => this.#chip(curve)));
    }
    const { row } = this.view;
    this.curves.forEach(({ label, slot }, at) => {
      const button = /** @type {HTMLElement} */ (this.list.children[at].firstChild);
      const [dot, name, value] = /** @type {any} */ (button.children);
      dot.style.background = curveColour(slot);
      name.textContent = labels[label];
      value.textContent = row ? this.stream.unit.show(row.data[label]) : "";
    });
  }

  /** @param {Curve} curve */
  #chip({ label }) {
    const name = this.stream.labels[label];
    const button = h(
      "button",
      {
        type: "button",
        class: "chip",
        title: "Take this line away",
        onclick: () => this.#remove(label),
      },
      h("i", { class: "dot" }),
      h("span", {}, name),
      h("b", {}),
      h("span", { class: "unseen" }, "take this line away"),
    );
    return h("li", {}, button);
  }
}
