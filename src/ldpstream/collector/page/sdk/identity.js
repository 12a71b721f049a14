/** The identity of a device: a number that is bound to its secret, as `protocol/identity.py`. */

import { hmacSha256, joined, sha256, utf8 } from "./bytes.js";
import { DeviceError, shown } from "./problems.js";

const NUMBER_BYTES = 16;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * Check the address of a collector before a secret is shown there.
 * @param {string} url @param {boolean} plainHttp whether plain http is allowed to any host
 * @returns {string} its origin and path, which tell apart the collectors of one host
 */
export function readAddress(url, plainHttp) {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  const { username, password, search } = parsed ?? {};
  if (!parsed || !/^https?:$/.test(parsed.protocol) || username || password || search) {
    const given = shown(String(url).replace(/^.*@/s, "")); // never a password
    const expected = "its http(s) URL, without user and password";
    throw new DeviceError("option", { option: "the collector", given, expected });
  }
  if (parsed.protocol === "http:" && !plainHttp && !LOOPBACK.test(parsed.hostname)) {
    throw new DeviceError("plain-http", { url: parsed.origin });
  }
  return `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, "");
}

/**
 * Return the secret of a device's enrolment in a stream: each has one of its own, so that coins and numbers
 * of two streams have nothing in common, and leaving one forgets it.
 * @param {Uint8Array} secret of the device @param {string} place @param {string} stream
 */
export const streamSecret = (secret, place, stream) =>
  hmacSha256(secret, utf8(`ldpstream stream secret 3\n${place}\n${stream}`));

/**
 * Return what a device shows to enrol in a stream of the collector at this place.
 * @param {Uint8Array} secret @param {string} place @param {string} stream
 * @param {number} rejoins how often the device has left a stream
 */
export const enrolmentSecret = (secret, place, stream, rejoins) =>
  hmacSha256(secret, utf8(`ldpstream enrol 2\n${place}\n${stream}\n${rejoins}`));

/** @param {Uint8Array} shownSecret @returns {Promise<Uint8Array>} the number of who shows this */
export async function numberOf(shownSecret) {
  const digest = await sha256(joined(utf8("ldpstream number 2\n"), shownSecret));
  return digest.slice(0, NUMBER_BYTES);
}
