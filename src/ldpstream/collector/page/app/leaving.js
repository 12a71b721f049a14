/** "This is what leaves": one report, drawn as a device draws it, from a value that the reader chooses. */

import { OTHER } from "../sdk/attributes.js";
import { randomBytes } from "../sdk/bytes.js";
import { HeldValue } from "../sdk/values.js";
import { SystemSource } from "../sdk/randomness.js";
import { Terms } from "../sdk/terms.js";
import { LONGEST_TEXT } from "../sdk/vocabulary.js";
import { announce, choice, field, fill, h } from "./dom.js";
import { epsilon, grouped, hexDigits } from "./format.js";
import { spokenFor } from "./support.js";

const MOST_NAMED = 12;
const KEY_BYTES = 32;
const EXAMPLE = "a text";

export class Leaving {
  /** @param {import("./notice.js").Notice} told */
  static async of(told) {
    const shown = new Leaving(told, await Terms.read(told.terms));
    await shown.#draw();
    return shown;
  }

  /** @param {import("./notice.js").Notice} told @param {Terms} terms */
  constructor(told, terms) {
    this.told = told;
    this.terms = terms;
    this.value = valueOf(terms);
    /** A device's own key decides its group, where there are any. */
    this.key = randomBytes(KEY_BYTES);
    this.attributes = terms.attributes.map(({ name, values }) => choice({ id: `attribute-${name}` }, [...values, OTHER]));
    this.level = told.promises.length > 1 ? choice({ id: "level" }, told.promises.map(({ called }) => called)) : null;
    this.report = h("code", { class: "report" });
    this.meaning = h("p", {});
    this.element = h(
      "form",
      { onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), this.draw()) },
      h("p", {}, "Choose a value. Your browser then does what a device does; nothing is sent from this page."),
      field("value", "A value", this.value),
      ...terms.attributes.map(({ name }, at) => field(`attribute-${name}`, `Its ${name}`, this.attributes[at])),
      this.level ? field("level", "Level of privacy", this.level) : null,
      h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Draw a report")),
      h("p", {}, this.report),
      this.meaning,
    );
  }

  /** Draw a report, and say so to who listens to the page. */
  async draw() {
    announce(`This is what leaves: ${await this.#draw()}`);
  }

  async #draw() {
    const at = this.level ? this.level.selectedIndex : 0;
    const made = this.told.reports[at];
    const terms = await this.terms.atLevel(made.level).seenBy(this.key, this.#described);
    const held = new HeldValue(() => undefined);
    held.observe(this.#chosen());
    const source = new SystemSource();
    const randomiser = terms.randomiser(made.epsilon_nano);
    const report = randomiser.report(held.place(terms, source), source);
    this.report.textContent = hexDigits(report);
    const words = `${report.length} bytes, for ε ${epsilon(made.epsilon_nano)}. ${this.#inWords(randomiser, terms, report)} Draw again: the same value may give another report, and another value the same.`;
    fill(this.meaning, words);
    return words;
  }

  /** What is said of the device, by the names of the attributes. */
  get #described() {
    return Object.fromEntries(this.terms.attributes.map(({ name }, at) => [name, this.attributes[at].value]));
  }

  /**
   * What a report says to who reads it.
   * @param {import("../sdk/oracle.js").Oracle} randomiser @param {Terms} terms @param {Uint8Array} report
   */
  #inWords(randomiser, terms, report) {
    if (terms.vocabulary) return inBuckets(terms, terms.vocabulary, this.value.value);
    const spoken = spokenFor(randomiser, terms, report);
    if (!terms.tags) return inWords(spoken, terms);
    const told = Object.entries(this.#described).map(([name, value]) => `${name} ${value}`);
    return `${inWords(spoken, terms)} Its last byte states openly: ${told.join(", ")}.`;
  }

  #chosen() {
    if (this.terms.vocabulary) return this.value.value || null;
    if (this.value instanceof HTMLSelectElement) return this.value.selectedIndex;
    return this.value.value === "" ? null : Number(this.value.value);
  }
}

/** @param {Terms} terms of an open vocabulary @param {import("../sdk/vocabulary.js").Vocabulary} vocabulary @param {string} text */
function inBuckets(terms, { groups, buckets }, text) {
  const { length } = groups[terms.tag];
  const what = length === null ? "whole texts" : `the first ${length} byte${length > 1 ? "s" : ""} of a text`;
  const place = text ? terms.place(text) : null;
  const held = place === null ? "nothing became a bucket drawn at random" : `yours became bucket ${grouped(place + 1)}`;
  return (
    `The last byte is the group of the device, here ${terms.tag + 1} of ${groups.length}, which its key decides for good: this one reports ${what}. ` +
    `A public hash puts every text into one of ${grouped(buckets)} buckets; ${held}. ` +
    "The other bytes name a set of half of all buckets, to which yours more likely belongs than not: so the report speaks for half of all texts."
  );
}

/** @param {string[] | null} labels @param {Terms} terms */
function inWords(labels, terms) {
  if (labels === null) return "";
  const named = labels.slice(0, MOST_NAMED).join(", ") || "none of them";
  const more = labels.length > MOST_NAMED ? ` and ${labels.length - MOST_NAMED} more` : "";
  return `It speaks for ${named}${more}, of ${terms.size} values.`;
}

/** @param {Terms} terms @returns {HTMLSelectElement | HTMLInputElement} where a value is chosen */
function valueOf(terms) {
  if (terms.vocabulary) return h("input", { id: "value", type: "text", value: EXAMPLE, maxlength: LONGEST_TEXT });
  return terms.labels ? choice({ id: "value" }, terms.labels) : number(terms);
}

/** @param {Terms} terms of numbers */
function number({ range }) {
  const { low, high } = /** @type {import("../sdk/range.js").Range} */ (range);
  const middle = (low + high) / 2;
  return h("input", { id: "value", type: "number", step: "any", value: middle, min: low, max: high });
}
