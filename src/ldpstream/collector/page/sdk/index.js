/**
 * The device SDK for JavaScript, without dependencies, for pages, workers and extensions. Node has an
 * entry point of its own, `node.js`, with a store in a file.
 *
 *     import { Device, IndexedDbStore } from "ldpstream";
 *     const store = new IndexedDbStore("regions");
 *     const device = await Device.create(store, { firstInstall: true }); // later: Device.open(store)
 *     await device.enrol("https://collector.example", "regions", token);
 *     device.observe("north");
 *     await device.run(stopping.signal, (heard) => console.log(heard));
 *
 * It keeps the seven rules of docs/device.md: whatever the collector asks, the sum of epsilon over
 * any span of w intervals stays within the terms pinned at enrolment, and a debit is on disk before
 * its report leaves. A device may take part in several streams, under one limit over all of them. How long
 * it was closed, a page knows from the wall clock only.
 */

export { Device } from "./device.js";
export { IndexedDbStore } from "./indexeddb.js";
export { DeviceError, LedgerUnusable, Refused, TermsRefused, Unreachable } from "./problems.js";
export { MemoryStore } from "./store.js";
