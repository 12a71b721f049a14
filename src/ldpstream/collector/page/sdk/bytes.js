/** Bytes, hex digits and keyed hashes. */

const encoder = new TextEncoder();

/** @param {string} text @returns {Uint8Array} its UTF-8 */
export const utf8 = (text) => encoder.encode(text);

/** @param {Uint8Array} bytes @returns {string} two lower-case digits a byte */
export const toHex = (bytes) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {string} digits @returns {Uint8Array} */
export function fromHex(digits) {
  if (digits.length % 2 || /[^0-9a-fA-F]/.test(digits)) throw new TypeError("not hex digits");
  return Uint8Array.from({ length: digits.length / 2 }, (_, at) =>
    Number.parseInt(digits.slice(2 * at, 2 * at + 2), 16),
  );
}

/** @param {...Uint8Array} parts @returns {Uint8Array} */
export function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** @param {Uint8Array} bytes @returns {bigint} most significant byte first */
export const toBigInt = (bytes) => (bytes.length ? BigInt(`0x${toHex(bytes)}`) : 0n);

/** @param {number} length @returns {Uint8Array} drawn by the operating system */
export const randomBytes = (length) => globalThis.crypto.getRandomValues(new Uint8Array(length));

/** @param {Uint8Array} bytes @returns {BufferSource} none here is shared between threads */
const buffer = (bytes) => /** @type {Uint8Array<ArrayBuffer>} */ (bytes);

/** @param {Uint8Array} bytes @returns {Promise<Uint8Array>} */
export async function sha256(bytes) {
  return new Uint8Array(await globalThis.crypto.subtle.digest("SHA-256", buffer(bytes)));
}

/** @param {Uint8Array} key @param {Uint8Array} message @returns {Promise<Uint8Array>} */
export async function hmacSha256(key, message) {
  const { subtle } = globalThis.crypto;
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await subtle.importKey("raw", buffer(key), algorithm, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", imported, buffer(message)));
}
