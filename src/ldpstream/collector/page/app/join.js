/** "Join as a device": this browser takes part, through the SDK, under its own ledger. */

import { Device, DeviceError, IndexedDbStore, TermsRefused } from "../ldpstream.js";
import { OTHER } from "../sdk/attributes.js";
import { LONGEST_TEXT } from "../sdk/vocabulary.js";
import { base } from "./api.js";
import { announce, choice, field, fill, h } from "./dom.js";
import { clock, duration, epsilon, grouped, hexDigits } from "./format.js";

const MOST_LINES = 50;
const MOST_OPTIONS = 2000;
/** @type {{ stream: string, value: string, described: Record<string, string> } | null} what a page that is drawn anew goes on with */
let handedOver = null;

export class JoinPanel {
  /** @type {Device | null} */ #device = null;
  /** @type {AbortController | null} */ #running = null;

  /** @param {import("./api.js").Stream} stream */
  constructor(stream) {
    this.stream = stream;
    /** Whether anyone may enrol, without a token. */
    this.open = stream.enrolment === "public";
    /** Of the database of this browser's device: it is named after the terms that it first agreed to. */
    this.name = `ldpstream ${stream.terms.stream} ${stream.pin.slice(0, 16)}`;
    /** As people read it: the time in which epsilon is spent at most once, at the most careful level. */
    this.span = duration(Math.max(...stream.promises.map(({ window }) => window)) * stream.terms.interval_ms);
    this.log = h("ol", { class: "log", "aria-label": "What this device did" });
    this.state = h("p", { class: "note", role: "status" });
    this.budget = h("div", { class: "budget", hidden: true });
    this.element = h("div", {}, ...this.#introduction());
    if (!globalThis.isSecureContext || !globalThis.crypto?.subtle) {
      this.element.append(
        h("p", { class: "note" }, "This needs a secure page: HTTPS, or this machine itself."),
      );
      return;
    }
    this.form = this.#form();
    this.element.append(this.form, this.state, this.budget, this.log);
    this.#recognise();
  }

  /** Whether this browser has been made a device of the stream, which can leave. */
  get hasDevice() {
    return this.farewell?.hidden === false;
  }

  #introduction() {
    const [{ epsilon_nano: nano, time }, ...others] = this.stream.promises;
    const most = others.length ? "what the level that you choose allows" : `ε = ${epsilon(nano)} in any ${time}`;
    return [
      h(
        "p",
        {},
        "This browser can be a device of this stream. It randomises the value you choose before it sends anything, keeps its own " +
          `account of what it has spent, and will not exceed ${most}, whatever the collector asks.`,
      ),
      this.open ? h("p", { class: "note" }, "This stream is open: no token is needed.") : null,
    ];
  }

  #form() {
    this.value = this.#values();
    this.attributes = this.stream.attributes.map((one) => this.#attribute(one));
    this.level = this.#levels();
    this.token = h("input", {
      id: "join-token",
      type: "password",
      autocomplete: "off",
      spellcheck: "false",
    });
    this.first = h("input", { id: "join-first", type: "checkbox" });
    this.go = h("button", { type: "submit", class: "main" }, "Join");
    this.pause = h("button", { type: "button", hidden: true, onclick: () => this.stop() }, "Stop");
    this.farewell = h("button", { type: "button", hidden: true, onclick: () => this.#leave() }, "Leave");
    this.enrolling = h(
      "div",
      { class: "enrolling" },
      this.open ? null : field("join-token", "Enrolment token", this.token),
      h(
        "label",
        { class: "check", for: "join-first" },
        this.first,
        `I have never taken part in this stream (otherwise this device first keeps silent for ${this.span})`,
      ),
    );
    return h(
      "form",
      {
        class: "join",
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.#join();
        },
      },
      field("join-value", "The value to report", this.value),
      ...this.attributes.map((list) => field(list.id, `${list.name}, which is sent as it is`, list)),
      this.level ? field("join-level", "How careful this device is", this.level) : null,
      this.enrolling,
      h("div", { class: "row" }, this.go, this.pause, this.farewell),
    );
  }

  #values() {
    if (this.stream.texts) return this.#text();
    return this.stream.unit.ends ? this.#number(this.stream.unit.ends) : this.#labels();
  }

  /** Any text, of which so many bytes count. */
  #text() {
    const placeholder = "any text; nothing: a random one";
    const onchange = () => this.#observe();
    return h("input", { id: "join-value", type: "text", maxlength: LONGEST_TEXT, placeholder, autocomplete: "off", onchange });
  }

  /** @param {{name: string, values: string[]}} attribute a list of its values */
  #attribute({ name, values }) {
    const props = { id: `join-attribute-${name}`, name, onchange: () => this.#describe() };
    const list = choice(props, [...values, OTHER]);
    list.value = OTHER;
    return list;
  }

  /** What is said of this device. @returns {Record<string, string>} */
  get described() {
    return Object.fromEntries((this.attributes ?? []).map(({ name, value }) => [name, value]));
  }

  /** A list of the labels, to choose one from. */
  #labels() {
    const { labels, other } = this.stream.terms;
    const instead = other === undefined ? "a random label" : other;
    const list = h("select", { id: "join-value", onchange: () => this.#observe() });
    list.append(h("option", { value: "" }, `nothing: ${instead} is reported`));
    labels
      .slice(0, MOST_OPTIONS)
      .forEach((label, at) => list.append(h("option", { value: at }, label)));
    return list;
  }

  /** A list of the levels of privacy, if there is a choice. */
  #levels() {
    const all = this.stream.promises;
    if (all.length < 2) return null;
    const list = h("select", { id: "join-level", onchange: () => this.#move() });
    for (const { level, called, summary } of all) {
      list.append(h("option", { value: level }, `${called}: ${summary}`));
    }
    return list;
  }

  /** @param {[number, number]} ends of the range; what is beyond is clamped */
  #number([min, max]) {
    const placeholder = `${min} to ${max}; nothing: a random one`;
    const onchange = () => this.#observe();
    return h("input", { id: "join-value", type: "number", step: "any", placeholder, onchange });
  }

  /** Find out whether this browser has been a device of this stream: without making a database. */
  async #recognise() {
    for (const name of await this.#databases()) {
      if (this.#device) return;
      const device = await this.#find(new IndexedDbStore(name)).catch(() => null);
      const isHere = device !== null && this.#isIn(device);
      if (device?.terms && isHere && !this.#device) {
        this.name = name;
        if (this.level) this.level.value = device.terms.level;
        this.#offerToGoOn();
      }
      await device?.close();
      if (isHere) return this.#takeOver();
    }
  }

  /** Let the page that is drawn next, for new terms, go on as the device that runs in this one. */
  handOver() {
    if (!this.#running || !this.value) return;
    const value = this.value instanceof HTMLSelectElement ? chosen(this.value) : this.value.value;
    handedOver = { stream: this.stream.terms.stream, value, described: this.described };
  }

  /** Go on as the device that ran when the page was drawn anew. */
  async #takeOver() {
    const before = handedOver;
    handedOver = null;
    if (before?.stream !== this.stream.terms.stream || !this.value) return;
    if (this.value instanceof HTMLSelectElement) {
      const same = [...this.value.options].find(({ text }) => text === before.value);
      if (same) this.value.value = same.value;
    } else this.value.value = before.value;
    for (const list of this.attributes ?? []) {
      const same = [...list.options].find(({ text }) => text === before.described[list.name]);
      if (same) same.selected = true;
    }
    await this.#join();
  }

  /** @param {Device} device whether it takes part in this stream, of this collector */
  #isIn(device) {
    try {
      return device.stream(this.stream.terms.stream, here()) !== null;
    } catch {
      return false;
    }
  }

  /** Where a device of this stream may be: under these terms first, or under those that they follow. */
  async #databases() {
    const found = (await indexedDB.databases?.().catch(() => [])) ?? [];
    const prefix = `ldpstream ${this.stream.terms.stream} `;
    const names = found.map(({ name }) => name ?? "").filter((name) => name.startsWith(prefix));
    const others = this.stream.terms.succeeds ? names.filter((name) => name !== this.name) : [];
    return [...names.filter((name) => name === this.name), ...others];
  }

  /** Move to the level that was chosen: the ledger goes on, and the stricter promise binds meanwhile. */
  async #move() {
    const device = this.#device;
    if (!device?.terms || device.terms.level === this.level?.value) return;
    if (!this.open) {
      this.level.value = device.terms.level;
      return this.#say("To change the level, leave, and join again: what was spent is kept.");
    }
    try {
      await device.enrol(here(), this.stream.terms.stream, "", { level: this.level.value });
      this.#say(`The level is changed. Until ${this.span} have passed, the stricter one binds.`);
    } catch (error) {
      this.level.value = device.terms.level;
      this.#say(inWords(error));
    }
    this.#drawBudget();
    return undefined;
  }

  #offerToGoOn() {
    if (this.enrolling) this.enrolling.hidden = true;
    if (this.go) this.go.textContent = "Continue as the previous device";
    if (this.farewell) this.farewell.hidden = false;
  }

  async #join() {
    this.#busy(true);
    this.#say("");
    try {
      const device = await this.#open();
      this.#device = device;
      this.#observe();
      this.#describe();
      this.#start(device);
    } catch (error) {
      this.#busy(false);
      // A ledger that is not enrolled after all needs the token.
      if (this.enrolling) this.enrolling.hidden = false;
      if (this.go) this.go.textContent = "Join";
      this.#say(inWords(error));
    }
  }

  /** @param {IndexedDbStore} store @returns {Promise<Device | null>} the device of this browser */
  async #find(store) {
    return Device.open(store, { warn }).catch((error) => {
      if (!isMissing(error)) throw error;
      return null;
    });
  }

  /** Open the device of this browser; make and enrol one if there is none. */
  async #open() {
    const store = new IndexedDbStore(this.name);
    const found = await this.#find(store);
    if (found?.terms) return found;
    const token = this.token?.value.trim() ?? "";
    if (!token && !this.open)
      throw new Error("Enter the enrolment token that you got from the operator of this stream.");
    // One that was never enrolled is made anew: what was said of the first time may have changed. One
    // that has left is not: it knows what it has spent.
    if (found) await store.discard();
    const device = (await this.#find(store)) ?? (await this.#make(store));
    const { terms, pin } = this.stream;
    const level = this.level?.value ?? "";
    // New terms are never looser, and the form shows what labels are called now.
    await device.enrol(here(), terms.stream, token, { pin, level, accept: "not-looser" });
    if (this.token) this.token.value = "";
    await navigator.storage?.persist?.().catch(() => false);
    return device;
  }

  /** @param {IndexedDbStore} store */
  #make(store) {
    return Device.create(store, { warn, firstInstall: this.first?.checked ?? false });
  }

  /** @param {Device} device */
  #start(device) {
    const running = new AbortController();
    this.#running = running;
    if (this.go) this.go.hidden = true;
    if (this.pause) this.pause.hidden = false;
    if (this.farewell) this.farewell.hidden = false;
    if (this.enrolling) this.enrolling.hidden = true;
    this.#tellWhen(device);
    this.#drawBudget();
    device
      .run(
        running.signal,
        (heard) => this.#heard(heard),
        (fault) => this.#line("bad", inWords(fault)),
      )
      .catch((error) => this.#say(inWords(error)));
  }

  /** @param {Device} device say who it is, and when it speaks */
  async #tellWhen(device) {
    const dueMs = await device.dueInMs().catch(() => null);
    if (this.#device !== device || !device.terms) return;
    const when = dueMs === null ? "and listens" : `and reports next in ${duration(dueMs)}`;
    this.#say(`This browser is device ${device.status().number.slice(0, 8)}…, ${when}.`);
  }

  stop() {
    this.#end();
    if (!this.#device) return;
    this.#offerToGoOn();
    this.#say("Stopped. The account is kept in this browser.");
    this.#device.close();
  }

  #end() {
    this.#running?.abort();
    this.#running = null;
    this.#busy(false);
    if (this.pause) this.pause.hidden = true;
    if (this.farewell) this.farewell.hidden = true;
    if (this.go) this.go.hidden = false;
  }

  /** Leave, whether or not the device runs: nobody has to report once more for it. */
  async #leave() {
    let device = this.#running && this.#device;
    this.#end();
    this.#device = null;
    this.budget.hidden = true;
    try {
      device ||= await this.#find(new IndexedDbStore(this.name));
      const told = await device?.leave();
      const kept = `What was spent counts for another ${this.span}.`;
      this.#say(told ? `Left. ${kept}` : `Left; the collector could not be told. ${kept}`);
      if (this.go) this.go.textContent = "Join";
      if (this.enrolling) this.enrolling.hidden = false;
    } catch (error) {
      this.#offerToGoOn();
      this.#say(inWords(error));
    }
    await device?.close();
  }

  #observe() {
    if (!this.#device?.terms) return;
    const chosen = this.value?.value ?? "";
    this.#device.observe(chosen === "" ? null : this.#held(chosen));
  }

  /** @param {string} chosen @returns {string | number} the value */
  #held(chosen) {
    const { terms, texts, unit } = this.stream;
    if (texts) return chosen;
    // By its name, which outlives a change of the stream's labels.
    return unit.ends ? Number(chosen) : terms.labels[Number(chosen)];
  }

  #describe() {
    if (this.#device?.terms) this.#device.describe(this.described);
  }

  /** @param {import("../sdk/index.js").Heard} heard */
  #heard(heard) {
    for (const { round, report } of heard.delivered) {
      const bytes = hexDigits(report.slice(0, 12));
      const rest = report.length > 12 ? " …" : "";
      this.#line(
        "good",
        `t ${round.t}: sent ${bytes}${rest} (${report.length} bytes), spent ε ${epsilon(round.epsilonNano)}`,
      );
    }
    for (const fault of heard.undelivered) this.#line("bad", inWords(fault));
    for (const refusal of heard.refusals) this.#line("bad", `Refused: ${inWords(refusal)}`);
    for (const { round, why } of heard.silences) this.#line("", `t ${round.t}: silent, ${why}`);
    this.#drawBudget();
    if (this.#device) this.#tellWhen(this.#device);
  }

  #drawBudget() {
    if (!this.#device?.terms) return;
    const { leftNano, fullInMs, refusals } = this.#device.status();
    const limit = this.#device.terms.epsilonNano;
    const refused = refusals.reduce((sum, one) => sum + one.times, 0);
    this.budget.hidden = false;
    fill(
      this.budget,
      h(
        "label",
        { for: "join-left" },
        `Budget left in this window: ε ${epsilon(leftNano)} of ${epsilon(limit)}`,
      ),
      h("progress", { id: "join-left", max: limit, value: leftNano }),
      h(
        "p",
        { class: "note" },
        fullInMs > 0 ? `All of it is available again in ${duration(fullInMs)}. ` : "All of it is available. ",
        refused ? `Refused so far: ${grouped(refused)}.` : "",
      ),
    );
  }

  /** @param {string} kind @param {string} text */
  #line(kind, text) {
    if (this.log.firstElementChild?.lastChild?.textContent === text) return;
    this.log.prepend(
      h("li", { class: kind }, h("time", {}, clock(Date.now())), " ", h("span", {}, text)),
    );
    while (this.log.children.length > MOST_LINES) this.log.lastElementChild?.remove();
    if (kind) announce(text);
  }

  /** @param {string} text */
  #say(text) {
    this.state.textContent = text;
  }

  /** @param {boolean} busy */
  #busy(busy) {
    if (this.go) this.go.disabled = busy;
  }
}

/** The address of this page's collector. */
const here = () => location.origin + base();

/** The form says what is reported where there is no value. */
const warn = () => undefined;

/** @param {unknown} error */
const isMissing = (error) => error instanceof DeviceError && error.code === "ledger-missing";

/** @param {unknown} error */
function inWords(error) {
  if (error instanceof TermsRefused) return `This device does not agree: ${error.message}`;
  if (error instanceof DeviceError && error.facts.code === "token")
    return "The enrolment token is wrong.";
  if (error instanceof DeviceError && error.facts.code === "rate-limited")
    return "Too many devices have enrolled from this address. Try again in a minute.";
  if (error instanceof DeviceError && error.code === "budget-spent") {
    const { round, asked, left } = error.facts;
    return `round ${round} asks for ε ${epsilon(Number(asked))}, and ${epsilon(Number(left))} is left in this window`;
  }
  return error instanceof Error ? error.message : String(error);
}

/** @param {HTMLSelectElement} list @returns {string} the text of what is chosen */
const chosen = (list) => list.selectedOptions[0]?.text ?? "";
