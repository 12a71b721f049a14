/** Numbers and times as people read them. */

/** @param {number} share @param {number} [digits] */
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

/** @param {number} low @param {number} high @returns {string} an interval, in per cent */
export const range = (low, high) => `${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)}`;

/** @param {number} number */
export const grouped = (number) => Math.round(number).toLocaleString("en");

/** @param {number} number up to three digits that matter */
export const short = (number) => Number(number.toPrecision(3)).toLocaleString("en");

/** @param {string} text @returns {string} as a sentence begins */
export const capitalised = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** @param {Uint8Array} bytes @returns {string} their hexadecimal digits, byte by byte */
export const hexDigits = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");

/** @param {number} nano @returns {string} epsilon, exactly */
export const epsilon = (nano) => String(nano / 1e9);

const UNITS = /** @type {[number, string][]} */ ([
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1000, "second"],
]);

/** @param {number} ms @returns {string} as 20 minutes */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const [size, unit] = UNITS.find(([least]) => ms >= least) ?? UNITS[3];
  const number = Number((ms / size).toPrecision(2));
  return `${number} ${unit}${number === 1 ? "" : "s"}`;
}

/** @param {number} ms of the epoch @param {boolean} [day] */
export function clock(ms, day = false) {
  const date = new Date(ms);
  const time = date.toLocaleTimeString("en-GB");
  return day
    ? `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`
    : time;
}
