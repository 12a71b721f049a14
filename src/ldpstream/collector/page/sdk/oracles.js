/** The oracles by name. */

import { Oue, Subset, Sue } from "./bitmaps.js";
import { Grr, Hadamard } from "./labels.js";
import { Blh, Olh } from "./local_hash.js";

/** @typedef {import("./oracle.js").Oracle} Oracle */

export const ORACLES = Object.freeze({
  grr: Grr,
  sue: Sue,
  oue: Oue,
  blh: Blh,
  olh: Olh,
  subset: Subset,
  hadamard: Hadamard,
});

/** @param {unknown} name @returns {name is keyof typeof ORACLES} */
export const isOracle = (name) => typeof name === "string" && Object.hasOwn(ORACLES, name);

/**
 * The device half of an oracle.
 * @param {keyof typeof ORACLES} name @param {number} labels @param {number} nano
 * @returns {Oracle}
 */
export const oracleOf = (name, labels, nano) => new ORACLES[name](labels, nano);
