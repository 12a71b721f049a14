/**
 * The device SDK for Node 20 or later: all of `index.js`, and a store in a file.
 *
 *     import { Device, FileStore } from "ldpstream";
 *     const store = new FileStore("telemetry.ldp");
 *     const device = await Device.create(store, { firstInstall: true }); // later: Device.open(store)
 */

export * from "./index.js";
export { FileStore } from "./node/file_store.js";
