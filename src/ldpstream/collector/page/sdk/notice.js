/** The notice, as `protocol/notice.py`: what every answer to a report tells a device besides. */

import { isPin } from "./strata.js";
import { LATEST_MS, isObject, whole } from "./wholes.js";

/**
 * What a collector wants its devices to know; none of it is trusted, and all may be absent.
 * @typedef {object} Notice
 * @property {number | null} nowMs the time by its clock, which says which timestamp it is
 * @property {string | null} successor the pin of the terms that follow those of the report
 * @property {boolean} renew whether the device's key is of a master secret that is being replaced
 * @property {"paused" | "retired" | null} halt why the stream takes no reports; null: it does
 */

/** @param {unknown} answer @returns {Notice} what is malformed counts as absent */
export function readNotice(answer) {
  const { now_ms: nowMs, successor, renew, halt } = isObject(answer) ? answer : {};
  return {
    nowMs: whole(nowMs, 0, LATEST_MS) ? nowMs : null,
    successor: isPin(successor) ? successor : null,
    renew: renew === true,
    halt: halt === "paused" || halt === "retired" ? halt : null,
  };
}
