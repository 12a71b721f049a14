// Reads a JSON document a line; says of each what the JavaScript SDK makes of it.

import { createInterface } from "node:readline";

import { Refused, TermsRefused } from "../../src/ldpstream/collector/page/sdk/problems.js";
import { readAnnouncement } from "../../src/ldpstream/collector/page/sdk/rounds.js";
import { Terms } from "../../src/ldpstream/collector/page/sdk/terms.js";

/** @param {unknown} sent */
function announcement(sent) {
  const { rounds, nowMs } = readAnnouncement(sent);
  const read = rounds.map((round) => (round instanceof Refused ? "0" : "1")).join("");
  return `read ${read} at ${nowMs}`;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, sent } = JSON.parse(line);
  try {
    console.log(kind === "terms" ? (await Terms.read(sent)).pin : announcement(sent));
  } catch (error) {
    const known = error instanceof Refused || error instanceof TermsRefused;
    console.log(known ? "refused" : `broke: ${error}`);
  }
}
