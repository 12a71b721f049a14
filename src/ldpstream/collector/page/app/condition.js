/** The state of a stream in one word, as the collector has decided it, or that nothing is heard of it. */

/** @typedef {{state: string, why: string}} Condition */

/** Of the connection to the collector, while it says nothing. */
const UNHEARD = { connecting: "connecting", lost: "reconnecting", "no access": "no access" };

/**
 * @param {HTMLElement} pill @param {import("./feed.js").State | "no access"} connection
 * @param {Condition} condition as it was last heard of
 */
export function showCondition(pill, connection, { state, why }) {
  const unheard = connection in UNHEARD;
  pill.textContent = unheard ? UNHEARD[/** @type {keyof typeof UNHEARD} */ (connection)] : state;
  pill.className = `pill ${connection === "no access" ? "refused" : unheard ? connection : state}`;
  pill.title = unheard ? "" : why;
}
