/** A device in Node that enrols at a real collector and reports once: url, stream, token. */

import { Device, MemoryStore } from "../../../src/ldpstream/collector/page/ldpstream.js";

const [url, stream, token] = process.argv.slice(2);
const device = await Device.create(new MemoryStore(), { firstInstall: true });
await device.enrol(url, stream, token);
device.observe(0);
const done = new AbortController();
await device.run(
  done.signal,
  (heard) => heard.delivered.length && done.abort(),
  (fault) => {
    console.error(fault.message);
    process.exit(1);
  },
);
console.log(device.status().number);
