/** All labels over time, as a picture: a row for each label, a column for each timestamp. */

import { Columns, niceScale } from "./columns.js";
import { h, sharpen } from "./dom.js";
import { clock, grouped } from "./format.js";
import { startOf } from "./history.js";
import { colour, isDark, ramp } from "./theme.js";
import { onTouch } from "./touch.js";
import { changes } from "./versions.js";

const TALLEST_ROW = 22;
const NAMES_FROM = 11; // height of a row that has room for its name
const MOST_HEIGHT = 420;
const STRIP = 6;

export class HeatMap {
  #left = 0;
  #height = 0;
  /** @type {import("./history.js").Row[]} */ #rows = [];
  /** @type {Columns} */ #columns;
  #scale = 0; // none yet
  #dark = false;
  #shades = new Uint32Array(0);
  #first = 0;
  #number = 1;

  /** @param {import("./api.js").Stream} stream @param {import("./view.js").View} view */
  constructor(stream, view) {
    this.stream = stream;
    this.view = view;
    this.#columns = new Columns(stream.labels.length);
    this.changes = changes(stream.versions);
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
    onTouch(this.canvas, view, () => {
      const { left, width } = this.canvas.getBoundingClientRect();
      return { left: left + this.#left, width: width - this.#left };
    });
  }

  /** The figures are others now. */
  restart() {
    this.#columns = new Columns(this.stream.labels.length);
  }

  draw() {
    const { labels } = this.stream;
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
    const { first, columns } = this.#columns.of(this.#rows, Math.floor(width - this.#left));
    this.#first = first;
    this.#number = columns.length;
    this.#paint(columns);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, this.#left, 0, width - this.#left, this.#height);
    if (named) this.#drawNames(context, row, widest);
    this.#drawMarks(context, columns, width - this.#left);
    const heard = this.#rows.some((one) => !one.unheard);
    this.scale.textContent = heard ? `0 to ${this.stream.unit.show(this.#scale)}` : "no report yet";
    this.canvas.setAttribute("aria-label", this.#inWords());
  }

  #inWords() {
    const [first, last] = [this.#rows[0], this.#rows[this.#rows.length - 1]];
    const { labels } = this.stream;
    let most = 0;
    for (let label = 1; label < labels.length; label += 1) {
      if ((last.data[label] || 0) > (last.data[most] || 0)) most = label;
    }
    return (
      `Heat map of ${labels.length} labels over timestamps ${first.t} to ${last.t}. ` +
      `Highest at the end: ${labels[most]}, ${this.stream.unit.show(last.data[most])}. The figures are in the table.`
    );
  }

  /**
   * A pixel for each label and column; several timestamps that share a column are averaged.
   * @param {(import("./columns.js").Column | null)[]} columns
   */
  #paint(columns) {
    const labels = this.stream.labels.length;
    let most = 0.01;
    for (const column of columns) if (column && column.most > most) most = column.most;
    const [scale, dark] = [niceScale(most), isDark()];
    if (scale !== this.#scale || dark !== this.#dark) {
      [this.#scale, this.#dark, this.#shades] = [scale, dark, shades()];
      this.#columns.repaint();
    }
    const image = new ImageData(columns.length, labels);
    const pixels = new Uint32Array(image.data.buffer);
    columns.forEach((column, at) => {
      if (!column) return;
      column.pixels ??= painted(column.means, scale, this.#shades);
      const own = column.pixels;
      for (let label = 0, to = at; label < labels; label += 1, to += columns.length)
        pixels[to] = own[label];
    });
    this.picture.width = columns.length;
    this.picture.height = labels;
    this.picture.getContext("2d")?.putImageData(image, 0, 0);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} row @param {number} widest */
  #drawNames(context, row, widest) {
    context.fillStyle = colour("muted");
    context.textBaseline = "middle";
    this.stream.labels.forEach((label, at) => {
      context.fillText(clipped(context, label, widest), 0, (at + 0.5) * row);
    });
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {(import("./columns.js").Column | null)[]} columns @param {number} width
   */
  #drawMarks(context, columns, width) {
    const step = width / columns.length;
    const wide = Math.max(step * 0.7, 0.7);
    const kinds = { accent: new Path2D(), faint: new Path2D(), bad: new Path2D() };
    columns.forEach((column, at) => {
      if (!column) return;
      const kind = column.missed ? "bad" : column.fresh ? "accent" : "faint";
      const tall = kind === "faint" ? STRIP / 2.5 : STRIP;
      kinds[kind].rect(this.#left + at * step, this.#height + 3, wide, tall);
    });
    for (const [kind, path] of Object.entries(kinds)) {
      context.fillStyle = colour(kind);
      context.fill(path);
    }
    context.fillStyle = colour("text");
    for (const { t } of this.changes) {
      const place = t / this.#columns.size - this.#first;
      if (place > 0 && place < columns.length)
        for (let y = 0; y < this.#height; y += 6) context.fillRect(this.#left + place * step, y, 1, 3);
    }
    const { inspected } = this.view;
    const at = inspected === null ? -1 : Math.floor(inspected / this.#columns.size) - this.#first;
    if (at < 0 || at >= columns.length) return;
    context.strokeStyle = colour("text");
    context.strokeRect(this.#left + at * step, 0, Math.max(step, 1), this.#height);
  }

  /** @param {MouseEvent} event */
  #placeOf(event) {
    const labels = this.stream.labels.length;
    const share = (event.offsetX - this.#left) / (this.canvas.clientWidth - this.#left);
    const label = Math.floor((event.offsetY / this.#height) * labels);
    if (share < 0 || share >= 1 || label < 0 || label >= labels) return null;
    const t = Math.floor((this.#first + share * this.#number) * this.#columns.size);
    const row = this.#rows.find((one) => one.t >= t);
    return row ? { row, label } : null;
  }

  /** @param {MouseEvent} event */
  #point(event) {
    const place = this.#placeOf(event);
    this.tip.hidden = place === null;
    if (!place) return;
    const { row, label } = place;
    const { labels } = this.stream;
    this.tip.replaceChildren(
      h("strong", {}, `${labels[label]} ${this.stream.unit.show(row.data[label])}`),
      h("span", {}, `t ${grouped(row.t)} · ${clock(startOf(this.stream.terms, row.t))}`),
    );
    const beyond = this.canvas.clientWidth - this.tip.offsetWidth - 8;
    const x = event.offsetX + 14;
    this.tip.style.left = `${x > beyond ? event.offsetX - this.tip.offsetWidth - 14 : x}px`;
    this.tip.style.top = `${Math.max(0, event.offsetY - 20)}px`;
  }
}

/** A power below 1 makes room for small shares, which are most of them. */
const POWER = 0.7;
const SHADES = 1024;

/** @returns {Uint32Array} the colours from 0 to all of the scale, as pixels */
function shades() {
  const colours = ramp();
  const bytes = new Uint8ClampedArray(4 * SHADES);
  for (let at = 0; at < SHADES; at += 1) {
    const shade = 3 * Math.round(255 * (at / (SHADES - 1)) ** POWER);
    bytes.set([colours[shade], colours[shade + 1], colours[shade + 2], 255], 4 * at);
  }
  return new Uint32Array(bytes.buffer);
}

/** @param {Float32Array} means @param {number} scale @param {Uint32Array} known */
function painted(means, scale, known) {
  const pixels = new Uint32Array(means.length);
  for (let label = 0; label < means.length; label += 1) {
    if (Number.isNaN(means[label])) continue; // it was no label then: nothing is painted
    const share = Math.max(0, Math.min(1, means[label] / scale));
    pixels[label] = known[Math.round(share * (SHADES - 1))];
  }
  return pixels;
}

/** @param {CanvasRenderingContext2D} context @param {string} text @param {number} width */
function clipped(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length - 1;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}
