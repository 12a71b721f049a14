/** Which labels a report speaks for: what a collector counts it for (docs/oracles.md). */

import { Oue, Subset, Sue } from "../sdk/bitmaps.js";
import { Grr, Hadamard } from "../sdk/labels.js";
import { LocalHash } from "../sdk/local_hash.js";
import { Tagged } from "../sdk/tagged.js";

/**
 * @param {import("../sdk/oracle.js").Oracle} oracle @param {import("../sdk/terms.js").Terms} terms
 * @param {Uint8Array} report @returns {string[] | null} null: a number, which speaks for none
 */
export function spokenFor(oracle, { labels }, report) {
  const supports = supportOf(oracle, report.subarray(1));
  return labels && supports ? labels.filter((_, label) => supports(label)) : null;
}

/**
 * @param {import("../sdk/oracle.js").Oracle} oracle @param {Uint8Array} payload
 * @returns {((label: number) => boolean) | null}
 */
function supportOf(oracle, payload) {
  if (oracle instanceof Tagged) return supportOf(oracle.inner, payload.subarray(0, -1));
  const whole = payload.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  if (oracle instanceof Grr) return (label) => BigInt(label) === whole;
  if (oracle instanceof Hadamard) return (label) => ones(whole & BigInt(label + 1)) % 2 === 0;
  if (oracle instanceof Oue || oracle instanceof Sue || oracle instanceof Subset) {
    return (label) => ((whole >> BigInt(label)) & 1n) === 1n;
  }
  if (oracle instanceof LocalHash) {
    const { wordBits } = oracle;
    const mask = (1n << wordBits) - 1n;
    const [multiplier, increment] = [whole & mask, (whole >> wordBits) & mask];
    const bucket = Number(whole >> (2n * wordBits));
    return (label) => oracle.bucketOf(multiplier, increment, label) === bucket;
  }
  return null;
}

/** @param {bigint} bits how many of them are set */
const ones = (bits) => bits.toString(2).replaceAll("0", "").length;
