/**
 * The clocks of a machine, for Node. The steady one counts from the boot, sleep included, so that own
 * time goes on while the process is not there.
 */

import { readFileSync, readlinkSync } from "node:fs";
import { uptime } from "node:os";

/** For so long the first look waits for the system's counter to move. */
const LONGEST_TICK_MS = 15;

/** By how much the uptime is ahead of `performance.now()`, at least: it tells ticks, of 10 ms on Linux. */
let aheadMs = -Infinity;

/**
 * Count from the boot as finely as `performance.now()`, and never ahead: a mark that one process makes
 * too early would be time that another one gains.
 */
function steadyMs() {
  if (aheadMs === -Infinity) {
    const [first, began] = [uptime(), performance.now()];
    while (uptime() === first && performance.now() - began < LONGEST_TICK_MS);
  }
  const nowMs = performance.now();
  // It grows by sleep, which `performance.now()` leaves out.
  aheadMs = Math.max(aheadMs, uptime() * 1000 - nowMs);
  return nowMs + aheadMs;
}

/** @type {string | null | undefined} */
let boot;

/** @returns {string | null} a name that no other boot has; null where the platform gives none */
function bootOfThisMachine() {
  if (boot === undefined) {
    try {
      // A container may have a steady clock of its own, counted from another moment.
      const clocks = readlinkSync("/proc/self/ns/time");
      boot = `${readFileSync("/proc/sys/kernel/random/boot_id", "ascii").trim()}/${clocks}`;
    } catch {
      boot = null;
    }
  }
  return boot;
}

/** @type {import("../clock.js").Clock} */
export const bootClock = { wallMs: () => Date.now(), steadyMs, boot: bootOfThisMachine };
