/**
 * Let the SDK of release 0.2.0 keep a device in a file, and this one go on from it.
 *
 *     node goes_on.mjs OLD_SDK FILE created|enrolled|reported|left
 */

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

import * as now from "./inside.js";
import { vectors } from "./support.js";

const [path, file, kind] = process.argv.slice(2);
const old = await import(pathToFileURL(path).href);
const [{ sent: terms, pin }] = vectors.terms; // window 4, interval 1000 ms, epsilon 1
const clock = { ms: terms.start_ms + 100, steady: 5000 };
const sent = [];
let round = null;

async function fetcher(address, request) {
  const { pathname } = new URL(address);
  if (pathname.endsWith("/devices")) {
    if (request.method === "DELETE") return Response.json({});
    const device = now.toHex(await now.numberOf(now.fromHex(JSON.parse(request.body).secret)));
    return Response.json({ terms, pin, device, key: "ab".repeat(32), now_ms: clock.ms }, { status: 201 });
  }
  if (pathname.endsWith("/rounds")) {
    const rounds = round ? [round] : [];
    return Response.json({ serial: sent.length + 1, pin, rounds, now_ms: clock.ms });
  }
  sent.push({ body: now.toHex(request.body), number: request.headers["Ldp-Device"] });
  return Response.json({ now_ms: clock.ms }, { status: 202 });
}

const parts = {
  clock: { wallMs: () => clock.ms, steadyMs: () => clock.steady, boot: () => "this boot" },
  fetcher,
  sleep: async () => undefined,
};
const ask = (t) => {
  round = { round: `${t}-publication`, t, epsilon_nano: 10 ** 9, deadline_ms: 2 ** 50, rate: [1, 1] };
};
const formatOf = () => JSON.parse(readFileSync(file, "utf8")).format;
const enrol = (device) => device.enrol("https://collector", "regions", "");

const kept = await old.Device.create(new old.FileStore(file), { ...parts, firstInstall: true });
if (kind !== "created") await enrol(kept);
kept.observe("south");
ask(1);
if (kind === "reported" || kind === "left") await kept.poll();
const number = kind === "created" ? null : kept.status().number;
if (kind === "left") await kept.leave();
await kept.close();
const before = formatOf();

const store = new now.FileStore(file);
const device = await now.Device.open(store, parts);
device.observe("north");
const first = sent[0];
if (!device.terms) await enrol(device);
const { number: numberNow, leftNano } = device.status();
const count = sent.length;
if (kind === "reported") await device.poll();
const again = sent.length > count && sent.at(-1).body === first?.body && sent.at(-1).number === first.number;
clock.ms += 4000;
clock.steady += 4000;
ask(5);
const { delivered } = await device.poll();
await device.close();
const refused = await old.Device.open(new old.FileStore(file), parts).catch(({ message }) => message);
console.log(
  JSON.stringify({
    before,
    after: formatOf(),
    same_number: numberNow === number,
    left_nano: leftNano,
    answered_again: again,
    sent_after_a_window: delivered.length,
    old_program: String(refused),
  }),
);
