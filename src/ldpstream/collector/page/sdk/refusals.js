/** How often what was refused, for people to read: in the memory, and not yet in it. */

/** @typedef {import("./memory.js").Memory} Memory */
/** @typedef {import("./memory.js").RefusalCount} RefusalCount */
/** @typedef {import("./problems.js").DeviceError} DeviceError */

/** Characters of a refusal that are stored: a collector has had a say in them. */
const LONGEST_DETAIL = 200;
/** In place of an enrolment's id: before there was one. */
const NOBODY = 0;

/** @param {Memory} memory @param {number} id @param {DeviceError} fault @param {number} nowMs */
export const addRefusal = (memory, id, fault, nowMs) => add(memory, counted(id, fault, nowMs));

/** @param {number} enrolment @param {DeviceError} fault @param {number} lastMs @returns {RefusalCount} */
const counted = (enrolment, { code, message }, lastMs) => ({
  enrolment,
  code,
  times: 1,
  lastMs,
  detail: message.slice(0, LONGEST_DETAIL),
});

/** @param {Memory} memory @param {RefusalCount} count */
function add(memory, count) {
  const { enrolment, code } = count;
  const known = memory.refusals.find((one) => one.enrolment === enrolment && one.code === code);
  if (known) Object.assign(known, { ...count, times: known.times + count.times });
  else memory.refusals.push(count);
}

/** The refusals of one stream that are not on disk yet. */
export class Refusals {
  /** @type {Map<string, RefusalCount>} */ #counts = new Map();
  /** @type {Set<string>} */ #told = new Set();

  /** @param {DeviceError} fault @param {number} nowMs @returns {boolean} whether it is the first of its kind */
  count(fault, nowMs) {
    const { code } = fault;
    const times = (this.#counts.get(code)?.times ?? 0) + 1;
    this.#counts.set(code, { ...counted(NOBODY, fault, nowMs), times });
    const isNew = !this.#told.has(code);
    this.#told.add(code);
    return isNew;
  }

  get size() {
    return this.#counts.size;
  }

  /** Put them into a memory that is about to be committed. @param {Memory} memory @param {number} id */
  put(memory, id) {
    for (const count of this.#counts.values()) add(memory, { ...count, enrolment: id });
    this.#counts.clear();
  }

  /** @param {Memory} memory @param {number} id @returns {RefusalCount[]} whether or not they are on disk */
  of({ refusals }, id) {
    const mine = refusals.filter(({ enrolment }) => enrolment === id || enrolment === NOBODY);
    const draft = /** @type {Memory} */ ({ refusals: structuredClone(mine) });
    for (const count of this.#counts.values()) add(draft, { ...count, enrolment: id });
    return draft.refusals;
  }

  clear() {
    this.#counts.clear();
    this.#told.clear();
  }
}
