/** The page for participants: what is asked of them, what leaves their device, and what is promised. */

import { Unavailable, notice as fetchNotice } from "./api.js";
import { fill, h, heads } from "./dom.js";
import { capitalised } from "./format.js";
import { Leaving } from "./leaving.js";
import { startTheme } from "./theme.js";
import { takeTokenFromFragment } from "./tokens.js";
import { wall } from "./wall.js";

/**
 * How one report is made at a level of privacy.
 * @typedef {{level: string, oracle: string, epsilon_nano: number, bytes: number, how_often: string}} Report
 */
/**
 * @typedef {object} Notice
 * @property {string} stream
 * @property {{who: string, why: string, contact: string, retention: string} | null} notice of the operator
 * @property {string} question
 * @property {import("./api.js").Promised[]} promises
 * @property {Report[]} reports
 * @property {string | null} [attributes] that are sent beside each report, in words of the collector's
 * @property {string} leaving
 * @property {"token" | "public"} enrolment
 * @property {boolean} retired whether the stream has ended
 * @property {string} pin
 * @property {Record<string, any>} terms
 */

const OTHERS =
  "Nothing else is told: a device with another value, or none, says \"other\". What a device says here must not depend on its value.";

const ENDED =
  "This stream has ended: no device sends reports to it any more, and none can join. Below is what it asked and promised.";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const name = decodeURIComponent(location.pathname.split("/").at(-1) ?? "");

async function show() {
  takeTokenFromFragment();
  try {
    const told = await fetchNotice(name);
    document.title = `${told.stream}: for participants`;
    fill(main, ...(await sections(told)));
  } catch (error) {
    fill(main, instead(error));
  }
  main.dataset.shown = "true";
}

/** @param {unknown} error what is shown in place of a notice that cannot be read */
function instead(error) {
  if (error instanceof Unavailable && error.status === 404) {
    return wall(name, "There is no stream of this name, or it is private and needs its token.", show);
  }
  const text = error instanceof Unavailable ? error.message : "something went wrong on this page";
  if (!(error instanceof Unavailable)) console.error(error);
  return h("p", { class: "card", role: "alert" }, `${capitalised(text)}.`);
}

/** @param {Notice} told */
async function sections(told) {
  const leaving = await Leaving.of(told);
  const [own] = told.promises;
  return [
    h("h1", { class: "page-title" }, `Taking part in "${told.stream}"`),
    told.retired ? h("p", { class: "card", role: "note" }, ENDED) : null,
    section("Who asks, and why", ...operator(told)),
    section("What is asked", h("p", {}, told.question), labels(told.terms.labels)),
    told.attributes ? section("What is sent beside it", h("p", {}, told.attributes), h("p", {}, OTHERS)) : null,
    section("This is what leaves", leaving.element),
    section("What is promised", h("p", { class: "promise" }, own.sentence), h("p", {}, own.explanation)),
    told.promises.length > 1 ? section("Levels of privacy", ...levels(told)) : null,
    section("How often", h("p", {}, told.reports[0].how_often)),
    section("How to leave", h("p", {}, told.leaving)),
    section(
      "The pin",
      h("p", {}, "The terms above have this fingerprint. Compare it with the one that your device shows: if they are the same, your device holds the collector to exactly these terms."),
      h("p", {}, h("code", { class: "pin" }, told.pin)),
    ),
  ];
}

/** @param {string} title @param {...import("./dom.js").Child} content */
function section(title, ...content) {
  const id = title.toLowerCase().replaceAll(/[^a-z]+/g, "-");
  return h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), ...content);
}

/** @param {Notice} told */
function operator({ notice }) {
  if (!notice) {
    return [h("p", {}, "The operator of this collector has not stated this. Ask before you take part.")];
  }
  const { who, why, contact, retention } = notice;
  const facts = { "Who asks": who, Why: why, Contact: contact, "What is kept": retention };
  const rows = Object.entries(facts).flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, text)]);
  return [h("dl", { class: "facts" }, ...rows)];
}

/** @param {string[] | undefined} labels none in a stream of numbers or texts */
function labels(labels) {
  if (!labels) return null;
  return h(
    "details",
    { open: labels.length <= 20 },
    h("summary", {}, `The ${labels.length} values`),
    h("ul", { class: "values" }, ...labels.map((label) => h("li", {}, label))),
  );
}

/** @param {Notice} told */
function levels({ promises, reports }) {
  return [
    h("p", {}, "You choose one of these when you join. Your level is not secret: never let your value decide it."),
    h(
      "table",
      { class: "plain" },
      heads(["Level", "Promise", "How often"]),
      h(
        "tbody",
        {},
        ...promises.map(({ called, sentence }, at) =>
          h("tr", {}, h("th", { scope: "row" }, called), h("td", {}, sentence), h("td", {}, reports[at].how_often)),
        ),
      ),
    ),
  ];
}

startTheme();
show();
