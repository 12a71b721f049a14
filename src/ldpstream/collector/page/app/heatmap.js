/** All labels over time, as a picture: a row a label, a column a timestamp. */

import { h, sharpen } from "./dom.js";
import { clock, grouped, percent } from "./format.js";
import { colour, ramp } from "./theme.js";

const TALLEST_ROW = 22;
const NAMES_FROM = 11; // height of a row that has room for its name
const MOST_HEIGHT = 420;
const STRIP = 6;

export class HeatMap {
  #left = 0;
  #height = 0;
  /** @type {import("./history.js").Row[]} */ #rows = [];
  #scale = 1;

  /** @param {import("./api.js").Stream} stream @param {import("./view.js").View} view */
  constructor(stream, view) {
    this.stream = stream;
    this.view = view;
    this.canvas = h("canvas", {
      class: "heat",
      role: "img",
      tabindex: 0,
      "aria-describedby": "keys",
      onkeydown: (/** @type {KeyboardEvent} */ event) => view.onKey(event),
      onmousemove: (/** @type {MouseEvent} */ event) => this.#point(event),
      onmouseleave: () => (this.tip.hidden = true),
      onclick: (/** @type {MouseEvent} */ event) => {
        const place = this.#placeOf(event);
        if (place) view.inspect(place.row.t);
      },
    });
    this.tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
    this.scale = h("span", { class: "scale" });
    this.element = h("div", { class: "chart-frame" }, this.canvas, this.tip);
    this.picture = document.createElement("canvas");
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  draw() {
    const { labels } = this.stream.terms;
    this.#rows = this.view.rows;
    const row = Math.max(1, Math.min(TALLEST_ROW, MOST_HEIGHT / labels.length));
    this.#height = Math.round(row * labels.length);
    const { context, width } = sharpen(this.canvas, this.#height + STRIP + 3);
    const named = row >= NAMES_FROM;
    context.font = "12px system-ui, sans-serif";
    const widest = Math.min(width * 0.3, 150);
    this.#left = named
      ? Math.min(widest, Math.max(...labels.map((one) => context.measureText(one).width))) + 10
      : 0;
    if (!this.#rows.length) return;
    this.#paint(width - this.#left);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, this.#left, 0, width - this.#left, this.#height);
    if (named) this.#drawNames(context, row, widest);
    this.#drawMarks(context, width - this.#left);
    this.scale.textContent = `0 to ${percent(this.#scale)}`;
    this.canvas.setAttribute("aria-label", this.#inWords());
  }

  #inWords() {
    const [first, last] = [this.#rows[0], this.#rows[this.#rows.length - 1]];
    const { labels } = this.stream.terms;
    let most = 0;
    for (let label = 1; label < labels.length; label += 1) {
      if (last.data[label] > last.data[most]) most = label;
    }
    return (
      `Heat map of ${labels.length} labels over timestamps ${first.t} to ${last.t}. ` +
      `Highest at the end: ${labels[most]}, ${percent(last.data[most])}. The figures are in the table.`
    );
  }

  /** A pixel a label and column; several timestamps that share a column are averaged. */
  /** @param {number} width */
  #paint(width) {
    const rows = this.#rows;
    const labels = this.stream.terms.labels.length;
    const columns = Math.max(1, Math.min(rows.length, Math.floor(width)));
    const sums = new Float32Array(columns * labels);
    const counts = new Uint16Array(columns);
    rows.forEach((row, at) => {
      const column = Math.floor((at * columns) / rows.length);
      counts[column] += 1;
      for (let label = 0; label < labels; label += 1)
        sums[label * columns + column] += row.data[label];
    });
    let most = 0.01;
    for (let at = 0; at < sums.length; at += 1) {
      sums[at] /= counts[at % columns];
      if (sums[at] > most) most = sums[at];
    }
    this.#scale = most;
    const colours = ramp();
    const image = new ImageData(columns, labels);
    for (let at = 0; at < sums.length; at += 1) {
      // A power below 1 makes room for small shares, which are most of them.
      const shade = 3 * Math.round(255 * Math.max(0, Math.min(1, sums[at] / most)) ** 0.7);
      image.data[4 * at] = colours[shade];
      image.data[4 * at + 1] = colours[shade + 1];
      image.data[4 * at + 2] = colours[shade + 2];
      image.data[4 * at + 3] = 255;
    }
    this.picture.width = columns;
    this.picture.height = labels;
    this.picture.getContext("2d")?.putImageData(image, 0, 0);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} row @param {number} widest */
  #drawNames(context, row, widest) {
    context.fillStyle = colour("muted");
    context.textBaseline = "middle";
    this.stream.terms.labels.forEach((label, at) => {
      context.fillText(clipped(context, label, widest), 0, (at + 0.5) * row);
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width */
  #drawMarks(context, width) {
    const rows = this.#rows;
    const [fresh, carried, missed] = ["accent", "faint", "bad"].map(colour);
    const step = width / rows.length;
    rows.forEach((row, at) => {
      context.fillStyle = row.missed ? missed : row.fresh ? fresh : carried;
      const tall = row.fresh || row.missed ? STRIP : STRIP / 2.5;
      context.fillRect(this.#left + at * step, this.#height + 3, Math.max(step * 0.7, 0.7), tall);
    });
    const at = rows.findIndex((row) => row.t === this.view.inspected);
    if (at < 0) return;
    context.strokeStyle = colour("text");
    context.strokeRect(this.#left + at * step, 0, Math.max(step, 1), this.#height);
  }

  /** @param {MouseEvent} event */
  #placeOf(event) {
    const labels = this.stream.terms.labels.length;
    const width = this.canvas.clientWidth - this.#left;
    const at = Math.floor(((event.offsetX - this.#left) / width) * this.#rows.length);
    const label = Math.floor((event.offsetY / this.#height) * labels);
    const row = this.#rows[at];
    return row && label >= 0 && label < labels ? { row, label } : null;
  }

  /** @param {MouseEvent} event */
  #point(event) {
    const place = this.#placeOf(event);
    this.tip.hidden = place === null;
    if (!place) return;
    const { row, label } = place;
    const { labels, start_ms: start, interval_ms: interval } = this.stream.terms;
    this.tip.replaceChildren(
      h("strong", {}, `${labels[label]} ${percent(row.data[label])}`),
      h("span", {}, `t ${grouped(row.t)} · ${clock(start + (row.t - 1) * interval)}`),
    );
    const beyond = this.canvas.clientWidth - this.tip.offsetWidth - 8;
    const x = event.offsetX + 14;
    this.tip.style.left = `${x > beyond ? event.offsetX - this.tip.offsetWidth - 14 : x}px`;
    this.tip.style.top = `${Math.max(0, event.offsetY - 20)}px`;
  }
}

/** @param {CanvasRenderingContext2D} context @param {string} text @param {number} width */
function clipped(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length - 1;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}
