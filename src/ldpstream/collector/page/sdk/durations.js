/** Lengths of time as people write them, as `durations.py`. */

/** @type {Readonly<Record<string, number>>} */
const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
/** @type {Readonly<Record<string, number>>} */
const ALL_MS = {
  ...UNITS_MS,
  w: 7 * UNITS_MS.d,
  week: 7 * UNITS_MS.d,
  day: UNITS_MS.d,
  hour: UNITS_MS.h,
  min: UNITS_MS.m,
  sec: UNITS_MS.s,
};

/** @param {unknown} text such as "24h" @returns {number | null} milliseconds; null if it is no length of time */
export function lengthMs(text) {
  const [, number, unit] = /^([0-9]{1,15}) ?([a-z]+)$/.exec(String(text).trim()) ?? [];
  return unit && Object.hasOwn(ALL_MS, unit) ? Number(number) * ALL_MS[unit] : null;
}

/** @param {number} ms @returns {string} in the largest unit that it is a whole number of */
export function spelled(ms) {
  const [unit, size] = Object.entries(UNITS_MS).find(([, size]) => ms % size === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}
