/** The randomisers by name: oracles of labels, and those of numbers. */

import { Oue, Subset, Sue } from "./bitmaps.js";
import { Grr, Hadamard } from "./labels.js";
import { Blh, Olh } from "./local_hash.js";
import { Duchi, Hybrid, Piecewise, SquareWave } from "./numbers.js";

/** @typedef {import("./oracle.js").Oracle} Oracle */
/** @typedef {new (size: number, nano: number) => Oracle} Randomiser */

/** @type {Readonly<Record<string, Randomiser>>} */
export const LABELS = Object.freeze({
  grr: Grr,
  sue: Sue,
  oue: Oue,
  blh: Blh,
  olh: Olh,
  subset: Subset,
  hadamard: Hadamard,
});

/** @type {Readonly<Record<string, Randomiser>>} */
export const NUMBERS = Object.freeze({
  duchi: Duchi,
  piecewise: Piecewise,
  hybrid: Hybrid,
  square_wave: SquareWave,
});

/** @type {Readonly<Record<string, Readonly<Record<string, Randomiser>>>>} */
const BY_QUERY = Object.freeze({
  histogram: LABELS,
  mean: NUMBERS,
  distribution: Object.freeze({ square_wave: SquareWave }),
  vocabulary: Object.freeze({ hadamard: Hadamard }),
});

/**
 * @param {string} query @param {unknown} name whether such a stream can have this oracle
 * @returns {name is string}
 */
export const isRandomiser = (query, name) =>
  typeof name === "string" && Object.hasOwn(BY_QUERY, query) && Object.hasOwn(BY_QUERY[query], name);

/**
 * The device half of a randomiser.
 * @param {string} query @param {string} name @param {number} size number of values @param {number} nano
 * @returns {Oracle}
 */
export const randomiserOf = (query, name, size, nano) => new BY_QUERY[query][name](size, nano);
