/** The levels of privacy that people have chosen: what each promises, and how many report at it. */

import { fill, h, heads } from "./dom.js";
import { duration, epsilon, grouped, percent } from "./format.js";

const HEADS = ["Level", "Promise", "Devices heard in its last window"];

export class Levels {
  /** @param {import("./api.js").Stream} stream @param {import("./view.js").View} view */
  constructor(stream, view) {
    this.stream = stream;
    this.view = view;
    this.levels = stream.versions.find(({ version }) => version === stream.version)?.levels ?? [];
    this.body = h("tbody", {});
    this.element = h(
      "table",
      { class: "plain levels" },
      heads(HEADS),
      this.body,
    );
  }

  /** Whether people have a choice. */
  get several() {
    return this.levels.length > 1;
  }

  draw() {
    const heard = this.view.row?.devices?.levels ?? {};
    const total = Object.values(heard).reduce((sum, one) => sum + one, 0);
    const { interval_ms: interval } = this.stream.terms;
    fill(
      this.body,
      ...this.levels.map((level) => {
        const number = heard[level.name] ?? 0;
        return h(
          "tr",
          {},
          h("th", { scope: "row" }, level.name),
          h("td", {}, `ε ${epsilon(level.epsilon_nano)} in ${duration(level.window * interval)}`),
          h("td", {}, total ? `${percent(number / total, 0)} (${grouped(number)})` : "–"),
        );
      }),
    );
  }
}
