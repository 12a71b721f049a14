/**
 * Public attributes of devices, such as a firmware or a country, as `protocol/attributes.py`: they are
 * declared in the terms with their values, are sent beside every report, and nothing protects them.
 */

import { haveKeys, isObject } from "./wholes.js";

/** The last value of every attribute, for devices whose own is not declared. */
export const OTHER = "other";
/** Values of all attributes together, `OTHER` of each among them. */
const MOST_GROUPS = 32;
/** A tag is one byte. */
const MOST_COMBINATIONS = 256;
const NAME = /^[a-z][a-z0-9_]{0,15}$/;
const VALUE = /^[ -~]{1,64}$/;
const KEYS = ["name", "values"];

/** @typedef {{readonly name: string, readonly values: readonly string[]}} Attribute without the value `OTHER` */

/** @param {any} given @param {Record<string, any>} sent the terms; whether they may have these attributes */
export function areAttributes(given, sent) {
  return (
    sent.selection === "slots" && // only with slots does a report say no more than its tag
    Array.isArray(given) &&
    given.length > 0 &&
    given.every(isAttribute) &&
    new Set(given.map(({ name }) => name)).size === given.length &&
    given.reduce((sum, { values }) => sum + values.length + 1, 0) <= MOST_GROUPS &&
    combinationsOf(given) <= MOST_COMBINATIONS
  );
}

/** @param {unknown} given */
function isAttribute(given) {
  if (!isObject(given) || !haveKeys(given, KEYS)) return false;
  const { name, values } = given;
  return (
    typeof name === "string" &&
    NAME.test(name) &&
    Array.isArray(values) &&
    values.length > 0 &&
    values.every((value) => typeof value === "string" && VALUE.test(value) && value !== OTHER) &&
    new Set(values).size === values.length
  );
}

/** @param {readonly Attribute[]} attributes @returns {readonly Attribute[]} */
export const readAttributes = (attributes) =>
  Object.freeze(
    attributes.map(({ name, values }) => Object.freeze({ name, values: Object.freeze([...values]) })),
  );

/** @param {readonly Attribute[]} attributes how many combinations of values there are */
export const combinationsOf = (attributes) =>
  attributes.reduce((product, { values }) => product * (values.length + 1), 1);

/**
 * Return why a device that tells `earlier` ones cannot go over to these; null if it can. It may tell fewer
 * attributes or values than before, and none that is new.
 * @param {readonly Attribute[]} attributes @param {readonly Attribute[]} earlier @returns {string | null}
 */
export function newIn(attributes, earlier) {
  for (const { name, values } of attributes) {
    const known = earlier.find((one) => one.name === name);
    if (!known) return `the attribute ${name} is new`;
    const value = values.find((one) => !known.values.includes(one));
    if (value !== undefined) return `the value ${quoted(value)} of the attribute ${name} is new`;
  }
  return null;
}

/** @param {string} value of printable ASCII, in the quotes that Python gives it */
function quoted(value) {
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  return quote + value.replaceAll("\\", "\\\\").replaceAll(quote, `\\${quote}`) + quote;
}

/**
 * Return the index of the combination of a device of which this is said; what is not declared, or not said,
 * counts as `OTHER`.
 * @param {readonly Attribute[]} attributes @param {Readonly<Record<string, unknown>>} described
 */
export function combinationOf(attributes, described) {
  return attributes.reduce((index, { name, values }) => {
    const said = Object.hasOwn(described, name) ? described[name] : OTHER;
    const place = values.indexOf(/** @type {string} */ (said));
    return index * (values.length + 1) + (place < 0 ? values.length : place);
  }, 0);
}
