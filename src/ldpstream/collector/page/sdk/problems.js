/** What can go wrong on a device: the entries of `ldpstream/errors.py` that it uses, word for word. */

/** @type {Readonly<Record<string, readonly [string, string]>>} */
export const PROBLEMS = Object.freeze({
  "value-range": ["value {given} is outside the domain of {labels} labels", "give 0 to {last}"],
  "terms-malformed": [
    "the collector's terms cannot be accepted: {what}",
    "correct the stream's configuration, or update the program on this device",
  ],
  "terms-differ": [
    "the terms offered have the pin {given}, and those agreed to have {expected}",
    "nothing was sent; if the change is meant, enrol with a new ledger file",
  ],
  "answer-malformed": [
    "the collector's answer ({what}) is {given}",
    "check that the address is that of an ldpstream collector",
  ],
  "round-malformed": ["a round's {field} is {given}", "the collector must follow docs/protocol.md"],
  "round-ahead": [
    "round {round} is of t={t}, and by this device's clock it is t={now}",
    "set the clocks of device and collector; a clock that is right needs nothing",
  ],
  "round-past": [
    "round {round} is of t={t}, and this device is at t={now}",
    "time goes forward only; set the clocks of device and collector if they disagree",
  ],
  "budget-spent": [
    "round {round} asks for {asked} nano-epsilon at t={t}, and {left} are left",
    "wait until earlier spends leave the window: ldpstream device status FILE",
  ],
  "past-unknown": [
    "{why}, so everything up to t={t} counts as spent",
    "this device is silent until t={until}",
  ],
  "ledger-file": ["{file}: {what}", "the device is silent until its file can be written"],
  "ledger-moved": ["{file} was written by another process", "run one process a file"],
  "not-enrolled": ["{file} is not enrolled", "call enrol(url, stream, token) once"],
  unreachable: ["{url} does not answer: {what}", "check the address and the network"],
  "collector-refused": ["the collector refused {what}: {status} {code}", "{detail}"],
});

/** Any error of a device: an entry of the catalogue and the facts of the case. */
export class DeviceError extends Error {
  /** @param {string} code @param {Record<string, unknown>} [facts] */
  constructor(code, facts = {}) {
    const template = PROBLEMS[code].join("; ");
    super(template.replace(/\{(\w+)\}/g, (_, name) => String(facts[name])));
    this.name = new.target.name;
    this.code = code;
    this.facts = facts;
  }
}

/** The device said no to something that the collector asked, and sent nothing. */
export class Refused extends DeviceError {}

/** The collector wants something that this device did not, or cannot, agree to. */
export class TermsRefused extends DeviceError {}

/** The ledger cannot be read or written, so the device keeps silent. */
export class LedgerUnusable extends DeviceError {}

/** Another page has written to the ledger since this one read it. */
export class LedgerMoved extends DeviceError {}

/** No answer. Whether the request arrived is not known. */
export class Unreachable extends DeviceError {}

/** @param {unknown} value @returns {string} what a stranger sent, short, for a message */
export function shown(value) {
  let text;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    text = "something that cannot be shown";
  }
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}
