/** A program that uses what the package declares: it must compile, and what is marked must not. */

import { Device, DeviceError, FileStore, MemoryStore, Refused, type Heard, type Store } from "ldpstream";
import { IndexedDbStore } from "ldpstream/browser";

export async function takePart(where: "file" | "page"): Promise<number> {
  const store: Store = where === "file" ? new FileStore("a.ldp") : new IndexedDbStore("a");
  const device = await Device.create(store, { firstInstall: true, warn: (one) => one.code });
  const joined: Device = await Device.join(new MemoryStore(), "https://a.example", "regions", { token: "t", level: "", firstInstall: false });
  await joined.close();
  const terms = await device.enrol("https://a.example", "regions", "", { pin: "0", plainHttp: false });
  device.observe(terms.labels?.[0] ?? null);
  await device.enrol("https://b.example", "others", "", {
    level: terms.levels[0]?.name ?? "",
    accept: { accept: "not-looser", leastEpsilon: 0.1 },
    reserve: 0.5,
  });
  await device.setLimit({ epsilon: 2, span: "24h" });
  for (const stream of device.streams) await stream.reserve(device.limit ? 0.5 : 0);
  device.stream("others").follow(() => device.stream("regions", "https://a.example").status().level);
  device.observe(21.5);
  device.describe({ country: "de", firmware: terms.attributes[0]?.values[0] ?? "other" });
  device.stream("others").describe({});
  console.log(terms.query === "vocabulary" ? terms.vocabulary?.bits : 0);
  device.follow(() => "north");
  const heard: Heard = await device.poll(10, AbortSignal.timeout(1));
  for (const { round, report } of heard.delivered) console.log(round.t, report.length);
  const fault: DeviceError | undefined = heard.undelivered[0];
  if (fault instanceof Refused) console.log(fault.code, fault.facts.status);
  await device.run(new AbortController().signal, (one) => one.silences.map(({ why }) => why));
  const told: boolean = await device.leave();
  await device.close();
  return told ? ((await device.dueInMs()) ?? 0) : device.status().leftNano;
}

// @ts-expect-error: a device is made by create or open
new Device();
// @ts-expect-error: neither a label nor a number
(await Device.open(new MemoryStore())).observe({});
// @ts-expect-error: an attribute has one value, a text
(await Device.open(new MemoryStore())).describe({ country: ["de"] });
// @ts-expect-error: no such policy
await (await Device.open(new MemoryStore())).enrol("https://a.example", "regions", "", { accept: "always" });
// @ts-expect-error: a path is no store
await Device.open("a.ldp");
