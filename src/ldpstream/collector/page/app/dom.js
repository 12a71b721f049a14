/** Making elements. Text goes in as text, always: there is no way here to pass markup. */

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, any>} Props attributes; `onclick` and the like are listeners
 */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Props} [props] @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...shown(children));
  return element;
}

/** @param {Child[]} children @returns {(Node | string)[]} strings become text nodes */
function shown(children) {
  return children
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/** @param {Element} parent @param {...Child} children */
export function fill(parent, ...children) {
  parent.replaceChildren(...shown(children));
}

/** An input below its name. @param {string} id of the input @param {string} name @param {HTMLElement} input it, or what it is in */
export const field = (id, name, input) => h("div", { class: "field" }, h("label", { for: id }, name), input);

/** A list to choose one text from. @param {Props} props @param {readonly string[]} texts */
export const choice = (props, texts) => h("select", props, ...texts.map((text) => h("option", {}, text)));

/** The head of a table. @param {readonly string[]} titles of its columns */
export const heads = (titles) =>
  h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title))));

/** What may be wider than the screen: it is scrolled by itself. @param {string} name @param {...Child} children */
export const scrolled = (name, ...children) =>
  h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, ...children);

/** Text in which what stands between backticks is code. @param {string} text @returns {Child[]} */
export const withCode = (text) =>
  text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));

/** Say something to whoever listens to the page. @param {string} text */
export function announce(text) {
  const announcer = document.getElementById("announcer");
  if (announcer && announcer.textContent !== text) announcer.textContent = text;
}

/** A canvas that is as sharp as the screen. @param {HTMLCanvasElement} canvas @param {number} height */
export function sharpen(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(canvas.clientWidth, 1);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** Run something at most once a frame. @param {() => void} act @returns {() => void} */
export function oncePerFrame(act) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      act();
    });
  };
}
