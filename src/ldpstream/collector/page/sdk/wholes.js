/** Checks of numbers and objects that a stranger sent, and the limits of the protocol. */

export const LATEST_MS = 2 ** 52;
export const LONGEST_WINDOW = 2 ** 31;

/**
 * @param {unknown} value @param {number} least @param {number} most
 * @returns {value is number} whether it is an integer in this range that is held exactly
 */
export const whole = (value, least, most) =>
  Number.isSafeInteger(value) &&
  /** @type {number} */ (value) >= least &&
  /** @type {number} */ (value) <= most;

/** @param {unknown} value @returns {value is Record<string, any>} */
export const isObject = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {object} given @param {readonly string[]} names in order; whether it has these keys, and no others */
export const haveKeys = (given, names) => Object.keys(given).sort().join() === names.join();
