/** What can go wrong on a device: the entries of `ldpstream/errors.py` that it uses, word for word. */

/** @type {Readonly<Record<string, readonly [string, string]>>} */
export const PROBLEMS = Object.freeze({
  "terms-malformed": [
    "the collector's terms cannot be accepted: {what}",
    "correct the stream's configuration, or update the program on this device",
  ],
  "pin-differs": [
    "the collector offers terms with the pin {given}, but the expected pin is {expected}",
    "nothing was agreed to; read the pin on the collector's page again, and give that one if you" +
      " accept its terms",
  ],
  "terms-differ": [
    "the terms offered have the pin {given}, but those agreed to have {expected}",
    "nothing was sent; if the change is meant, enrol with a new ledger file",
  ],
  "level-unknown": [
    "the stream {stream} has no level {given}; its levels: {known}",
    "take one of these, or none for the stream's own epsilon and window",
  ],
  "successor-refused": [
    "the collector offers new terms with the pin {pin}, which are not accepted: {what}",
    "nothing changes for this device, until the collector ends the terms that it has; to accept" +
      " them, enrol with accept= a policy that allows them",
  ],
  "limit-too-small": [
    "the limit of {limit} nano-epsilon over all streams is too small: reserves and a report" +
      " take {needed}",
    "raise the limit, lower the reserves, or leave a stream",
  ],
  "limit-spent": [
    "the limit over all streams never allows the {asked} nano-epsilon of a report in {stream}",
    "raise the limit, lower other streams' reserves, or leave the stream",
  ],
  "several-streams": [
    "{file} has the streams {streams}",
    "name one: device.stream(name), or device.stream(name, url)",
  ],
  "stream-not-enrolled": [
    "{file} is not enrolled in {stream}; it has {streams}",
    "call enrol(url, stream, token) once",
  ],
  "stream-elsewhere": [
    "{file} is enrolled in {stream} at {place}, under these or other terms of that stream",
    "if that collector has moved here, enrol with moved_from= its address; otherwise leave it first",
  ],
  "answer-malformed": [
    "the collector's answer ({what}) is {given}",
    "check that the address is that of an ldpstream collector",
  ],
  "round-malformed": ["a round's {field} is {given}", "the collector must follow docs/protocol.md"],
  "round-ahead": [
    "round {round} is for t={t}, but by this device's clock it is t={now}",
    "nothing to do: the device takes the time from the collector's next announcement",
  ],
  "round-past": [
    "round {round} is for t={t}, but by this device's clock it is t={now}",
    "nothing to do: a value is reported only for the timestamp at which it is held",
  ],
  "budget-spent": [
    "round {round} asks for {asked} nano-epsilon at t={t}, but only {left} are left",
    "wait until earlier spends leave the window: ldpstream device status FILE",
  ],
  "too-many-rounds": [
    "round {round} is one more than the {most} that this device answers in a window",
    "ask at most twice at a timestamp",
  ],
  "past-unknown": [
    "the ledger is new, from release 0.1.0, or may be a restored copy: all epsilon counts as spent",
    "this device is silent until {span} of its own time have passed",
  ],
  "value-unusable": [
    "the value to report is {what}",
    "{instead} is reported instead, so that silence reveals nothing; give a value of the stream",
  ],
  "ledger-file": ["{file}: {what}", "the device is silent until its file can be written"],
  "ledger-missing": [
    "there is no device in {file}",
    "an installer makes it, once: Device.create(path, first_install=True)",
  ],
  "ledger-exists": [
    "{file} already exists",
    "open the device in it: Device.open(path); if it is empty, delete it first",
  ],
  "ledger-replaced": [
    "{file} was replaced by another device's file while this device enrolled",
    "open it again, and enrol",
  ],
  "not-enrolled": ["{file} is not enrolled", "call enrol(url, stream, token) once"],
  "plain-http": [
    "{url} is not encrypted, and whoever reads an enrolment can report in the device's name",
    "use https, or allow plain http where the network is trusted: plain_http=True, --plain-http",
  ],
  unreachable: ["{url} does not answer: {what}", "check the address and the network"],
  "collector-refused": ["the collector refused {what}: {status} {code}", "{detail}"],
  option: ["{option} is {given}", "give {expected}"],
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

/** No answer. Whether the request arrived is not known. */
export class Unreachable extends DeviceError {}

/** @param {unknown} value @param {number} [most] @returns {string} what a stranger sent, short, for a message */
export function shown(value, most = 60) {
  let text;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    text = "something that cannot be shown";
  }
  return text.length <= most ? text : `${text.slice(0, most - 3)}...`;
}
