/**
 * The device. A service worker is stopped when it is idle: an alarm wakes it for the device's turn, and
 * everything that must outlive it is in the store.
 */

import { categoryOf } from "./categories.js";
import { Device, IndexedDbStore } from "./ldpstream/index.js";

const store = new IndexedDbStore("reading");
const WAIT_SECONDS = 20;

/** Take the device's turn, if it is near, and be woken up for the next one. */
async function attend(device) {
  const [tab] = await chrome.tabs.query({ active: true, lastFocusedWindow: true });
  device.observe(categoryOf(tab?.url));
  const { delivered } = await device.poll(WAIT_SECONDS);
  await chrome.alarms.create("turn", { when: Date.now() + ((await device.dueInMs()) ?? 0) });
  return delivered.length;
}

/** What the page of options may ask for. */
const REQUESTS = {
  async join({ url, token }) {
    return attend(await Device.join(store, url, "reading", { token, accept: "not-looser" }));
  },
  async leave() {
    await chrome.alarms.clear("turn");
    return (await Device.open(store)).leave();
  },
};

chrome.runtime.onMessage.addListener((request, sender, answer) => {
  REQUESTS[request.kind](request).then(
    (done) => answer({ done }),
    (fault) => answer({ fault: fault.message }),
  );
  return true; // the answer comes later
});

chrome.alarms.onAlarm.addListener(async () => attend(await Device.open(store)));
