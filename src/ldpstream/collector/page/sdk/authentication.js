/** The MACs of what a device sends, as `protocol/authentication.py`, and the paths it sends to. */

import { hmacSha256, joined, toHex, utf8 } from "./bytes.js";

const MAC_BYTES = 16;

/** @param {string} stream where devices join and leave */
export const devicesPath = (stream) => `/v1/streams/${stream}/devices`;

/** @param {string} stream */
export const roundsPath = (stream) => `/v1/streams/${stream}/rounds`;

/** @param {string} stream @param {string} round */
export const reportsPath = (stream, round) => `${roundsPath(stream)}/${round}/reports`;

/** @param {string} stream @param {string} pin of one version of its terms */
export const termsPath = (stream, pin) => `/v1/streams/${stream}/terms/${pin}`;

/**
 * The three lines at the end of the prefix are level, attributes and group of the device: the last two
 * are empty.
 * @param {Uint8Array} key @param {string} stream @param {string} pin @param {string} round
 * @param {Uint8Array} report @param {string} [level]
 */
export const reportMac = (key, stream, pin, round, report, level = "") =>
  mac(key, joined(utf8(`ldpstream report 2\n${stream}\n${pin}\n${round}\n${level}\n\n\n`), report));

/** @param {Uint8Array} key @param {string} stream @param {number} after the serial asked from */
export const roundsMac = (key, stream, after) =>
  mac(key, utf8(`ldpstream rounds 2\n${roundsPath(stream)}\n${after}\n`));

/** @param {Uint8Array} key @param {string} stream */
export const leaveMac = (key, stream) =>
  mac(key, utf8(`ldpstream leave 2\n${devicesPath(stream)}\n`));

/** @param {Uint8Array} key @param {string} stream @param {string} pin of terms to be fetched */
export const termsMac = (key, stream, pin) =>
  mac(key, utf8(`ldpstream terms 2\n${termsPath(stream, pin)}\n`));

/** @param {Uint8Array} key the old one @param {string} stream in which the device asks for a new one */
export const renewMac = (key, stream) =>
  mac(key, utf8(`ldpstream renew 2\n${devicesPath(stream)}\n`));

/** @param {Uint8Array} number @param {Uint8Array} mac @returns {Record<string, string>} headers */
export const proof = (number, mac) => ({ "Ldp-Device": toHex(number), "Ldp-Mac": toHex(mac) });

/** @param {Uint8Array} key @param {Uint8Array} message @returns {Promise<Uint8Array>} */
async function mac(key, message) {
  return (await hmacSha256(key, message)).slice(0, MAC_BYTES);
}
