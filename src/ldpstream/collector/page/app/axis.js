/** Which values the y axis of the lines shows. */

/**
 * From the least to the greatest figure, with room for a usual interval. Intervals that say next to
 * nothing, as those of a stream's start, do not decide: a single one is not usual, and where all are
 * like that they get no more room than the figures. What is beyond is cut off.
 * @param {Float64Array[]} curves figures, low ends and high ends of each label in turn
 * @param {import("./unit.js").Unit} unit @returns {[number, number] | null} null if there is no figure
 */
export function extentOf(curves, unit) {
  let [least, most, lowest, highest] = [Infinity, -Infinity, Infinity, -Infinity];
  /** @type {number[]} */ const below = [];
  /** @type {number[]} */ const above = [];
  for (let at = 0; at < curves.length; at += 3) {
    const [figures, low, high] = curves.slice(at, at + 3);
    figures.forEach((figure, place) => {
      if (Number.isNaN(figure)) return;
      [least, most] = [Math.min(least, figure), Math.max(most, figure)];
      [lowest, highest] = [Math.min(lowest, low[place]), Math.max(highest, high[place])];
      below.push(figure - low[place]);
      above.push(high[place] - figure);
    });
  }
  if (least > most) return null;
  const room = Math.max(most - bottomOf(least, unit), unit.least);
  return [
    Math.max(lowest, least - Math.min(median(below), room)),
    Math.min(highest, most + Math.min(median(above), room)),
  ];
}

/**
 * Room at the edges, and for thresholds unless they are far away.
 * @param {[number, number] | null} extent @param {{at: number}[]} limits
 * @param {import("./unit.js").Unit} unit @returns {[number, number]}
 */
export function yRange(extent, limits, unit) {
  if (!extent) return unit.ends ?? [0, 1];
  const [low, high] = extent;
  const bottom = bottomOf(low, unit);
  const reach = Math.max(high - bottom, unit.least);
  const near = limits.map(({ at }) => at).filter((at) => Math.abs(at - bottom) <= 2 * reach);
  const [from, to] = [Math.min(bottom, ...near), Math.max(high, ...near)];
  const pad = Math.max((to - from) * 0.08, unit.least / 5);
  return [unit.ends || from < 0 ? from - pad : 0, Math.max(to + pad, from + unit.least)];
}

const LETTER = 7; // CSS pixels, of the font of the axes
const LEAST_WIDTH = 46;

/** @param {string[] | null} ticks @returns {number} the width of a y axis that has room for them */
export const axisWidth = (ticks) =>
  Math.max(LEAST_WIDTH, ...(ticks ?? []).map((text) => 12 + LETTER * text.length));

/** Of shares, the zero is always in sight. @param {number} low @param {import("./unit.js").Unit} unit */
const bottomOf = (low, unit) => (unit.ends ? low : Math.min(0, low));

/** @param {number[]} numbers */
const median = (numbers) => Float64Array.from(numbers).sort()[numbers.length >> 1];
