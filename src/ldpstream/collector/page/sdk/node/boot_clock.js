/**
 * The clocks of a machine, for Node. The steady one counts from the boot, sleep included, so that own
 * time goes on while the process is not there.
 */

import { readFileSync, readlinkSync } from "node:fs";
import { uptime } from "node:os";

/** For so long the first look watches the system's counter, so that it sees it move. */
const LONGEST_TICK_MS = 15;
/** Less than a tick; what passes between two reads that belong together. */
const AT_ONCE_MS = 1;
/** A process that is stopped again and again does without: what it measured before is still right. */
const MOST_TRIES = 8;

/** By how much the uptime is ahead of `performance.now()`, at least: it tells ticks, of 10 ms on Linux. */
let aheadMs = -Infinity;

/**
 * Measure by how much the uptime is ahead; it grows by sleep, which `performance.now()` leaves out. A process
 * may be stopped between two reads: what has passed then must not be taken for sleep, in either direction.
 */
function measure() {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const up = uptime();
    const nowMs = performance.now();
    if ((uptime() - up) * 1000 >= AT_ONCE_MS) continue;
    aheadMs = Math.max(aheadMs, up * 1000 - nowMs);
    return;
  }
}

/**
 * Count from the boot as finely as `performance.now()`, and never ahead: a mark that one process makes
 * too early would be time that another one gains.
 */
function steadyMs() {
  if (aheadMs === -Infinity) {
    const began = performance.now();
    while (aheadMs === -Infinity || performance.now() - began < LONGEST_TICK_MS) measure();
  }
  measure();
  return performance.now() + aheadMs;
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
