/** The truth, which only a demonstration knows: its collector serves it, no other does. */

import { base } from "./api.js";

const AGAIN_MS = 1000;

/** @typedef {(t: number) => number[]} Truth the share of each label at a timestamp */

/**
 * Whether the address says that this is a demonstration; if so, what is true, once it is known.
 * @param {AbortSignal} signal @returns {Promise<Truth | null>}
 */
export async function truthOfDemo(signal) {
  if (!new URLSearchParams(location.search).has("demo")) return null;
  while (!signal.aborted) {
    const response = await fetch(`${base()}/demo/truth`, { cache: "no-store", signal });
    if (response.status === 200) return repeated(await response.json());
    if (response.status !== 204) return null;
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
  return null;
}

/** @param {{first_t: number, shares: number[][]}} told @returns {Truth} */
function repeated({ first_t: first, shares }) {
  const length = shares.length;
  return (t) => shares[(((t - first) % length) + length) % length];
}
