/** Fingers on a picture of time: one moves it, two zoom it. What a finger is on stays under it. */

/** @typedef {{left: number, width: number}} Area the picture's, in pixels of the window */
/** @typedef {{x: number, t: number}} Held where a finger is, and the timestamp that it holds */

const LEAST_MOVE = 6; // pixels, before a touch is more than a tap

/**
 * @param {HTMLElement} element @param {import("./view.js").View} view @param {() => Area} area
 */
export function onTouch(element, view, area) {
  /** @type {Held[]} */ let held = [];
  let moving = false;

  const take = (/** @type {TouchEvent} */ event) => {
    const { left, width } = area();
    const { from, to } = view.range;
    held = Array.from(event.touches).map(({ clientX: x }) => ({
      x,
      t: from + ((x - left) / Math.max(width, 1)) * (to - from),
    }));
    moving = held.length > 1;
  };
  const move = (/** @type {TouchEvent} */ event) => {
    const places = Array.from(event.touches).map(({ clientX }) => clientX);
    moving ||= Math.abs(places[0] - held[0].x) > LEAST_MOVE;
    if (!moving || places.length !== held.length || places.length > 2) return;
    event.preventDefault();
    const range = moved(held, places, area(), view.range);
    if (range) view.show(range.from, range.to);
  };
  element.addEventListener("touchstart", take, { passive: true });
  element.addEventListener("touchend", take, { passive: true });
  element.addEventListener("touchmove", move, { passive: false });
}

/**
 * The range in which the timestamps held are where the fingers are now.
 * @param {Held[]} held one or two @param {number[]} places @param {Area} area
 * @param {{from: number, to: number}} range that of now, whose length one finger keeps
 */
export function moved(held, places, { left, width }, range) {
  let pace = (range.to - range.from) / Math.max(width, 1); // timestamps a pixel
  if (held.length === 2) {
    const apart = places[1] - places[0];
    if (Math.abs(apart) < 8 || Math.sign(apart) !== Math.sign(held[1].t - held[0].t)) return null;
    pace = (held[1].t - held[0].t) / apart;
  }
  const from = held[0].t - (places[0] - left) * pace;
  return { from, to: from + width * pace };
}
