/** Starts the page, and shows what the address names. */

import { showAdmin } from "./admin.js";
import { Unavailable } from "./api.js";
import { fill, h } from "./dom.js";
import { capitalised } from "./format.js";
import { showOverview } from "./overview.js";
import { showStream } from "./stream.js";
import { startTheme } from "./theme.js";
import { adminToken, takeTokenFromFragment } from "./tokens.js";
import { wall } from "./wall.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const admin = /** @type {HTMLElement} */ (document.getElementById("admin"));
let shown = new AbortController();

async function show() {
  takeTokenFromFragment();
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  document.title = "ldpstream";
  admin.hidden = !adminToken();
  for (const key of Object.keys(main.dataset)) delete main.dataset[key];
  const [, kind, name] = location.hash.split("/");
  try {
    if (kind === "streams" && name) await showStream(main, decodeURIComponent(name), signal, show);
    else if (kind === "token") {
      fill(
        main,
        wall(
          "*",
          "The admin's token opens all streams of this collector.",
          () => (location.hash = "#/"),
        ),
      );
    } else if (kind === "admin") await showAdmin(main, signal, show);
    else await showOverview(main, signal);
  } catch (error) {
    if (signal.aborted) return;
    const text =
      error instanceof Unavailable ? error.message : "Something went wrong on this page.";
    fill(
      main,
      h(
        "p",
        { class: "card", role: "alert" },
        `${capitalised(text)}. Trying again…`,
      ),
    );
    if (!(error instanceof Unavailable)) console.error(error);
    setTimeout(() => signal.aborted || show(), 2000);
  }
}

startTheme();
addEventListener("hashchange", () => {
  show();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
document.getElementById("key")?.addEventListener("click", () => (location.hash = "#/token"));
document.getElementById("skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
show();
