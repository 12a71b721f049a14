/**
 * Server-sent events over fetch, since EventSource cannot send a token. Reconnects by itself and
 * goes on after the last event seen, so that a restart of the collector leaves no gap.
 */

import { authorised, feedAddress } from "./api.js";
import { tokenFor } from "./tokens.js";

/** @typedef {import("./api.js").Release} Release */

const FIRST_PAUSE_MS = 400;
const LONGEST_PAUSE_MS = 8000;
const SILENCE_MS = 40_000; // the collector says something every 15 s
const HIDDEN_MS = 30_000;

/** @typedef {"connecting" | "live" | "lost" | "refused"} State */

/**
 * Follow a stream until the signal says stop.
 * @param {string} name
 * @param {() => number} lastT the last timestamp that is known
 * @param {(release: Release) => void} onRelease
 * @param {(state: State) => void} onState
 * @param {AbortSignal} signal
 * @param {(told: any) => void} [onAlerts]
 */
export async function follow(name, lastT, onRelease, onState, signal, onAlerts = () => {}) {
  let failures = 0;
  onState("connecting");
  while (!signal.aborted) {
    await visible(signal);
    try {
      await listen(
        name,
        lastT(),
        signal,
        (release) => {
          failures = 0;
          onRelease(release);
        },
        () => onState("live"),
        onAlerts,
      );
    } catch (error) {
      if (signal.aborted) return;
      if (/** @type {any} */ (error).refused) {
        onState("refused");
        return;
      }
    }
    if (signal.aborted) return;
    if (document.hidden) continue;
    onState("lost");
    failures += 1;
    const most = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures);
    await pause(most * (0.5 + Math.random() / 2), signal);
  }
}

/** @param {AbortSignal} signal @returns {Promise<void>} when somebody looks */
function visible(signal) {
  if (!document.hidden) return Promise.resolve();
  return new Promise((done) => {
    document.addEventListener("visibilitychange", () => done(), { once: true, signal });
    signal.addEventListener("abort", () => done(), { once: true });
  });
}

/**
 * One connection, to its end.
 * @param {string} name @param {number} last @param {AbortSignal} signal
 * @param {(release: Release) => void} onRelease @param {() => void} onOpen
 * @param {(told: any) => void} onAlerts
 */
async function listen(name, last, signal, onRelease, onOpen, onAlerts) {
  const connection = new AbortController();
  const end = () => connection.abort();
  signal.addEventListener("abort", end, { once: true });
  let watchdog = setTimeout(end, SILENCE_MS);
  // A tab that nobody looks at gives its connection back: browsers open only six of them.
  const sleeping = setInterval(() => document.hidden && end(), HIDDEN_MS);
  try {
    const response = await fetch(feedAddress(name), {
      headers: {
        Accept: "text/event-stream",
        "Last-Event-ID": String(last),
        ...authorised(tokenFor(name)),
      },
      cache: "no-store",
      signal: connection.signal,
    });
    if (response.status === 404) {
      throw Object.assign(new Error("refused"), { refused: true });
    }
    if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
    onOpen();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parse = eventParser((event, data) => {
      if (event === "release") onRelease(JSON.parse(data));
      else if (event === "alerts") onAlerts(JSON.parse(data));
    });
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(watchdog);
      watchdog = setTimeout(end, SILENCE_MS);
      parse(value);
    }
  } finally {
    clearTimeout(watchdog);
    clearInterval(sleeping);
    signal.removeEventListener("abort", end);
    connection.abort();
  }
}

/**
 * Takes text in whatever pieces it comes, gives events.
 * @param {(event: string, data: string) => void} onEvent @returns {(text: string) => void}
 */
export function eventParser(onEvent) {
  let rest = "";
  let event = "message";
  /** @type {string[]} */ let data = [];
  return (text) => {
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (data.length) onEvent(event, data.join("\n"));
        [event, data] = ["message", []];
      } else if (line.startsWith("event:")) event = line.slice(6).trim();
      else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    }
  };
}

/** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
export function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });
}
