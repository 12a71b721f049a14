/** In which unit the figures of a stream are read: shares in per cent, or numbers of its range. */

import { grouped, percent, range } from "./format.js";
import { Texts } from "./texts.js";
import { first, joined } from "./versions.js";

/**
 * @typedef {object} Unit
 * @property {string} title what the lines show
 * @property {string} about what is released, in a word or two
 * @property {(value: number, digits?: number) => string} show
 * @property {(low: number, high: number) => string} range
 * @property {[number, number] | null} ends of the scale, if they are known beforehand
 * @property {number} least extent of a scale: less would show noise as if it were something
 */

/** What is not there is a dash. @template {any[]} More @param {(value: number, ...more: More) => string} show */
const orDash =
  (show) =>
  (/** @type {number} */ value, /** @type {More} */ ...more) =>
    Number.isNaN(value) ? "–" : show(value, ...more);

/** @param {number} labels @returns {Unit} */
const shares = (labels) => ({
  title: "Frequencies",
  about: `${grouped(labels)} labels`,
  show: orDash(percent),
  range: orDash(range),
  ends: null,
  least: 0.01,
});

/** @param {string} title @param {string} about @param {number} low @param {number} high @returns {Unit} */
function numbers(title, about, low, high) {
  const digits = Math.max(0, 3 - Math.floor(Math.log10(high - low)));
  const show = orDash((/** @type {number} */ value) =>
    value.toLocaleString("en", { maximumFractionDigits: digits }),
  );
  return {
    title,
    about: `${about}, ${show(low)} to ${show(high)}`,
    show,
    range: (from, to) => `${show(from)} to ${show(to)}`,
    ends: [low, high],
    least: (high - low) / 100,
  };
}

/**
 * A stream as the parts of the page know it: what is released has names, and a unit.
 * @param {any} described by the collector @returns {import("./api.js").Stream}
 */
export function withUnit(described) {
  const { terms, versions = [first(terms)] } = described;
  const version = terms.succeeds?.version ?? 1;
  const { attributes = [] } = terms;
  const known = { ...described, versions, version, labels: joined(versions), attributes, texts: null };
  const ends = /** @type {[number, number]} */ ([Number(terms.low), Number(terms.high)]);
  if (terms.query === "distribution") {
    // The bins are shares, and have a part of the page of their own.
    const labels = known.labels.slice(terms.bins);
    const unit = numbers("Quantiles", "distribution", ...ends);
    return { ...known, labels, terms: { ...terms, labels }, unit };
  }
  if (terms.query === "vocabulary") {
    const texts = new Texts();
    const unit = { ...shares(0), title: "Texts", about: "any text" };
    return { ...known, labels: texts.names, texts, terms: { ...terms, labels: [] }, unit };
  }
  if (terms.query !== "mean") return { ...known, unit: shares(terms.labels.length) };
  return { ...known, terms: { ...terms, labels: ["mean"] }, unit: numbers("Mean", "mean", ...ends) };
}
