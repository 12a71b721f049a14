/** Light and dark: the system's choice, until the reader makes another. */

const KEY = "ldpstream.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
/** @type {Set<() => void>} */
const listeners = new Set();

export const isDark = () =>
  (localStorage.getItem(KEY) ?? (dark.matches ? "dark" : "light")) === "dark";

function apply() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  const button = document.getElementById("theme");
  if (button) {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  }
  for (const listener of listeners) listener();
}

export function startTheme() {
  dark.addEventListener("change", apply);
  document.getElementById("theme")?.addEventListener("click", () => {
    localStorage.setItem(KEY, isDark() ? "light" : "dark");
    apply();
  });
  apply();
}

/** @param {() => void} listener @param {AbortSignal} signal */
export function onTheme(listener, signal) {
  listeners.add(listener);
  signal.addEventListener("abort", () => listeners.delete(listener));
}

/** @param {string} name of a custom property of style.css */
export const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export const CURVES = 8;

/** @param {number} slot @param {number} [opacity] the colour of a curve */
export function curveColour(slot, opacity = 1) {
  const hex = colour(`curve-${(slot % CURVES) + 1}`);
  return opacity === 1
    ? hex
    : hex +
        Math.round(255 * opacity)
          .toString(16)
          .padStart(2, "0");
}

/** From little to much: stops of a ramp whose lightness goes one way. */
const RAMPS = {
  dark: [
    [22, 27, 46],
    [37, 52, 110],
    [32, 99, 155],
    [30, 152, 150],
    [110, 200, 110],
    [253, 231, 76],
  ],
  light: [
    [246, 248, 253],
    [205, 222, 245],
    [140, 185, 228],
    [74, 135, 200],
    [46, 84, 164],
    [30, 38, 100],
  ],
};

/** @returns {Uint8ClampedArray} 256 colours, three numbers each */
export function ramp() {
  const stops = RAMPS[isDark() ? "dark" : "light"];
  const colours = new Uint8ClampedArray(256 * 3);
  for (let at = 0; at < 256; at += 1) {
    const place = (at / 255) * (stops.length - 1);
    const stop = Math.min(Math.floor(place), stops.length - 2);
    for (let part = 0; part < 3; part += 1) {
      const [from, to] = [stops[stop][part], stops[stop + 1][part]];
      colours[3 * at + part] = from + (to - from) * (place - stop);
    }
  }
  return colours;
}
