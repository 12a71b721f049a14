/** The figure of any text, whether or not a release lists it: nobody has to have named it before. */

import { LONGEST_TEXT } from "../sdk/vocabulary.js";
import * as api from "./api.js";
import { announce, field, h, scrolled } from "./dom.js";
import { grouped } from "./format.js";
import { shownText } from "./texts.js";

const MOST_ANSWERS = 8;

export class Lookup {
  /** @param {import("./api.js").Stream} stream @param {AbortSignal} signal */
  constructor(stream, signal) {
    this.stream = stream;
    this.signal = signal;
    this.text = h("input", { id: "lookup-text", type: "text", maxlength: LONGEST_TEXT, autocomplete: "off", required: true });
    this.answers = h("tbody", {});
    this.said = h("p", { class: "note", role: "status" });
    this.element = h(
      "form",
      {
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.#ask(this.text.value);
        },
      },
      field(
        "lookup-text",
        "A text, whether or not it is listed",
        h("div", { class: "row" }, this.text, h("button", { type: "submit" }, "Look up")),
      ),
      scrolled("Texts that were looked up", h("table", { class: "plain" }, this.answers)),
      this.said,
      h("p", { class: "note" }, "From the reports of the last three windows. The figure of a text that nobody holds is as often below 0 as above."),
    );
  }

  /** @param {string} asked */
  async #ask(asked) {
    const { unit, terms } = this.stream;
    try {
      const { t, texts } = await api.figuresOf(terms.stream, asked, this.signal);
      this.said.textContent = "";
      for (const { text, value, low, high } of texts) {
        const name = shownText(text);
        this.answers.prepend(
          h(
            "tr",
            {},
            h("th", { scope: "row", title: name }, name),
            h("td", {}, h("b", {}, unit.show(value))),
            h("td", {}, unit.range(low, high)),
            h("td", {}, `t ${grouped(t)}`),
          ),
        );
        announce(`${name}: ${unit.show(value)}, interval ${unit.range(low, high)}`);
      }
      while (this.answers.children.length > MOST_ANSWERS) this.answers.lastElementChild?.remove();
      this.text.value = "";
    } catch (error) {
      if (this.signal.aborted) return;
      if (!(error instanceof api.Unavailable)) throw error;
      this.said.textContent = error.message;
    }
  }
}
