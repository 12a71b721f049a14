// Reads a JSON document a line; says of each what the JavaScript SDK makes of it.

import { createInterface } from "node:readline";

import { Refused, TermsRefused } from "../../src/ldpstream/collector/page/sdk/problems.js";
import { readAnnouncement } from "../../src/ldpstream/collector/page/sdk/rounds.js";
import { Terms } from "../../src/ldpstream/collector/page/sdk/terms.js";

/** @param {unknown} sent */
const announcement = (sent) =>
  readAnnouncement(sent).rounds.map((round) => (round instanceof Refused ? "0" : "1")).join("");

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, sent } = JSON.parse(line);
  try {
    console.log(kind === "terms" ? (await Terms.read(sent)).pin : `read ${announcement(sent)}`);
  } catch (error) {
    const known = error instanceof Refused || error instanceof TermsRefused;
    console.log(known ? "refused" : `broke: ${error}`);
  }
}
