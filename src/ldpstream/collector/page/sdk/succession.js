/**
 * Whether terms may follow others, as `protocol/succession.py`: a successor never loosens what a person
 * was promised. A device asks `objection` first, and then the policy that its application has set.
 */

import { newIn } from "./attributes.js";
import { DeviceError, shown } from "./problems.js";
import { isPin } from "./strata.js";
import { LONGEST_WINDOW, isObject, whole } from "./wholes.js";
import { LARGEST_NANO, NANO } from "./odds.js";

/** @typedef {import("./terms.js").Terms} Terms */

/** What neither a person nor a filter could follow if it changed, by the names of the JSON. */
const FIXED = /** @type {const} */ ([
  ["stream", "stream"],
  ["interval_ms", "intervalMs"],
  ["start_ms", "startMs"],
  ["query", "query"],
  ["selection", "selection"],
]);

/**
 * Return why a device under `old`, at its level, cannot go over to `new`; null if it can.
 * @param {Terms} old at the device's level @param {Terms} next is taken at the level of that name
 * @returns {string | null}
 */
export function objection(old, next) {
  const { succeeds } = next;
  if (!succeeds || succeeds.pin !== old.pin) return "they do not name the terms they follow";
  if (succeeds.version !== old.version + 1) {
    return `they are version ${succeeds.version}, after version ${old.version}`;
  }
  for (const [name, member] of FIXED) if (next[member] !== old[member]) return `${name} would change`;
  if (!next.hasLevel(old.level)) return `they do not have the level ${old.level}`;
  const atLevel = next.atLevel(old.level);
  if (atLevel.epsilonNano > old.epsilonNano) return "epsilon would grow";
  if (atLevel.window < old.window) return "the window would become shorter";
  const told = newIn(next.attributes, old.attributes);
  if (told) return told;
  if (!old.labels) return sameValues(old, next) ? null : "the range of values would change";
  if (succeeds.labels?.length !== old.labels.length) {
    return "not every label of before is mapped to one of now";
  }
  return null;
}

/** @param {Terms} one @param {Terms} other whether a value can be the same under both */
function sameValues(one, other) {
  if (!one.labels || !other.labels) {
    const [range, known] = [one.range, other.range];
    return (
      range?.low === known?.low && range?.high === known?.high && range?.steps === known?.steps
    );
  }
  const { labels } = other;
  return one.labels.length === labels.length && one.labels.every((label, at) => label === labels[at]);
}

/**
 * Return what labels of all terms before `next` are called in it, given what they were called in those that
 * it follows. A label that it has keeps its own name.
 * @param {Terms} old @param {Terms} next @param {Record<string, string>} renamed
 * @returns {Record<string, string>}
 */
export function renamedBy(old, next, renamed) {
  const names = next.succeeds?.labels;
  if (!old.labels || !next.labels || !names) return renamed;
  const called = new Map(old.labels.map((label, at) => [label, names[at]]));
  const kept = new Set(next.labels);
  const earlier = Object.entries(renamed).map(([label, now]) => [label, called.get(now) ?? now]);
  const all = /** @type {[string, string][]} */ ([...earlier, ...called]);
  return Object.fromEntries(all.filter(([label]) => !kept.has(label)));
}

/** How far an application lets its device go over to new terms by itself. */
export const ACCEPTANCES = Object.freeze(["never", "same-labels", "not-looser"]);

/**
 * What an application agrees to in advance, within floors. Without floors a collector could make a fleet
 * useless step by step: each successor with a smaller epsilon, or a longer window, would be accepted, and
 * none could be taken back.
 * @typedef {object} Agreement
 * @property {"never" | "same-labels" | "not-looser"} [accept]
 * @property {readonly string[]} [pins] of terms that the application has agreed to, whatever `accept` says
 * @property {number} [leastEpsilon]
 * @property {number} [longestWindow] in timestamps; without it, four times the window under which the device
 *   enrols: a promise binds for its span even after its stream was left
 */
/**
 * The same as it is stored.
 * @typedef {{accept: string, pins: string[], leastEpsilonNano: number, longestWindow: number | null}} Agreed
 */

/** @type {Readonly<Agreed>} */
export const NO_POLICY = Object.freeze({
  accept: "never",
  pins: [],
  leastEpsilonNano: 0,
  longestWindow: null,
});
/** How many times longer a window may become, by default, than the one that was agreed to. */
const LONGER = 4;

export class Policy {
  /** @param {Readonly<Agreed>} [agreed] */
  constructor(agreed = NO_POLICY) {
    this.agreed = agreed;
  }

  /** @param {Agreement | string} given by the application; or the value of `accept` alone */
  static read(given) {
    const agreement = /** @type {Agreement} */ (typeof given === "string" ? { accept: given } : given);
    const isAgreement = isObject(agreement) && !Array.isArray(agreement);
    refuseUnless(isAgreement, "accept", given, `{ accept, ... }, or one of ${ACCEPTANCES.join(", ")}`);
    const { accept = "never", pins = [], leastEpsilon = 0, longestWindow = null } = agreement;
    const leastEpsilonNano = Math.ceil(leastEpsilon * NANO - 1e-6);
    refuseUnless(ACCEPTANCES.includes(accept), "accept", accept, `one of ${ACCEPTANCES.join(", ")}`);
    refuseUnless(Array.isArray(pins) && pins.every(isPin), "pins", pins, "pins of 64 hex digits");
    const expected = "a number from 0 to 32";
    refuseUnless(whole(leastEpsilonNano, 0, LARGEST_NANO), "leastEpsilon", leastEpsilon, expected);
    const isWindow = longestWindow === null || whole(longestWindow, 1, LONGEST_WINDOW);
    refuseUnless(isWindow, "longestWindow", longestWindow, "a number of timestamps");
    return new Policy({ accept, pins: [...pins], leastEpsilonNano, longestWindow });
  }

  /**
   * Return the same policy with floors for a device that enrols under these terms. They are absolute:
   * successors that each are a little stricter get no further than one.
   * @param {Terms} terms at the device's level
   */
  within({ window }) {
    const longestWindow = this.agreed.longestWindow ?? Math.min(LONGER * window, LONGEST_WINDOW);
    return new Policy({ ...this.agreed, longestWindow });
  }

  /**
   * Return whether the application agrees to terms to which there is no `objection`.
   * @param {Terms} old @param {Terms} next
   */
  agrees(old, next) {
    const { accept, pins, leastEpsilonNano, longestWindow } = this.within(old).agreed;
    if (pins.includes(next.pin)) return true;
    const { epsilonNano, window } = next.atLevel(old.level);
    if (epsilonNano < leastEpsilonNano || window > Number(longestWindow)) return false;
    if (accept === "same-labels") return sameValues(old, next) && next.other === old.other;
    return accept === "not-looser";
  }
}

/** @param {boolean} holds @param {string} option @param {unknown} given @param {string} expected */
function refuseUnless(holds, option, given, expected) {
  if (!holds) throw new DeviceError("option", { option, given: shown(given), expected });
}
