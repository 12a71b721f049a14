/** Where a token is asked for. */

import { isAdmin, isReader } from "./api.js";
import { field, h } from "./dom.js";
import { adminToken, forgetTokens, keepToken } from "./tokens.js";

/**
 * A form for a token; "*" is the admin's, of all streams.
 * @param {string} stream @param {string} why @param {() => void} done
 */
export function wall(stream, why, done) {
  const input = h("input", {
    id: "token",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
  });
  const said = h("p", { class: "note bad", role: "alert" });
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const token = input.value.trim();
    if (!token) return;
    try {
      const admin = await isAdmin(token);
      if (!admin && (stream === "*" || !(await isReader(stream, token)))) {
        said.textContent = "That token is wrong.";
        return;
      }
      keepToken(stream, "");
      keepToken(admin ? "*" : stream, token);
      done();
    } catch (error) {
      said.textContent = /** @type {Error} */ (error).message;
    }
  };
  const forget = h(
    "button",
    { type: "button", onclick: () => (forgetTokens(), done()) },
    "Forget tokens",
  );
  return h(
    "section",
    { class: "card wall", "aria-labelledby": "wall-title" },
    h("h1", { id: "wall-title" }, "A token, please"),
    h("p", {}, why),
    h(
      "form",
      { onsubmit: submit },
      field("token", "Token", input),
      h(
        "div",
        { class: "row" },
        h("button", { type: "submit", class: "main" }, "Open"),
        adminToken() ? forget : null,
      ),
      said,
    ),
    h(
      "p",
      { class: "note" },
      "It stays in this tab, and is sent to this collector only, in a header.",
    ),
  );
}
