/**
 * The strata of a stream, as `protocol/strata.py`: versions of its terms, and levels of privacy, tell its
 * devices apart. Each stratum has rounds of its own, which are named after it.
 */

import { LARGEST_NANO } from "./odds.js";
import { isRandomiser } from "./randomisers.js";
import { LATEST_MS, LONGEST_WINDOW, haveKeys, isObject, whole } from "./wholes.js";

const MOST_LEVELS = 16;
const LATEST_VERSION = 2 ** 31;
/** It must not read like a version. */
const LEVEL = /^(?!v[0-9]+$)[a-z][a-z0-9]{0,15}$/;
const PIN = /^[0-9a-f]{64}$/;
const LEVEL_KEYS = ["epsilon_nano", "name", "oracle", "window"];
const SUCCESSION_KEYS = ["from_t", "pin", "until_t", "version"];

/**
 * A level of privacy that a person may choose in place of the stream's own.
 * @typedef {{name: string, epsilonNano: number, window: number, oracle: string}} Level
 */
/**
 * How terms follow others of the same stream.
 * @typedef {object} Succession
 * @property {string} pin of the predecessor
 * @property {number} version of these terms, from 2; it never goes back
 * @property {number} fromT the first timestamp that they are in force at
 * @property {number} untilT the last timestamp at which reports under the predecessor are counted
 * @property {readonly string[] | null} labels what each label of the predecessor is called now, in its
 *   order, or null if values are numbers
 */

/** @param {unknown} name @returns {name is string} whether a level may have this name */
export const isLevelName = (name) => typeof name === "string" && LEVEL.test(name);

/** @param {unknown} pin @returns {pin is string} whether it is 64 hexadecimal digits, in lower case */
export const isPin = (pin) => typeof pin === "string" && PIN.test(pin);

/** @param {number} version @param {string} level the end of the names of a stratum's rounds */
export const stratumSuffix = (version, level) =>
  (version > 1 ? `-v${version}` : "") + (level ? `-${level}` : "");

/** @param {any} levels @param {Record<string, any>} sent the terms; whether they may have these levels */
export function areLevels(levels, sent) {
  return (
    Array.isArray(levels) &&
    whole(levels.length, 1, MOST_LEVELS) &&
    sent.selection === "slots" && // only with slots has each device a window of its own
    levels.every((one) => isLevel(one, sent)) &&
    new Set(levels.map(({ name }) => name)).size === levels.length
  );
}

/** @param {unknown} level @param {Record<string, any>} sent */
function isLevel(level, { query, interval_ms: intervalMs }) {
  return (
    isObject(level) &&
    haveKeys(level, LEVEL_KEYS) &&
    isLevelName(level.name) &&
    whole(level.epsilon_nano, 1, LARGEST_NANO) &&
    isRandomiser(query, level.oracle) &&
    whole(level.window, 1, LONGEST_WINDOW) &&
    level.window * intervalMs <= LATEST_MS
  );
}

/** @param {unknown} given @param {Record<string, any>} sent the terms; whether they may follow others so */
export function isSuccession(given, { query, labels }) {
  const ofLabels = query === "histogram";
  return (
    isObject(given) &&
    haveKeys(given, ofLabels ? [...SUCCESSION_KEYS, "labels"].sort() : SUCCESSION_KEYS) &&
    isPin(given.pin) &&
    whole(given.version, 2, LATEST_VERSION) &&
    whole(given.from_t, 1, LATEST_MS) &&
    whole(given.until_t, given.from_t - 1, LATEST_MS) &&
    (!ofLabels || (Array.isArray(given.labels) && areAmong(given.labels, labels)))
  );
}

/** @param {unknown[]} names @param {string[]} labels */
function areAmong(names, labels) {
  const known = new Set(labels);
  return names.every((name) => typeof name === "string" && known.has(name));
}

/** @param {Record<string, any>[]} levels @returns {readonly Level[]} */
export const readLevels = (levels) =>
  Object.freeze(
    levels.map(({ name, epsilon_nano: epsilonNano, window, oracle }) =>
      Object.freeze({ name, epsilonNano, window, oracle }),
    ),
  );

/** @param {Record<string, any>} given @returns {Succession} */
export const readSuccession = ({ pin, version, from_t: fromT, until_t: untilT, labels }) =>
  Object.freeze({ pin, version, fromT, untilT, labels: labels ? Object.freeze([...labels]) : null });
