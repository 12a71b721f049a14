/** A small picture of a few labels over the last timestamps, for a card. */

import { sharpen } from "./dom.js";
import { curveColour } from "./theme.js";

/**
 * @param {HTMLCanvasElement} canvas @param {import("./history.js").Row[]} rows
 * @param {number[]} labels whose curves to draw @param {import("./unit.js").Unit} unit
 */
export function drawSparkline(canvas, rows, labels, unit) {
  const { context, width, height } = sharpen(canvas, 72);
  if (rows.length < 2) return;
  let [low, high] = unit.ends ? [Infinity, -Infinity] : [0, unit.least];
  for (const { data } of rows) {
    for (const label of labels) {
      if (Number.isNaN(data[label])) continue;
      low = Math.min(low, data[label]);
      high = Math.max(high, data[label]);
    }
  }
  high = Math.max(high, low + unit.least);
  const x = (/** @type {number} */ at) => 1 + (at * (width - 6)) / (rows.length - 1);
  const y = (/** @type {number} */ value) =>
    height - 4 - ((value - low) / (high - low)) * (height - 8);
  labels.forEach((label, slot) => {
    context.beginPath();
    let wasThere = false; // where a label is not, there is a gap
    rows.forEach(({ data }, at) => {
      const isThere = !Number.isNaN(data[label]);
      if (isThere && wasThere) context.lineTo(x(at), y(data[label]));
      else if (isThere) context.moveTo(x(at), y(data[label]));
      wasThere = isThere;
    });
    context.strokeStyle = curveColour(slot);
    context.lineWidth = 1.75;
    context.lineJoin = "round";
    context.stroke();
    const last = rows.length - 1;
    context.beginPath();
    context.arc(x(last), y(rows[last].data[label]), 2.5, 0, 7);
    context.fillStyle = curveColour(slot);
    context.fill();
  });
}
