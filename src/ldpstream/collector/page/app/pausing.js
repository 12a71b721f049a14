/** The button by which an administrator pauses a stream, and lets it go on. */

import * as api from "./api.js";
import { h } from "./dom.js";

export class PauseButton {
  #paused = false;

  /** @param {string} stream @param {(condition: import("./condition.js").Condition) => void} changed */
  constructor(stream, changed) {
    this.stream = stream;
    this.changed = changed;
    this.button = h("button", { type: "button", onclick: () => this.#press() });
    this.said = h("span", { class: "note bad", role: "alert" });
    this.element = h("span", { class: "press" }, this.button, this.said);
  }

  /** @param {string} state of the stream, in one word */
  show(state) {
    this.#paused = state === "paused";
    this.button.textContent = this.#paused ? "Resume the stream" : "Pause the stream";
    this.button.hidden = state === "retired"; // for good
  }

  async #press() {
    this.said.textContent = "";
    this.button.disabled = true;
    try {
      const condition = await api.setPaused(this.stream, !this.#paused);
      this.show(condition.state);
      this.changed(condition);
    } catch (error) {
      this.said.textContent = /** @type {Error} */ (error).message;
    } finally {
      this.button.disabled = false;
    }
  }
}
