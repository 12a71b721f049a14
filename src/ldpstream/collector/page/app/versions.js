/** The versions of a stream's terms: labels joined by name, and what has changed, in words. */

import { epsilon, grouped } from "./format.js";

/**
 * @typedef {object} Level
 * @property {string} name
 * @property {number} epsilon_nano
 * @property {number} window
 * @property {string} oracle
 */
/**
 * @typedef {object} Version
 * @property {number} version
 * @property {number} from_t the first timestamp that it is in force at
 * @property {string[]} labels
 * @property {string[] | null} called what each label of the version before is called now
 * @property {Level[]} levels the stream's own first
 */
/** The version of terms that have never changed. @param {import("./api.js").Terms} terms @returns {Version} */
export const first = ({ labels = ["mean"] }) => ({
  version: 1,
  from_t: 1,
  labels,
  called: null,
  levels: [],
});

/** @typedef {{t: number, version: number, words: string}} Change where other terms came into force */

/**
 * The labels of all versions: those of the latest first, then those that are gone.
 * @param {Version[]} versions @returns {string[]}
 */
export const joined = (versions) => [
  ...new Set([...versions].reverse().flatMap(({ labels }) => labels)),
];

/**
 * For each version, where its labels are among those that are shown, or null if in the same places.
 * @param {Version[]} versions @param {string[]} [all] what is shown; a label that is not is at -1
 * @returns {Map<number, Int32Array | null>}
 */
export function places(versions, all = joined(versions)) {
  const index = new Map(all.map((label, at) => [label, at]));
  return new Map(
    versions.map(({ version, labels }) => [
      version,
      labels.length === all.length && labels.every((label, at) => label === all[at])
        ? null
        : Int32Array.from(labels, (label) => index.get(label) ?? -1),
    ]),
  );
}

/**
 * Figures of one version by the joined labels; NaN for those that it does not have.
 * @param {ArrayLike<number>} figures @param {number} labels how many are joined
 * @param {Int32Array | null} places of the version
 */
export function byLabel(figures, labels, places) {
  if (!places) return Float32Array.from(figures);
  const placed = new Float32Array(labels).fill(NaN);
  places.forEach((label, at) => label < 0 || (placed[label] = figures[at]));
  return placed;
}

/** @param {Version[]} versions @returns {Change[]} */
export const changes = (versions) =>
  versions.slice(1).map((now, at) => ({
    t: now.from_t,
    version: now.version,
    words: inWords(versions[at], now),
  }));

/** @param {Version} before @param {Version} now */
function inWords(before, now) {
  const told = [...renamed(before, now), ...promised(before.levels, now.levels)];
  return told.join("; ") || "details that no figure shows";
}

/** @param {Version} before @param {Version} now @returns {string[]} */
function renamed(before, now) {
  /** @type {Map<string, string[]>} */ const sources = new Map();
  before.labels.forEach((label, at) => {
    const name = now.called?.[at] ?? label;
    sources.set(name, [...(sources.get(name) ?? []), label]);
  });
  const told = [];
  for (const [name, labels] of sources) {
    const others = labels.filter((label) => label !== name);
    if (!others.length) continue;
    const one = others.length === 1;
    if (labels.includes(name)) told.push(`${listed(others)} joined ${name}`);
    else told.push(one ? `${others[0]} is called ${name} now` : `${listed(others)} became ${name}`);
  }
  const added = now.labels.filter((label) => !sources.has(label));
  return added.length ? [...told, `new: ${listed(added)}`] : told;
}

/** @param {Level[]} before @param {Level[]} now @returns {string[]} */
function promised(before, now) {
  const told = [];
  const known = new Map(before.map((level) => [level.name, level]));
  for (const level of now) {
    const old = known.get(level.name);
    const of = now.length > 1 ? ` of ${level.name}` : "";
    if (!old) {
      told.push(`a new level, ${level.name}`);
      continue;
    }
    if (old.epsilon_nano !== level.epsilon_nano)
      told.push(`ε${of} from ${epsilon(old.epsilon_nano)} to ${epsilon(level.epsilon_nano)}`);
    if (old.window !== level.window)
      told.push(`window${of} from ${grouped(old.window)} to ${grouped(level.window)} timestamps`);
    if (old.oracle !== level.oracle) told.push(`oracle${of} ${level.oracle} in place of ${old.oracle}`);
  }
  return told;
}

const MOST_LISTED = 5;

/** @param {string[]} names */
function listed(names) {
  if (names.length > MOST_LISTED)
    return `${names.slice(0, MOST_LISTED - 1).join(", ")} and ${grouped(names.length - MOST_LISTED + 1)} more`;
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
}
