/** What an administrator does here: pause streams, revoke tokens, read the log. All else is in the file. */

import * as api from "./api.js";
import { showCondition } from "./condition.js";
import { fill, h, scrolled, withCode } from "./dom.js";
import { clock, grouped } from "./format.js";
import { PauseButton } from "./pausing.js";
import { health } from "./round.js";
import { adminToken, keepToken } from "./tokens.js";
import { wall } from "./wall.js";

const WHY = "With the admin's token streams are paused, tokens revoked, and the admin log is read.";
const ABOUT_TOKENS =
  "Devices that have enrolled with a token stay when it is revoked. `ldpstream tokens create` makes one.";
const LISTED = 200; // entries of the log

/** @param {HTMLElement} main @param {AbortSignal} signal @param {() => void} again */
export async function showAdmin(main, signal, again) {
  if (!adminToken()) {
    fill(main, wall("*", WHY, again));
    return;
  }
  try {
    const page = new AdminPage(signal);
    await page.read();
    fill(main, h("h1", { class: "page-title" }, "Admin"), page.element);
  } catch (error) {
    if (!(error instanceof api.Unavailable) || error.status !== 401) throw error;
    keepToken("*", "");
    fill(main, wall("*", "The collector has another admin token now.", again));
  }
}

class AdminPage {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    this.streams = table(["Stream", "State", "", "Why"]);
    this.tokens = table(["Token", "For", "Uses", "Until", ""]);
    this.log = table(["When", "Who", "What", "Details"]);
    this.more = h("p", { class: "note" });
    this.element = h(
      "div",
      { class: "admin" },
      card("Streams", this.streams.element),
      card("Enrolment tokens", this.tokens.element, h("p", { class: "note" }, ...withCode(ABOUT_TOKENS))),
      card("Admin log", this.log.element, this.more),
    );
  }

  async read() {
    const [statuses, tokens] = await Promise.all([
      api.allStatuses(this.signal),
      api.enrolmentTokens(this.signal),
      this.#readLog(),
    ]);
    fill(this.streams.body, ...Object.entries(statuses).map(([name, status]) => this.#stream(name, status)));
    fill(this.tokens.body, ...(tokens.length ? tokens.map((one) => this.#token(one)) : [nothing("None was made.")]));
  }

  async #readLog() {
    const entries = await api.adminLog(this.signal);
    const shown = entries.slice(-LISTED).reverse();
    fill(this.log.body, ...(shown.length ? shown.map(entryLine) : [nothing("Nothing was done yet.")]));
    const hidden = entries.length - shown.length;
    this.more.textContent = hidden ? `and ${grouped(hidden)} before: ldpstream admin log FILE` : "";
  }

  /** @param {string} name @param {any} status */
  #stream(name, status) {
    const pill = h("span", { class: "pill" });
    const why = h("td", {});
    const show = (/** @type {import("./condition.js").Condition} */ condition) => {
      showCondition(pill, "live", condition);
      const facts = health({ ...status, ...condition }).map((fact) => fact.join(": "));
      why.textContent = [condition.why, ...facts].join(" · ");
    };
    const button = new PauseButton(name, (condition) => {
      show(condition);
      this.#readLog();
    });
    button.show(status.state);
    show(status);
    const link = h("a", { href: `#/streams/${encodeURIComponent(name)}` }, name);
    return h("tr", {}, h("th", { scope: "row" }, link), h("td", {}, pill), h("td", {}, button.element), why);
  }

  /** @param {api.EnrolmentToken} token */
  #token(token) {
    const { name, stream, uses, most_uses: most, expires_ms: expires, revoked_ms: revoked } = token;
    const last = h("td", {}, revoked ? `revoked ${clock(revoked, true)}` : this.#revoker(name));
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      h("td", {}, stream ?? "all streams"),
      h("td", {}, most === null ? grouped(uses) : `${grouped(uses)} of ${grouped(most)}`),
      h("td", {}, expires === null ? "it is revoked" : clock(expires, true)),
      last,
    );
  }

  /** It cannot be undone, so it is pressed twice. @param {string} name */
  #revoker(name) {
    const said = h("span", { class: "note bad", role: "alert" });
    let sure = false;
    const press = async () => {
      if (!sure) {
        sure = true;
        button.textContent = `Revoke ${name} for good`;
        return;
      }
      try {
        await api.revokeToken(name);
        await this.read();
      } catch (error) {
        said.textContent = /** @type {Error} */ (error).message;
      }
    };
    const reset = () => {
      sure = false;
      button.textContent = "Revoke";
    };
    const button = h("button", { type: "button", onclick: press, onblur: reset }, "Revoke");
    return h("span", { class: "press" }, button, said);
  }
}

/** @param {api.LogEntry} entry */
const entryLine = ({ at_ms: at, who, action, details }) =>
  h(
    "tr",
    {},
    h("td", {}, clock(at, true)),
    h("td", {}, who),
    h("td", {}, action),
    h("td", {}, Object.entries(details).flatMap(asWords).join(", ")),
  );

/** A detail of an entry, if there is something to say. @param {[string, unknown]} detail */
function asWords([name, value]) {
  if (value === null || (Array.isArray(value) && !value.length)) return [];
  if (typeof value === "boolean") return [value ? name : `not ${name}`];
  if (Array.isArray(value)) return [`${name}: ${value.join("; ")}`];
  if (name.endsWith("_ms")) return [`${name.slice(0, -3)} ${clock(Number(value), true)}`];
  return [`${name} ${typeof value === "string" ? value : JSON.stringify(value)}`];
}

/** @param {string} text */
const nothing = (text) => h("tr", {}, h("td", { class: "note", colspan: 5 }, text));

/** @param {string} title @param {...Node} content */
const card = (title, ...content) => h("section", { class: "card" }, h("header", {}, h("h2", {}, title)), ...content);

/** @param {string[]} heads */
function table(heads) {
  const body = h("tbody", {});
  const named = heads.map((text) => h("th", { scope: "col" }, text || h("span", { class: "unseen" }, "Action")));
  const element = scrolled(
    `Table: ${heads[0]}`,
    h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ...named)), body),
  );
  return { element, body };
}
