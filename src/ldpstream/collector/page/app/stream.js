/** One stream: loads what is in view, follows what is new, and lets the parts draw it. */

import { Alerts } from "./alerts.js";
import * as api from "./api.js";
import { Bars } from "./bars.js";
import { Breakdown, Filter } from "./breakdown.js";
import { Chips } from "./chips.js";
import { showCondition } from "./condition.js";
import { Distribution } from "./distribution.js";
import { announce, fill, h, oncePerFrame, scrolled } from "./dom.js";
import { follow } from "./feed.js";
import { duration, epsilon, grouped } from "./format.js";
import { HeatMap } from "./heatmap.js";
import { figureOf, historyOf, kindOf } from "./history.js";
import { JoinPanel } from "./join.js";
import { Levels } from "./levels.js";
import { Lines } from "./lines.js";
import { Lookup } from "./lookup.js";
import { NextStep } from "./next_step.js";
import { PauseButton } from "./pausing.js";
import { Privacy } from "./privacy.js";
import { Revised } from "./revised.js";
import { RoundPanel } from "./round.js";
import { onTheme } from "./theme.js";
import { adminToken, shareLink } from "./tokens.js";
import { truthOfDemo } from "./truth.js";
import { changes } from "./versions.js";
import { View } from "./view.js";
import { wall } from "./wall.js";

const SPANS = [60, 300, 2000, 10_000];
const TABLE_ROWS = 12;
const ANNOUNCED_EVERY_MS = 15_000;

/** @param {HTMLElement} main @param {string} name @param {AbortSignal} signal @param {() => void} again */
export async function showStream(main, name, signal, again) {
  fill(main, h("p", { class: "card" }, "Loading…"));
  try {
    const stream = await api.stream(name, signal);
    await new StreamPage(main, stream, signal, again).start();
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof api.Unavailable)) throw error;
    if (error.status === 404) fill(main, wall(name, error.message, again));
    else {
      fill(main, h("p", { class: "card" }, error.message));
      if (error.status === 0 || error.status >= 500)
        setTimeout(() => signal.aborted || again(), 2000);
    }
  }
}

class StreamPage {
  #announced = 0;
  #loading = false;
  #wasLost = false;
  /** @type {import("./feed.js").State} */ #feed = "connecting";

  /** @param {HTMLElement} main @param {api.Stream} stream @param {AbortSignal} signal @param {() => void} again */
  constructor(main, stream, signal, again) {
    this.stream = stream;
    this.signal = signal;
    this.again = () => {
      this.join.handOver();
      again();
    };
    this.main = main;
    this.history = historyOf(stream);
    this.view = new View(this.history, SPANS[1]);
    this.chips = new Chips(stream, this.view, () => this.draw());
    this.alerts = new Alerts(stream);
    this.lines = new Lines(stream, this.view, this.alerts);
    this.heat = new HeatMap(stream, this.view);
    this.bars = new Bars(
      stream,
      this.view,
      (label) => this.chips.colourOf(label),
      this.alerts,
    );
    this.distribution = stream.terms.bins ? new Distribution(stream) : null;
    this.breakdown = stream.attributes.length
      ? new Breakdown(stream, this.view, (group) => this.#show(group))
      : null;
    this.filter = new Filter(this.view, () => this.#show(null));
    /** Whether there is a picture of all labels. */
    this.hasHeat = stream.labels.length > 1 && !this.distribution && !stream.texts;
    this.privacy = new Privacy(stream, this.history);
    this.round = new RoundPanel(stream.terms.selection === "slots");
    this.join = new JoinPanel(stream);
    this.lookup = stream.texts ? new Lookup(stream, signal) : null;
    this.levels = new Levels(stream, this.view);
    this.state = h("span", { class: "pill", role: "status" }, "…");
    this.next = new NextStep(stream);
    this.pausing = new PauseButton(stream.terms.stream, (condition) => this.#judged(condition));
    this.summary = h("p", { class: "summary" });
    this.table = scrolled("Last releases as a table");
    this.details = h(
      "details",
      { ontoggle: () => this.draw() },
      h("summary", {}, "The same as a table"),
      this.table,
    );
    this.draw = oncePerFrame(() => this.#draw());
    this.revised = new Revised(stream, this.view, () => this.draw(), signal);
    this.lines.revised = this.revised;
    this.view.onChange(() => {
      this.#load();
      this.revised.refresh();
      this.draw();
    });
    onTheme(() => {
      this.lines.rebuild();
      this.breakdown?.rebuild();
      this.draw();
    }, signal);
    signal.addEventListener("abort", () => {
      this.join.stop();
      this.lines.destroy();
      this.breakdown?.destroy();
    });
  }

  /** Show only one group of devices, or all. @param {import("./history.js").Group | null} group */
  #show(group) {
    this.history.show(group);
    this.heat.restart();
    this.distribution?.show(group);
    this.draw();
  }

  async start() {
    const { stream } = this.stream.terms;
    const first = await api.status(stream, this.signal);
    const last = first.last_release;
    const rows = Math.min(this.view.span, this.history.page);
    const found = await api.releasesBetween(stream, last - rows + 1, last, this.signal);
    this.history.add(found);
    this.distribution?.draw(found.at(-1));
    fill(this.main, ...this.#layout());
    this.#alerted(await api.alerts(stream, this.signal));
    this.#heard(first);
    this.draw();
    this.#load();
    this.revised.refresh();
    this.#watch();
    this.#learnTruth();
    follow(
      stream,
      () => this.history.lastT,
      (release) => this.#released(release),
      (state) => this.#connection(state),
      this.signal,
      (told) => this.#alerted(told),
    );
  }

  /** @param {{alerts: import("./alerts.js").Alert[], changes: import("./alerts.js").Change[]}} told */
  #alerted(told) {
    this.alerts.heard(told);
    if (this.alertPanel) this.alertPanel.hidden = !told.alerts.length && !this.alerts.changes.length;
    const { firing } = this.alerts;
    document.title = `${firing ? `▲ ${firing} firing · ` : ""}${this.stream.terms.stream} · ldpstream`;
    this.draw();
  }

  /** In a demonstration, lay the truth over the lines. */
  async #learnTruth() {
    this.lines.truth = await truthOfDemo(this.signal).catch(() => null);
    if (!this.lines.truth || this.signal.aborted) return;
    this.main.querySelector(".legend")?.append(
      h("li", {}, h("i", { class: "tick truth" }), "the truth, which only a demo knows"),
    );
    this.draw();
  }

  /** Fetch what is in view and not yet here, the newest of it first. */
  async #load() {
    if (this.#loading) return;
    this.#loading = true;
    const { stream } = this.stream.terms;
    try {
      for (;;) {
        const { from } = this.view.range;
        const first = this.history.firstT;
        const room = this.history.mostRows - this.history.rows.length;
        const rows = Math.min(this.history.page, first - from, room);
        if (first <= 1 || rows <= 0) break;
        const older = await api.releasesBetween(stream, first - rows, first - 1, this.signal);
        if (!this.history.add(older)) break;
        this.draw();
      }
    } catch {
      // The next change of the view tries again.
    } finally {
      this.#loading = false;
    }
  }

  /** @param {api.Release} release */
  #released(release) {
    if (!this.history.knows(release) || (release.terms_version ?? 1) > this.stream.version) {
      this.again(); // other terms are in force
      return;
    }
    if (!this.history.add([release])) return;
    this.distribution?.draw(release);
    this.revised.refresh();
    this.draw();
    if (Date.now() - this.#announced < ANNOUNCED_EVERY_MS) return;
    this.#announced = Date.now();
    const { labels } = this.stream;
    const row = /** @type {import("./history.js").Row} */ (this.history.last);
    const top = this.chips.curves
      .slice(0, 3)
      .map(({ label }) => `${labels[label]} ${this.stream.unit.show(row.data[label])}`);
    announce(`Release ${row.t}, ${row.fresh ? "fresh" : "carried over"}: ${top.join(", ")}`);
  }

  /** @param {import("./feed.js").State} state */
  #connection(state) {
    if (state === "refused") {
      this.again();
      return;
    }
    this.#feed = state;
    showCondition(this.state, state, this.stream);
    if (state === "lost") this.#wasLost = true;
    else if (state === "live" && this.#wasLost) this.#checkTerms();
  }

  /** A collector that came back with another store has another stream of the same name. */
  async #checkTerms() {
    this.#wasLost = false;
    const { pin } = await api
      .stream(this.stream.terms.stream, this.signal)
      .catch(() => this.stream);
    if (pin !== this.stream.pin && !this.signal.aborted) this.again();
  }

  /** Ask for the status now and then, as long as somebody looks. */
  async #watch() {
    const pace = Math.max(1000, Math.min(5000, this.stream.terms.interval_ms / 4));
    while (!this.signal.aborted) {
      await new Promise((done) => setTimeout(done, pace));
      if (document.hidden || this.signal.aborted) continue;
      try {
        this.#heard(await api.status(this.stream.terms.stream, this.signal));
      } catch {
        this.round.lost("The collector does not answer. This page goes on by itself when it does.");
      }
    }
  }

  /** @param {any} status */
  #heard(status) {
    this.round.heard(status);
    this.privacy.heard(status);
    this.next.heard(status);
    this.#judged(status);
  }

  /** @param {import("./condition.js").Condition} condition */
  #judged({ state, why }) {
    Object.assign(this.stream, { state, why });
    this.pausing.show(state);
    if (this.joinPanel) this.joinPanel.hidden = state === "retired" && !this.join.hasDevice;
    showCondition(this.state, this.#feed, this.stream);
  }

  #draw() {
    if (this.signal.aborted) return;
    this.chips.update();
    this.lines.curves = this.chips.curves;
    this.lines.draw();
    if (this.hasHeat) this.heat.draw();
    this.bars.draw();
    this.breakdown?.draw();
    this.filter.draw();
    if (this.levels.several) this.levels.draw();
    this.privacy.draw();
    this.#drawControls();
    this.#drawSummary();
    if (this.details.open) this.#drawTable();
  }

  #drawSummary() {
    const { last } = this.history;
    const { from, to } = this.view.range;
    const behind = this.history.lastT - to;
    const live = this.view.live
      ? "live"
      : behind > 0
        ? `paused, ${grouped(behind)} behind`
        : "paused";
    this.summary.textContent = last
      ? `t ${grouped(this.view.rows[0]?.t ?? from)} to ${grouped(to)} · ${live}`
      : "Waiting for the first release.";
    this.main.dataset.lastT = String(last?.t ?? 0);
    this.main.dataset.firstT = String(this.history.firstT);
    this.main.dataset.rows = String(this.history.rows.length);
    this.main.dataset.revised = String(this.revised.figures.size);
    this.main.dataset.range = `${from} ${to}`;
  }

  #drawControls() {
    if (!this.pause || !this.spans) return;
    this.pause.textContent = this.view.live ? "Pause" : "Live";
    this.pause.setAttribute("aria-pressed", String(!this.view.live));
    this.spans.forEach((button, at) =>
      button.setAttribute("aria-pressed", String(this.view.live && this.view.span === SPANS[at])),
    );
  }

  #drawTable() {
    const { unit, labels } = this.stream;
    const { curves } = this.chips;
    const rows = this.view.rows.slice(-TABLE_ROWS).reverse();
    fill(
      this.table,
      h(
        "table",
        { class: "plain" },
        h("caption", {}, `The last ${rows.length} timestamps in view`),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...["t", "kind", "asked", "received"].map((name) => h("th", { scope: "col" }, name)),
            ...curves.map(({ label }) => h("th", { scope: "col", title: labels[label] }, labels[label])),
          ),
        ),
        h(
          "tbody",
          {},
          ...rows.map((row) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, row.t),
              h("td", {}, kindOf(row)),
              h("td", {}, grouped(row.asked)),
              h("td", {}, grouped(row.received)),
              ...curves.map(({ label }) => {
                const [value, low, high] = figureOf(row.data, label);
                return h("td", {}, `${unit.show(value)} (${unit.range(low, high)})`);
              }),
            ),
          ),
        ),
      ),
    );
  }

  #layout() {
    const { terms, mechanism, selection } = this.stream;
    const facts = [
      `ε ${epsilon(terms.epsilon_nano)} in ${duration(terms.window * terms.interval_ms)}`,
      this.stream.unit.about,
      `every ${duration(terms.interval_ms)}`,
      mechanism,
      terms.oracle,
      `${selection} selection`,
    ];
    return [
      h(
        "div",
        { class: "stream-head" },
        h(
          "div",
          {},
          h("h1", { class: "page-title" }, terms.stream, " ", this.state, this.alerts.badge),
          h("p", { class: "note" }, facts.join(" · ")),
        ),
        this.#forAdmin(),
      ),
      this.filter.element,
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          { class: "column" },
          panel(
            this.stream.unit.title,
            "lines",
            this.#controls(),
            this.summary,
            this.chips.element,
            this.lines.element,
            legend(this.stream),
            ...changeList(this.stream),
            keys(),
            this.details,
          ),
          this.distribution
            ? panel("Distribution now", "distribution", null, this.distribution.element)
            : null,
          this.breakdown
            ? panel("Groups", "groups", this.breakdown.action, this.breakdown.element)
            : null,
          this.hasHeat
            ? panel("All labels", "heat", this.heat.scale, this.heat.element)
            : null,
          panel("Privacy", "privacy", null, this.privacy.element),
        ),
        h(
          "div",
          { class: "column" },
          this.next.element, // not above the lines, which stay where they are when it comes
          (this.alertPanel = panel("Alerts", "alerts", null, this.alerts.element)),
          panel("Now", "now", this.stream.texts ? null : this.bars.order, this.bars.element),
          this.lookup ? panel("Any text", "lookup", null, this.lookup.element) : null,
          this.levels.several ? panel("Levels of privacy", "levels", null, this.levels.element) : null,
          panel("Round", "round", null, this.round.element),
          (this.joinPanel = panel("Join as a device", "join", null, this.join.element)),
        ),
      ),
    ];
  }

  #controls() {
    const button = (
      /** @type {string} */ text,
      /** @type {string} */ name,
      /** @type {() => void} */ act,
    ) => h("button", { type: "button", "aria-label": name, onclick: act }, text);
    this.spans = SPANS.map((span) => {
      const text = span >= 1000 ? `${span / 1000}k` : String(span);
      return button(text, `The last ${text} timestamps`, () => this.view.follow(span));
    });
    this.pause = h(
      "button",
      {
        type: "button",
        id: "pause",
        onclick: () => (this.view.live ? this.view.pause() : this.view.follow()),
      },
      "Pause",
    );
    return h(
      "div",
      { class: "controls", role: "group", "aria-label": "Time range" },
      h("span", { class: "group" }, ...this.spans),
      h(
        "span",
        { class: "group" },
        button("−", "Zoom out", () => this.view.zoom(2)),
        button("+", "Zoom in", () => this.view.zoom(0.5)),
      ),
      this.pause,
    );
  }

  /** What stands beside the title for whoever has the admin's token. */
  #forAdmin() {
    if (!adminToken()) return null;
    const said = h("span", { class: "note", role: "status" });
    const copy = async () => {
      const { stream } = this.stream.terms;
      try {
        const link = shareLink(stream, await api.readToken(stream));
        await navigator.clipboard.writeText(link).then(
          () =>
            (said.textContent = "Copied. Whoever has it can read this stream, and nothing else."),
          () =>
            fill(
              said,
              h("input", {
                type: "text",
                readonly: true,
                value: link,
                "aria-label": "Link to share",
              }),
            ),
        );
      } catch (error) {
        said.textContent = /** @type {Error} */ (error).message;
      }
    };
    return h(
      "div",
      { class: "share" },
      said,
      this.pausing.element,
      h("button", { type: "button", onclick: copy }, "Share, read-only"),
    );
  }
}

/** @param {string} title @param {string} id @param {Node | null} action @param {...Node} content */
function panel(title, id, action, ...content) {
  return h(
    "section",
    { class: `card panel-${id}`, "aria-labelledby": `${id}-title` },
    h("header", {}, h("h2", { id: `${id}-title` }, title), action),
    ...content,
  );
}

/** @param {api.Stream} stream */
function legend({ versions, texts }) {
  const mark = (/** @type {string} */ kind, /** @type {string} */ text) =>
    h("li", {}, h("i", { class: `tick ${kind}` }), text);
  return h(
    "ul",
    { class: "legend", "aria-label": "Marks below the lines" },
    mark("fresh", "fresh"),
    mark("carried", "carried over"),
    mark("missed", "missed"),
    mark("fired", "alert fired"),
    mark("resolved", "resolved"),
    versions.length > 1 ? mark("changed", "terms changed") : null,
    ...(texts
      ? []
      : [mark("dot", "as released"), mark("line", "revised by what came later"), mark("change", "changed at once")]),
    h("li", {}, h("i", { class: "tick band" }), "where the truth is, 90 %"),
  );
}

/** What changed when, in words: for whoever cannot see the marks, too. @param {api.Stream} stream */
function changeList({ versions }) {
  const known = changes(versions);
  if (!known.length) return [];
  const lines = known.map(({ t, version, words }) =>
    h("li", {}, h("b", {}, `t ${grouped(t)}, terms ${version}: `), words),
  );
  return [h("ul", { class: "note changes", "aria-label": "Changes of the terms" }, ...lines)];
}

const keys = () =>
  h(
    "p",
    { id: "keys", class: "note keys" },
    "Drag over the lines to zoom, double-click for live; with fingers, one moves and two zoom. Keys: arrows move, + and − zoom, Home for the start, Escape for live.",
  );
