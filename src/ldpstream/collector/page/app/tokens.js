/**
 * Tokens of this tab. They come from the fragment of a share link, which browsers do not send, or
 * are typed in; they live in sessionStorage and travel in a header only.
 */

const KEY = "ldpstream.tokens";

/** @returns {Record<string, string>} by stream; "*" is the admin's */
const all = () => JSON.parse(sessionStorage.getItem(KEY) ?? "{}");

/** @param {string} stream */
export const tokenFor = (stream) => all()[stream] ?? all()["*"];

export const adminToken = () => all()["*"];

/** @returns {string[]} streams that this tab has a link to */
export const sharedStreams = () => Object.keys(all()).filter((name) => name !== "*");

/** @param {string} stream @param {string} token an empty one forgets */
export function keepToken(stream, token) {
  const { [stream]: _, ...others } = all();
  sessionStorage.setItem(KEY, JSON.stringify(token ? { ...others, [stream]: token } : others));
}

export const forgetTokens = () => sessionStorage.removeItem(KEY);

/** Take the token out of `#/streams/NAME?token=...`, and out of the address and the history. */
export function takeTokenFromFragment() {
  const [path, query] = location.hash.split("?");
  const token = new URLSearchParams(query ?? "").get("token");
  if (!token) return;
  keepToken(decodeURIComponent(path.split("/")[2] ?? "*"), token);
  history.replaceState(null, "", `${location.pathname}${path}`);
}

/** @param {string} stream @param {string} token */
export const shareLink = (stream, token) =>
  `${location.origin}${location.pathname}#/streams/${encodeURIComponent(stream)}?token=${token}`;
