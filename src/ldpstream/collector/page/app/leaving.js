/** "This is what leaves": one report, drawn as a device draws it, from a value that the reader chooses. */

import { HeldValue } from "../sdk/values.js";
import { SystemSource } from "../sdk/randomness.js";
import { Terms } from "../sdk/terms.js";
import { announce, fill, h } from "./dom.js";
import { epsilon } from "./format.js";
import { spokenFor } from "./support.js";

const MOST_NAMED = 12;

export class Leaving {
  /** @param {import("./notice.js").Notice} told */
  static async of(told) {
    return new Leaving(told, await Terms.read(told.terms));
  }

  /** @param {import("./notice.js").Notice} told @param {Terms} terms */
  constructor(told, terms) {
    this.told = told;
    this.terms = terms;
    this.value = terms.labels ? choice("value", terms.labels) : number(terms);
    this.level = told.promises.length > 1 ? choice("level", told.promises.map(({ called }) => called)) : null;
    this.report = h("code", { class: "report" });
    this.meaning = h("p", {});
    this.element = h(
      "form",
      { onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), this.draw()) },
      h("p", {}, "Choose a value. Your browser then does what a device does; nothing is sent from this page."),
      field("value", "A value", this.value),
      this.level ? field("level", "Level of privacy", this.level) : null,
      h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Draw a report")),
      h("p", {}, this.report),
      this.meaning,
    );
    this.#draw();
  }

  /** Draw a report, and say so to who listens to the page. */
  draw() {
    announce(`This is what leaves: ${this.#draw()}`);
  }

  #draw() {
    const at = this.level ? this.level.selectedIndex : 0;
    const made = this.told.reports[at];
    const terms = this.terms.atLevel(made.level);
    const held = new HeldValue(() => undefined);
    held.observe(this.#chosen());
    const source = new SystemSource();
    const randomiser = terms.randomiser(made.epsilon_nano);
    const report = randomiser.report(held.place(terms, source), source);
    this.report.textContent = [...report].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const words = `${report.length} bytes, for ε ${epsilon(made.epsilon_nano)}. ${inWords(spokenFor(randomiser, terms, report), terms)} Draw again: the same value may give another report, and another value the same.`;
    fill(this.meaning, words);
    return words;
  }

  #chosen() {
    if (this.value instanceof HTMLSelectElement) return this.value.selectedIndex;
    return this.value.value === "" ? null : Number(this.value.value);
  }
}

/** @param {string[] | null} labels @param {Terms} terms */
function inWords(labels, terms) {
  if (labels === null) return "";
  const named = labels.slice(0, MOST_NAMED).join(", ") || "none of them";
  const more = labels.length > MOST_NAMED ? ` and ${labels.length - MOST_NAMED} more` : "";
  return `It speaks for ${named}${more}, of ${terms.size} values.`;
}

/** @param {string} id @param {readonly string[]} texts */
const choice = (id, texts) => h("select", { id }, ...texts.map((text) => h("option", {}, text)));

/** @param {Terms} terms of numbers */
function number({ range }) {
  const { low, high } = /** @type {import("../sdk/range.js").Range} */ (range);
  const middle = (low + high) / 2;
  return h("input", { id: "value", type: "number", step: "any", value: middle, min: low, max: high });
}

/** @param {string} id @param {string} name @param {HTMLElement} input */
const field = (id, name, input) =>
  h("div", { class: "field" }, h("label", { for: id }, name), input);
