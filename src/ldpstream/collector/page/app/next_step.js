/** Why a stream is not live, and what whoever runs it does next. */

import { base } from "./api.js";
import { fill, h, withCode } from "./dom.js";
import { grouped } from "./format.js";

/** @typedef {{say: string, run?: string[]}} Step `run`: commands */

const MOST_DEVICES = 2000; // that one process runs at ease
const SOURCE_OF_NUMBERS = "meter";
const SOURCE_OF_TEXTS = "words:texts=1000";

export class NextStep {
  #told = "";

  /** @param {import("./api.js").Stream} stream */
  constructor(stream) {
    this.stream = stream;
    this.why = h("p", {});
    this.step = h("div", {});
    this.element = h(
      "section",
      { class: "card next", "aria-label": "What to do next", hidden: true },
      this.why,
      this.step,
    );
  }

  /** @param {any} status as of /v1/streams/{stream}/status */
  heard(status) {
    const step = stepOf(status, this.stream);
    this.element.hidden = !step;
    if (!step) return;
    fill(this.why, h("b", {}, `${status.state}: `), status.why);
    const told = JSON.stringify(step);
    if (told === this.#told) return; // whoever copies a command is not interrupted
    this.#told = told;
    fill(
      this.step,
      h("p", {}, ...withCode(step.say)),
      step.run ? h("pre", { tabindex: 0 }, step.run.join("\n")) : null,
    );
  }
}

/** @param {any} status @param {import("./api.js").Stream} stream @returns {Step | null} null if there is nothing to do */
export function stepOf({ state, why = "", engine }, stream) {
  const { population, population_follows: follows } = stream;
  const fewer = stream.unit.ends || stream.texts ? "" : ", fewer labels";
  const isWide = follows || why.includes("interval"); // though as many report as are expected
  switch (state) {
    case "waiting":
      return {
        say: "No device takes part yet. To try the stream out, add devices, with the enrolment token that `ldpstream serve` names; or let this browser join, below.",
        run: ["export LDPSTREAM_ENROLMENT_TOKEN=$(cat ldpstream-data/enrolment.secret)", fleet(stream)],
      };
    case "silent":
      return {
        say: "The figures below are those of the last report, with intervals that widen. Check whether devices are running and can reach this address; what was refused is listed under Privacy.",
      };
    case "thin":
      return {
        say: isWide
          ? `More devices${fewer} or a longer interval make the figures more precise: \`ldpstream plan\` tells by how much.`
          : `The file expects ${grouped(population)} devices. If there are fewer, write population = "auto" and reload the file:`,
        run: isWide ? undefined : ["ldpstream reload stream.toml"],
      };
    case "behind":
      return engine && !engine.alive
        ? {
            say: "No engine counts the reports, which are kept meanwhile. Start one:",
            run: ["ldpstream engine local --config stream.toml"],
          }
        : { say: "It catches up by itself, once the store or the engine is as fast as the stream. The log of the collector says more." };
    case "failing":
      return { say: "It tries again by itself. The log of the collector says more." };
    case "paused":
      return {
        say: "If the file pauses the stream, remove `paused = true` and run `ldpstream reload`; if an administrator paused it, resume it here with the admin token, or with",
        run: [`ldpstream resume stream.toml ${stream.terms.stream}`],
      };
    case "retired":
      return { say: "No device reports any more, and none can join. What was released stays, and can still be read and exported." };
    default:
      return null;
  }
}

/** The command that adds devices to try a stream out. @param {import("./api.js").Stream} stream */
function fleet({ terms, population, unit, texts }) {
  const labels = texts ? SOURCE_OF_TEXTS : `zipf:labels=${terms.labels.length}`;
  const source = unit.ends ? SOURCE_OF_NUMBERS : labels;
  const devices = Math.min(population, MOST_DEVICES);
  return `ldpstream fleet --collector ${location.origin}${base()} \\\n  --name ${terms.stream} --devices ${devices} --stream ${source}`;
}
