/**
 * The device SDK for JavaScript: dependency-free, for browsers and Node 20 or later.
 *
 *     import { Device, IndexedDbStore } from "./ldpstream.js";
 *     const store = new IndexedDbStore("ldpstream regions");
 *     const device = await Device.create(store, { firstInstall: true }); // later: Device.open(store)
 *     await device.enrol("https://collector.example", "regions", token);
 *     device.observe("north");
 *     await device.run(stopping.signal, (heard) => console.log(heard));
 *
 * It keeps the seven rules of docs/device.md: whatever the collector asks, the sum of epsilon over
 * any span of w intervals stays within the terms pinned at enrolment, and a debit is on disk before
 * its report leaves. How long it was closed, a page knows from the wall clock only.
 */

export { Account } from "./sdk/account.js";
export { LabelTime, OwnTime } from "./sdk/clock.js";
export { Device } from "./sdk/device.js";
export { Fraction } from "./sdk/fraction.js";
export { IndexedDbStore } from "./sdk/indexeddb.js";
export { Ledger } from "./sdk/ledger.js";
export { NANO, oddsWithin } from "./sdk/odds.js";
export { ORACLES, oracleOf } from "./sdk/oracles.js";
export * from "./sdk/problems.js";
export { SystemSource } from "./sdk/randomness.js";
export { readAnnouncement, readRound } from "./sdk/rounds.js";
export { Silence, decide, selects } from "./sdk/rules.js";
export { MemoryStore } from "./sdk/store.js";
export { Terms } from "./sdk/terms.js";
export { HeldValue } from "./sdk/values.js";
