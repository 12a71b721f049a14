/** From the address of a page to one of the stream's labels: the only thing that a report is made of. */

/** @type {Record<string, string[]>} parts of host names, by label */
const HOSTS = {
  news: ["news", "times", "post"],
  search: ["search", "duckduckgo", "google"],
  shop: ["shop", "store", "market"],
  social: ["social", "reddit", "facebook"],
};

/** The label for pages of no category, and for no page at all. */
export const OTHER = "other";

/** @param {string | undefined} address @returns {string} */
export function categoryOf(address) {
  const host = URL.canParse(address ?? "") ? new URL(address ?? "").hostname : "";
  const found = Object.entries(HOSTS).find(([, parts]) => parts.some((part) => host.includes(part)));
  return found ? found[0] : OTHER;
}
