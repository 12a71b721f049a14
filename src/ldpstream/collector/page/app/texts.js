/** The texts of an open vocabulary: each release lists its own, and here each has a place for as long as it is shown. */

/** More are not remembered: then those give way that were listed longest ago. */
export const MOST_TEXTS = 512;
/** The place of all texts that a release does not list. */
export const REST = 0;
/** What a release says of a text that it does not list. */
const REST_NAME = "all other texts";
/** What would break a line, or turn the direction of all that follows. */
const UNSHOWN = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

export class Texts {
  /** How they are shown, by place. */
  names = [REST_NAME];
  /** How often a place was given to another text. */
  changes = 0;
  /** Places that do not give way. @type {Set<number>} */ kept = new Set();
  /** @type {Map<string, number>} */ #places = new Map();
  /** By place, the last timestamp that lists it. */ #listed = [Infinity];

  /**
   * Return the places of the texts of a release; -1 where there is no room.
   * @param {string[]} texts @param {number} t @param {(place: number) => void} forget another text has it now
   */
  placesOf(texts, t, forget) {
    for (const text of texts) {
      const place = this.#places.get(text);
      if (place !== undefined) this.#listed[place] = Math.max(this.#listed[place], t);
    }
    return Int32Array.from(texts, (text) => this.#places.get(text) ?? this.#made(text, t, forget));
  }

  /** @param {string} text @param {number} t @param {(place: number) => void} forget */
  #made(text, t, forget) {
    let place = this.names.length;
    if (place === MOST_TEXTS) {
      place = this.#oldest;
      if (this.#listed[place] >= t) return -1;
      for (const [known, at] of this.#places) if (at === place) this.#places.delete(known);
      forget(place);
    }
    this.#places.set(text, place);
    this.names[place] = shownText(text);
    this.#listed[place] = t;
    this.changes += 1;
    return place;
  }

  get #oldest() {
    let oldest = REST;
    this.#listed.forEach((t, place) => {
      if (t < this.#listed[oldest] && !this.kept.has(place)) oldest = place;
    });
    return oldest;
  }
}

/** @param {string} text of a stranger @returns {string} the same as one line, that leaves its surroundings alone */
export const shownText = (text) => (text === "" ? "(no text)" : text.replaceAll(UNSHOWN, "·"));
