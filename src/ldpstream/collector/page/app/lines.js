/** Live lines of some labels with their interval bands, by uPlot. */

import { h } from "./dom.js";
import { clock, percent } from "./format.js";
import { thinned } from "./history.js";
import { colour, curveColour } from "./theme.js";

/** @typedef {import("./history.js").Row} Row */
/** @typedef {{label: number, slot: number}} Curve a label, and the colour that it has */

/** @type {any} */
const uPlot = /** @type {any} */ (globalThis).uPlot;
const POINTS = 1600;
const STRIP = 7; // of the marks below the lines, in CSS pixels

export class Lines {
  /** @type {any} */ #plot = null;
  /** @type {Row[]} */ #rows = [];
  #built = "";

  /**
   * @param {import("./api.js").Stream} stream @param {import("./view.js").View} view
   */
  constructor(stream, view) {
    this.stream = stream;
    this.view = view;
    /** @type {Curve[]} */ this.curves = [];
    this.tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
    this.box = h("div", {
      class: "chart",
      tabindex: 0,
      role: "application",
      "aria-label": "Lines of the chosen labels",
      "aria-describedby": "keys",
      onkeydown: (/** @type {KeyboardEvent} */ event) => view.onKey(event),
    });
    this.element = h("div", { class: "chart-frame" }, this.box, this.tip);
    new ResizeObserver(() => this.resize()).observe(this.box);
  }

  /** @param {number} t */
  #seconds(t) {
    const { start_ms: start, interval_ms: interval } = this.stream.terms;
    return (start + (t - 1) * interval) / 1000;
  }

  /** @param {number} seconds */
  #timestamp(seconds) {
    const { start_ms: start, interval_ms: interval } = this.stream.terms;
    return (seconds * 1000 - start) / interval + 1;
  }

  get #height() {
    return this.box.clientWidth < 520 ? 240 : 320;
  }

  resize() {
    if (this.#plot && this.box.clientWidth) {
      this.#plot.setSize({ width: this.box.clientWidth, height: this.#height });
    }
  }

  /** Colours have changed. */
  rebuild() {
    this.#built = "";
    this.draw();
  }

  draw() {
    if (!this.box.clientWidth) return;
    this.#rows = this.view.rows;
    const labels = this.stream.terms.labels.length;
    const columns = this.curves.flatMap(({ label }) => [label, labels + label, 2 * labels + label]);
    const { x, curves } = thinned(this.#rows, columns, POINTS);
    const data = [x.map((t) => this.#seconds(t)), ...curves];
    const wanted = this.curves.map(({ label, slot }) => `${label}:${slot}`).join();
    if (this.#plot && wanted === this.#built) this.#plot.setData(data);
    else this.#build(data, wanted);
    this.box.setAttribute("aria-label", this.#inWords());
  }

  #inWords() {
    const row = this.#rows.at(-1);
    if (!row) return "Lines of the chosen labels: no release yet";
    const { labels } = this.stream.terms;
    const values = this.curves.map(({ label }) => `${labels[label]} ${percent(row.data[label])}`);
    return `Lines of the chosen labels, timestamps ${this.#rows[0].t} to ${row.t}. At the end: ${values.join(", ")}`;
  }

  /** @param {any[]} data @param {string} wanted */
  #build(data, wanted) {
    this.#plot?.destroy();
    this.#built = wanted;
    const axis = {
      stroke: colour("muted"),
      grid: { stroke: colour("line"), width: 1 },
      ticks: { show: false },
    };
    this.#plot = new uPlot(
      {
        width: this.box.clientWidth,
        height: this.#height,
        legend: { show: false },
        padding: [10, 26, 0, 0],
        cursor: {
          drag: { x: true, y: false, setScale: false },
          points: { size: 7 },
          bind: { dblclick: () => () => this.view.follow() },
        },
        select: { show: true },
        scales: { x: { time: true }, y: { range: yRange } },
        axes: [
          { ...axis, size: 40, font: FONT, space: 57, values: TIMES },
          {
            ...axis,
            size: 46,
            font: FONT,
            values: (/** @type {any} */ _, /** @type {number[]} */ at) =>
              at.map((one) => percent(one, at[1] - at[0] < 0.01 ? 1 : 0)),
          },
        ],
        series: [{}, ...this.curves.flatMap(({ slot }) => this.#series(slot))],
        bands: this.curves.map(({ slot }, at) => ({
          series: [3 * at + 3, 3 * at + 2],
          fill: curveColour(slot, 0.14),
        })),
        hooks: {
          draw: [() => this.#drawThresholds(), () => this.#drawMarks()],
          setSelect: [(/** @type {any} */ plot) => this.#select(plot)],
          setCursor: [(/** @type {any} */ plot) => this.#point(plot)],
        },
      },
      data,
      this.box,
    );
    const over = /** @type {HTMLElement} */ (this.#plot.over);
    over.addEventListener("click", (event) => {
      if (this.#plot.select.width < 4) {
        const seconds = this.#plot.posToVal(event.offsetX, "x");
        this.view.inspect(Math.round(this.#timestamp(seconds)));
      }
    });
    over.addEventListener("mouseleave", () => (this.tip.hidden = true));
  }

  /** @param {number} slot the line, and the two ends of its band */
  #series(slot) {
    const end = { stroke: "transparent", width: 0, points: { show: false } };
    return [
      {
        stroke: curveColour(slot),
        width: 2,
        points: {
          show: () => this.#rows.length <= 160,
          size: 6,
          stroke: curveColour(slot),
          fill: curveColour(slot),
          // Only what was measured anew gets a point; what is carried over is line alone.
          filter: (/** @type {any} */ _, /** @type {number} */ __, /** @type {boolean} */ show) =>
            show ? this.#rows.flatMap((row, at) => (row.fresh ? [at] : [])) : null,
        },
      },
      end,
      end,
    ];
  }

  /** @param {any} plot */
  #select(plot) {
    const { left, width } = plot.select;
    if (width < 4) return;
    const [from, to] = [left, left + width].map((at) => this.#timestamp(plot.posToVal(at, "x")));
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.view.show(from, to);
  }

  /** @param {any} plot */
  #point(plot) {
    const { left } = plot.cursor;
    if (left === undefined || left < 0 || !this.#rows.length) {
      this.tip.hidden = true;
      return;
    }
    const t = Math.round(this.#timestamp(plot.posToVal(left, "x")));
    const row = this.#rows.find((one) => one.t >= t) ?? this.#rows[this.#rows.length - 1];
    this.tip.replaceChildren(...this.#tipLines(row));
    this.tip.hidden = false;
    const edge = this.box.clientWidth - this.tip.offsetWidth - 8;
    const x = plot.bbox.left / devicePixelRatio + left;
    this.tip.style.left = `${Math.max(0, x + 14 > edge ? x - this.tip.offsetWidth - 14 : x + 14)}px`;
  }

  /** @param {Row} row */
  #tipLines(row) {
    const { labels } = this.stream.terms;
    const kind = row.missed ? "missed" : row.fresh ? "fresh" : "carried over";
    return [
      h("strong", {}, `t ${row.t} · ${clock(this.#seconds(row.t) * 1000)} · ${kind}`),
      ...this.curves.map(({ label, slot }) => {
        const line = h("span", {}, `${labels[label]} ${percent(row.data[label])}`);
        line.style.borderColor = curveColour(slot);
        return line;
      }),
    ];
  }

  /** Dashed, in the colour of the label that the threshold is for. */
  #drawThresholds() {
    const { ctx, bbox } = this.#plot;
    const { labels } = this.stream.terms;
    ctx.save();
    ctx.setLineDash([8, 6]);
    ctx.lineWidth = 1.5 * devicePixelRatio;
    for (const { label, slot } of this.curves) {
      const limit = thresholdOf(this.stream, labels[label]);
      if (limit === null) continue;
      const y = this.#plot.valToPos(limit, "y", true);
      if (y < bbox.top || y > bbox.top + bbox.height) continue;
      ctx.strokeStyle = curveColour(slot);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
    }
    ctx.restore();
  }

  /** Below the lines, a mark a timestamp: tall if fresh, low if carried over, red if missed. */
  #drawMarks() {
    const { ctx, bbox } = this.#plot;
    const rows = this.#rows;
    if (!rows.length) return;
    const tall = STRIP * devicePixelRatio;
    const bottom = bbox.top + bbox.height;
    const place = (/** @type {number} */ t) => this.#plot.valToPos(this.#seconds(t), "x", true);
    const step = rows.length > 1 ? bbox.width / rows.length : bbox.width;
    const width = Math.max(1, Math.min(step * 0.6, 6 * devicePixelRatio));
    const [fresh, carried, missed] = ["accent", "faint", "bad"].map(colour);
    ctx.save();
    for (const row of rows) {
      ctx.fillStyle = row.missed ? missed : row.fresh ? fresh : carried;
      const height = row.fresh || row.missed ? tall : tall / 2.5;
      ctx.fillRect(place(row.t) - width / 2, bottom - height, width, height);
    }
    const { inspected } = this.view;
    if (inspected !== null) {
      ctx.fillStyle = colour("text");
      ctx.fillRect(place(inspected), bbox.top, devicePixelRatio, bbox.height);
    }
    ctx.restore();
  }

  destroy() {
    this.#plot?.destroy();
  }
}

const FONT = "12px system-ui, sans-serif";

/** How uPlot writes times: from so many seconds between ticks, and what a new day adds. */
const TIMES = [
  [86_400 * 28, "{MMM} {YYYY}", null, null, null, null, null, null, 1],
  [86_400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
  [0.001, "{mm}:{ss}.{fff}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
];

/** Room for the noise, and the zero always in sight. */
/** @param {any} _ @param {number} low @param {number} high */
function yRange(_, low, high) {
  if (low === null || !Number.isFinite(low)) return [0, 1];
  const pad = Math.max((high - low) * 0.08, 0.002);
  return [Math.min(0, low - pad), Math.max(high + pad, 0.01)];
}

/**
 * @param {import("./api.js").Stream} stream @param {string} label
 * @returns {number | null} only own members: a label may be called "constructor"
 */
export const thresholdOf = (stream, label) =>
  Object.hasOwn(stream.thresholds ?? {}, label) ? Number(stream.thresholds[label]) : null;
