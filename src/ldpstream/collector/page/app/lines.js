/** Live lines of some labels with their interval bands, by uPlot. */

import { Alerts } from "./alerts.js";
import { axisWidth, extentOf, yRange } from "./axis.js";
import { h } from "./dom.js";
import { clock } from "./format.js";
import { kindOf, startOf, thinned } from "./history.js";
import { colour, curveColour } from "./theme.js";
import { onTouch } from "./touch.js";
import { changes } from "./versions.js";

/** @typedef {import("./history.js").Row} Row */
/** @typedef {{label: number, slot: number}} Curve a label, and the colour that it has */

/** @type {any} */
const uPlot = /** @type {any} */ (globalThis).uPlot;
const DENSE = 2000; // from so many timestamps on, lines are thin
const DOTS = 400; // up to so many timestamps, releases are dots beside the revised line
const NEAR = 16; // thresholds so close to each other are named side by side, in CSS pixels
const STRIP = 7; // of the marks below the lines, in CSS pixels

export class Lines {
  /** @type {any} */ #plot = null;
  /** @type {Row[]} */ #rows = [];
  #built = "";
  /** Of what is drawn. @type {[number, number] | null} */ #extent = null;

  /**
   * @param {import("./api.js").Stream} stream @param {import("./view.js").View} view
   * @param {Alerts} [alerts]
   * @param {(row: Row) => Row} [turned] rows with the figures of something other than the stream's labels
   */
  constructor(stream, view, alerts = new Alerts(stream), turned = undefined) {
    this.stream = stream;
    this.turned = turned;
    this.called = turned ? "Lines of the groups" : "Lines of the chosen labels";
    this.view = view;
    this.alerts = alerts;
    this.changes = changes(stream.versions);
    /** @type {Curve[]} */ this.curves = [];
    /** @type {import("./revised.js").Revised | null} */
    this.revised = null;
    /** Known to a demonstration only. @type {import("./truth.js").Truth | null} */
    this.truth = null;
    this.tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
    this.box = h("div", {
      class: "chart",
      tabindex: 0,
      role: "application",
      "aria-label": this.called,
      "aria-describedby": "keys",
      onkeydown: (/** @type {KeyboardEvent} */ event) => view.onKey(event),
    });
    this.element = h("div", { class: "chart-frame" }, this.box, this.tip);
    new ResizeObserver(() => this.resize()).observe(this.box);
    onTouch(this.box, view, () => {
      const { left, width } = (this.#plot?.over ?? this.box).getBoundingClientRect();
      return { left, width };
    });
  }

  /** @param {number} t */
  #seconds(t) {
    return startOf(this.stream.terms, t) / 1000;
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
    this.#rows = this.turned ? this.view.rows.map(this.turned) : this.view.rows;
    const labels = this.turned ? this.stream.labels.length : this.view.history.labels;
    const columns = this.curves.flatMap(({ label }) => [label, labels + label, 2 * labels + label]);
    const ends = /** @type {(-1 | 0 | 1)[]} */ (columns.map((_, at) => [0, -1, 1][at % 3]));
    const { x, curves } = thinned(this.#rows, columns, this.box.clientWidth, ends);
    this.#extent = extentOf(curves, this.stream.unit);
    const data = [x.map((t) => this.#seconds(t)), ...curves.map(withGaps)];
    const dense = this.#rows.length > DENSE;
    const wanted = `${dense} ${this.#isRevised} ${this.curves.map(({ label, slot }) => `${label}:${slot}`).join()}`;
    if (this.#plot && wanted === this.#built) this.#plot.setData(data);
    else this.#build(data, wanted);
    this.box.setAttribute("aria-label", this.#inWords());
  }

  get #isRevised() {
    return this.#figures.size > 0;
  }

  /** What all reports by now say of the whole fleet. */
  get #figures() {
    return (this.view.isWhole && this.revised?.figures) || NONE;
  }

  #inWords() {
    const row = this.#rows.at(-1);
    if (!row) return `${this.called}: no release yet`;
    const { labels } = this.stream;
    const here = this.curves.filter(({ label }) => !Number.isNaN(row.data[label]));
    const values = here.map(({ label }) => `${labels[label]} ${this.stream.unit.show(row.data[label])}`);
    return `${this.called}, timestamps ${this.#rows[0].t} to ${row.t}. At the end: ${values.join(", ")}`;
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
        scales: {
          x: { time: true },
          y: {
            range: () => yRange(this.#extent, this.#limits, this.stream.unit),
          },
        },
        axes: [
          { ...axis, size: 40, font: FONT, space: 57, values: TIMES },
          {
            ...axis,
            size: (/** @type {any} */ _, /** @type {string[] | null} */ ticks) => axisWidth(ticks),
            font: FONT,
            values: (/** @type {any} */ _, /** @type {number[]} */ at) =>
              at.map((one) => this.stream.unit.show(one, at[1] - at[0] < 0.01 ? 1 : 0)),
          },
        ],
        series: [{}, ...this.curves.flatMap(({ slot }) => this.#series(slot))],
        bands: this.curves.map(({ slot }, at) => ({
          series: [3 * at + 3, 3 * at + 2],
          fill: this.#isRevised ? "transparent" : curveColour(slot, 0.14),
        })),
        hooks: {
          drawClear: [() => this.#drawSpans()],
          draw: [
            () => this.#drawRevised(),
            () => this.#drawJumps(),
            () => this.#drawTruth(),
            () => this.#drawThresholds(),
            () => this.#drawMarks(),
            () => this.#drawChanges(),
            () => this.#drawFlags(),
            () => this.#drawInspected(),
          ],
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
        stroke: this.#isRevised ? "transparent" : curveColour(slot),
        width: this.#rows.length > DENSE ? 1 : 2,
        points: {
          show: () => this.#rows.length <= (this.#isRevised ? this.#dots : 160),
          size: this.#isRevised ? 4 : 6,
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

  /** How many releases can be dots: more are thinned out before they are drawn. */
  get #dots() {
    return Math.min(DOTS, this.box.clientWidth);
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
    const { labels } = this.stream;
    return [
      h("strong", {}, `t ${row.t} · ${clock(startOf(this.stream.terms, row.t))} · ${kindOf(row)}`),
      ...this.curves.map(({ label, slot }) => {
        const revised = this.#figures.get(row.t);
        const known = revised && !Number.isNaN(revised.values[label]);
        const now = known ? `, now ${this.stream.unit.show(revised.values[label])}` : "";
        const text = `${labels[label]} ${this.stream.unit.show(row.data[label])}${now}`;
        const line = h("span", {}, text);
        line.style.borderColor = curveColour(slot);
        return line;
      }),
      ...this.changes
        .filter(({ t }) => t === row.t)
        .map(({ version, words }) => h("em", {}, `terms ${version}: ${words}`)),
      ...this.#jumps
        .filter(({ first_t: first, last_t: last }) => first <= row.t && row.t <= last)
        .map(({ label, size, low, high }) => {
          const { unit } = this.stream;
          const by = `${size > 0 ? "+" : "−"}${unit.show(Math.abs(size))}`;
          return h("em", { class: "change" }, `${label} changed by ${by} (${unit.range(low, high)})`);
        }),
      ...this.alerts.changes
        .filter(({ t }) => t === row.t)
        .map(({ name, state }) =>
          h("em", { class: state }, `${name} ${state === "firing" ? "fired" : "resolved"}`),
        ),
    ];
  }

  /** The thresholds of the labels that have a line. */
  get #limits() {
    const { labels } = this.stream;
    return this.curves.flatMap(({ label, slot }) =>
      this.alerts.limits(labels[label], this.view.group).map((limit) => ({ ...limit, slot })),
    );
  }

  /** Dashed, in the colour of the label that the threshold is for; red when its alert fires. */
  #drawThresholds() {
    const { ctx, bbox } = this.#plot;
    ctx.save();
    ctx.textAlign = "right";
    ctx.font = `600 ${11 * devicePixelRatio}px system-ui, sans-serif`;
    /** @type {number[]} */ const written = [];
    for (const { at, state, slot } of this.#limits) {
      const y = this.#plot.valToPos(at, "y", true);
      if (y < bbox.top || y > bbox.top + bbox.height) continue;
      const [right, ink] = [
        bbox.left + bbox.width,
        state === "firing" ? colour("bad") : curveColour(slot),
      ];
      ctx.setLineDash([8 * devicePixelRatio, 6 * devicePixelRatio]);
      ctx.lineWidth = (state === "firing" ? 2 : 1.5) * devicePixelRatio;
      ctx.strokeStyle = ink;
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(right, y);
      ctx.stroke();
      const text = this.stream.unit.show(at);
      const beside = written.filter((other) => Math.abs(other - y) < NEAR * devicePixelRatio).length;
      const away = 4 * devicePixelRatio + beside * (ctx.measureText(text).width + 10 * devicePixelRatio);
      this.#write(text, right - away, y - 5 * devicePixelRatio, ink);
      written.push(y);
    }
    ctx.restore();
  }

  /** The revised lines, each with the band of its intervals; as released where none is revised. */
  #drawRevised() {
    const figures = this.#figures;
    if (!figures.size) return;
    const { ctx } = this.#plot;
    const place = this.#place;
    const high = (/** @type {number} */ value) => this.#plot.valToPos(value, "y", true);
    const step = Math.max(1, Math.floor(this.#rows.length / (2 * this.box.clientWidth)));
    const drawn = this.#rows
      .filter((_, index) => index % step === 0 || index === this.#rows.length - 1)
      .map((row) => ({ x: place(row.t), ...(figures.get(row.t) ?? asReleased(row)) }));
    this.#clip();
    ctx.lineJoin = "round";
    ctx.lineWidth = (this.#rows.length > DENSE ? 1 : 2) * devicePixelRatio;
    for (const { label, slot } of this.curves) {
      for (const points of unbroken(drawn, label)) {
        ctx.fillStyle = curveColour(slot, 0.14);
        ctx.beginPath();
        for (const point of points) ctx.lineTo(point.x, high(point.high[label]));
        for (const point of points.reverse()) ctx.lineTo(point.x, high(point.low[label]));
        ctx.fill();
        ctx.strokeStyle = curveColour(slot);
        ctx.beginPath();
        for (const point of points) ctx.lineTo(point.x, high(point.values[label]));
        ctx.stroke();
      }
    }
    ctx.restore();
  }

  /** What changed at once, of the labels that have a line. */
  get #jumps() {
    const { labels } = this.stream;
    if (!this.view.isWhole) return [];
    const slots = new Map(this.curves.map(({ label, slot }) => [labels[label], slot]));
    return (this.revised?.changes ?? []).flatMap((change) => {
      const slot = slots.get(change.label);
      return slot === undefined ? [] : [{ ...change, slot }];
    });
  }

  /** At the top, a triangle up or down, over a bar as wide as it is uncertain when it was. */
  #drawJumps() {
    const { ctx, bbox } = this.#plot;
    const place = this.#place;
    const size = 9 * devicePixelRatio;
    this.#clip();
    for (const change of this.#jumps) {
      const [x, top] = [place(change.t), bbox.top + 2 * devicePixelRatio];
      const [from, to] = [place(change.first_t - 0.5), place(change.last_t + 0.5)];
      ctx.fillStyle = curveColour(change.slot, 0.14);
      ctx.fillRect(from, bbox.top, Math.max(to - from, devicePixelRatio), bbox.height);
      ctx.fillStyle = curveColour(change.slot);
      const [tip, base] = change.size > 0 ? [top, top + size] : [top + size, top];
      ctx.beginPath();
      ctx.moveTo(x, tip);
      ctx.lineTo(x + size / 2, base);
      ctx.lineTo(x - size / 2, base);
      ctx.fill();
    }
    ctx.restore();
  }

  /** Dotted, in the colours of the labels. */
  #drawTruth() {
    const { truth } = this;
    if (!truth || !this.#rows.length || !this.view.isWhole) return;
    const { ctx } = this.#plot;
    const place = this.#place;
    this.#clip();
    ctx.setLineDash([2 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.lineWidth = 2 * devicePixelRatio;
    for (const { label, slot } of this.curves) {
      ctx.strokeStyle = curveColour(slot);
      ctx.beginPath();
      for (const { t } of this.#rows)
        ctx.lineTo(place(t), this.#plot.valToPos(truth(t)[label], "y", true));
      ctx.stroke();
    }
    ctx.restore();
  }

  /** Draw nothing outside of the plot, until `restore`. */
  #clip() {
    const { ctx, bbox } = this.#plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
  }

  /** Text that can be read over lines. @param {string} text @param {number} x @param {number} y @param {string} ink */
  #write(text, x, y, ink) {
    const { ctx } = this.#plot;
    ctx.setLineDash([]);
    ctx.lineJoin = "round";
    ctx.lineWidth = 4 * devicePixelRatio;
    ctx.strokeStyle = colour("card");
    ctx.strokeText(text, x, y);
    ctx.fillStyle = ink;
    ctx.fillText(text, x, y);
  }

  /** Where a timestamp is, in pixels of the canvas. */
  get #place() {
    const { left, width } = this.#plot.bbox;
    const { min, max } = this.#plot.scales.x;
    const slope = width / (max - min || 1);
    return (/** @type {number} */ t) => left + (this.#seconds(t) - min) * slope;
  }

  /** Behind the lines, tinted: when something was firing. */
  #drawSpans() {
    if (!this.#plot || !this.#rows.length) return;
    const { ctx, bbox } = this.#plot;
    const place = this.#place;
    const last = this.#rows[this.#rows.length - 1].t;
    ctx.save();
    ctx.fillStyle = colour("alert");
    for (const { from, to } of this.alerts.spans) {
      const left = Math.max(bbox.left, place(from));
      const right = Math.min(bbox.left + bbox.width, place(to ?? last));
      if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    ctx.restore();
  }

  /** At the top, a flag where something fired (filled) or was resolved (hollow). */
  #drawFlags() {
    const { ctx, bbox } = this.#plot;
    const place = this.#place;
    const size = 8 * devicePixelRatio;
    ctx.save();
    ctx.lineWidth = 1.5 * devicePixelRatio;
    for (const { t, state } of this.alerts.changes) {
      const x = place(t);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.strokeStyle = ctx.fillStyle = colour(state === "firing" ? "bad" : "good");
      ctx.globalAlpha = 0.55;
      ctx.fillRect(x - devicePixelRatio / 2, bbox.top, devicePixelRatio, bbox.height);
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x + size, bbox.top + size / 2);
      ctx.lineTo(x, bbox.top + size);
      ctx.closePath();
      if (state === "firing") ctx.fill();
      ctx.stroke();
    }
    ctx.restore();
  }

  /** Dashed from top to bottom, with the number of the version, where other terms came into force. */
  #drawChanges() {
    const { ctx, bbox } = this.#plot;
    const place = this.#place;
    ctx.save();
    ctx.textAlign = "left";
    ctx.font = `600 ${11 * devicePixelRatio}px system-ui, sans-serif`;
    for (const { t, version } of this.changes) {
      const x = place(t - 0.5);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.strokeStyle = colour("text");
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const [right, down] = [x + 4 * devicePixelRatio, bbox.top + 12 * devicePixelRatio];
      this.#write(`terms ${version}`, right, down, colour("text"));
    }
    ctx.restore();
  }

  /** Below the lines, a mark for each timestamp: tall if fresh, low if carried over, red if missed. */
  #drawMarks() {
    const { ctx, bbox } = this.#plot;
    const rows = this.#rows;
    if (!rows.length) return;
    const tall = STRIP * devicePixelRatio;
    const bottom = bbox.top + bbox.height;
    const place = this.#place;
    const step = rows.length > 1 ? bbox.width / rows.length : bbox.width;
    const width = Math.max(1, Math.min(step * 0.6, 6 * devicePixelRatio));
    // What matters more is drawn later, over the rest of its pixel; each kind in one go.
    const kinds = { faint: new Map(), accent: new Map(), bad: new Map() };
    for (const row of rows) {
      const x = place(row.t) - width / 2;
      kinds[row.missed ? "bad" : row.fresh ? "accent" : "faint"].set(
        step < 1 ? Math.round(x) : x,
        true,
      );
    }
    ctx.save();
    for (const [kind, places] of Object.entries(kinds)) {
      const height = kind === "faint" ? tall / 2.5 : tall;
      ctx.fillStyle = colour(kind);
      ctx.beginPath();
      for (const x of places.keys()) ctx.rect(x, bottom - height, width, height);
      ctx.fill();
    }
    ctx.restore();
  }

  #drawInspected() {
    const { inspected } = this.view;
    if (inspected === null) return;
    const { ctx, bbox } = this.#plot;
    ctx.fillStyle = colour("text");
    ctx.fillRect(this.#place(inspected), bbox.top, devicePixelRatio, bbox.height);
  }

  destroy() {
    this.#plot?.destroy();
  }
}

/** @type {Map<number, import("./revised.js").Figures>} */
const NONE = new Map();
const FONT = "12px system-ui, sans-serif";

/** How uPlot writes times: from so many seconds between ticks, and what a new day adds. */
const TIMES = [
  [86_400 * 28, "{MMM} {YYYY}", null, null, null, null, null, null, 1],
  [86_400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
  [0.001, "{mm}:{ss}.{fff}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
];

/** @param {Row} row @returns {import("./revised.js").Figures} */
function asReleased({ data }) {
  const labels = data.length / 3;
  const [values, low, high] = [0, 1, 2].map((at) => data.subarray(at * labels, (at + 1) * labels));
  return { values, low, high };
}

/**
 * The parts of a line in which its label is there.
 * @template {import("./revised.js").Figures} Point
 * @param {Point[]} points @param {number} label @returns {Point[][]}
 */
function unbroken(points, label) {
  /** @type {Point[][]} */ const parts = [];
  let wasThere = false;
  for (const point of points) {
    const isThere = !Number.isNaN(point.values[label]);
    if (isThere && wasThere) parts[parts.length - 1].push(point);
    else if (isThere) parts.push([point]);
    wasThere = isThere;
  }
  return parts;
}

/** uPlot leaves a gap where there is null. @param {Float64Array} curve */
const withGaps = (curve) =>
  curve.some(Number.isNaN)
    ? Array.from(curve, (value) => (Number.isNaN(value) ? null : value))
    : curve;
