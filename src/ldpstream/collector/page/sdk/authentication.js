/** The MACs of what a device sends, as `protocol/authentication.py`, and the paths it sends to. */

import { hmacSha256, joined, utf8 } from "./bytes.js";

const MAC_BYTES = 16;

/** @param {string} stream where devices join and leave */
export const devicesPath = (stream) => `/v1/streams/${stream}/devices`;

/** @param {string} stream */
export const roundsPath = (stream) => `/v1/streams/${stream}/rounds`;

/** @param {string} stream @param {string} round */
export const reportsPath = (stream, round) => `${roundsPath(stream)}/${round}/reports`;

/**
 * Level, attributes and group of the device are the three empty lines.
 * @param {Uint8Array} key @param {string} stream @param {string} pin @param {string} round
 * @param {Uint8Array} report
 */
export const reportMac = (key, stream, pin, round, report) =>
  mac(key, joined(utf8(`ldpstream report 2\n${stream}\n${pin}\n${round}\n\n\n\n`), report));

/** @param {Uint8Array} key @param {string} stream @param {number} after the serial asked from */
export const roundsMac = (key, stream, after) =>
  mac(key, utf8(`ldpstream rounds 2\n${roundsPath(stream)}\n${after}\n`));

/** @param {Uint8Array} key @param {string} stream */
export const leaveMac = (key, stream) =>
  mac(key, utf8(`ldpstream leave 2\n${devicesPath(stream)}\n`));

/** @param {Uint8Array} key @param {Uint8Array} message @returns {Promise<Uint8Array>} */
async function mac(key, message) {
  return (await hmacSha256(key, message)).slice(0, MAC_BYTES);
}
