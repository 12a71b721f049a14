/** How a device agrees on a stream's terms with a collector. */

import { devicesPath } from "./authentication.js";
import { toHex } from "./bytes.js";
import { LARGEST_ANSWER, readKeys, readObject, refusalIn } from "./exchange.js";
import { numberOf, readAddress } from "./identity.js";
import { insist } from "./insist.js";
import { nanoOf } from "./limit.js";
import { readNotice } from "./notice.js";
import { LARGEST_NANO } from "./odds.js";
import { DeviceError, TermsRefused, shown } from "./problems.js";
import { Policy } from "./succession.js";
import { TERMS_FORMAT, Terms, isStreamName } from "./terms.js";
import { isLevelName } from "./strata.js";
import { whole } from "./wholes.js";

/**
 * @typedef {object} EnrolOptions
 * @property {string} [pin] accept these terms only
 * @property {boolean} [plainHttp] show the secret of the enrolment to whoever reads along
 * @property {string} [level] of privacy; "": the stream's own; without it, that of before
 * @property {import("./succession.js").Agreement | string} [accept] which successors of the terms; without
 *   it, as before, and none at first
 * @property {number} [reserve] epsilon of the limit over all streams that others leave to this one
 * @property {string} [movedFrom] the address that the stream had before: without it, the same stream at a second
 *   address is refused
 * @property {AbortSignal} [signal]
 */
/** @typedef {import("./wallet.js").Wallet} Wallet */

const PROTOCOL = 2;
/** If a collector asks for a longer pause, an enrolment fails and says so. */
const LONGEST_PAUSE_MS = 60_000;
const TRIES = 6;

/**
 * Agree on a stream's terms; return the id of the enrolment, and the collector's time.
 * @param {Wallet} wallet @param {import("./insist.js").Io} io
 * @param {string} url @param {string} stream @param {string} token @param {EnrolOptions} options
 */
export async function enrol(wallet, io, url, stream, token, options) {
  const { pin, plainHttp = false, accept, reserve, signal } = options;
  checkNames(stream, token, options.level);
  const wishes = {
    ...(accept !== undefined && { policy: Policy.read(accept).agreed }),
    ...(reserve !== undefined && { reserveNano: readReserve(reserve) }),
  };
  const place = readAddress(url, plainHttp);
  const movedFrom = options.movedFrom === undefined ? null : readAddress(options.movedFrom, true);
  await wallet.load();
  const level = options.level ?? levelBefore(wallet, [place, movedFrom ?? place], stream);
  const introduced = await wallet.introduction(place, stream);
  /** @type {Record<string, string>} */
  const authorised = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await insist(
    io,
    {
      url: place,
      path: devicesPath(stream),
      method: "POST",
      headers: { ...authorised, "Content-Type": "application/json" },
      body: enrolmentBody(toHex(introduced.shown), level),
    },
    { giveUp: (failures, ms) => failures >= TRIES || ms > LONGEST_PAUSE_MS, pause: io.sleep, signal },
  );
  if (response.status !== 200 && response.status !== 201) throw refusalIn(response, "the enrolment");
  const answer = readObject(response, "enrolment", LARGEST_ANSWER);
  const terms = await readOffer(answer, stream, pin);
  const number = await numberOf(introduced.shown);
  const offered = { url: place, number, ...readKeys(answer, number), atMs: wallet.clock.wallMs() };
  const how = { movedFrom, asBefore: options.level === undefined };
  const id = await wallet.enrol(introduced, terms.atLevel(level), offered, wishes, how);
  return { id, notice: readNotice(answer) };
}

/** @param {string} stream @param {string} token @param {string | undefined} level */
function checkNames(stream, token, level) {
  if (!isStreamName(stream)) {
    const expected = "a stream's name: letters, digits, '.', '_' and '-'";
    throw new DeviceError("option", { option: "the stream", given: shown(stream), expected });
  }
  if (typeof token !== "string" || !/^[ -~]*$/.test(token)) {
    // Not shown: it is a secret, if a broken one.
    const given = typeof token === "string" ? "unprintable" : "no text";
    const expected = "plain ASCII, or nothing if anyone may enrol";
    throw new DeviceError("option", { option: "the token", given, expected });
  }
  if (level !== undefined && level !== "" && !isLevelName(level)) {
    const expected = "the name of one of the stream's levels";
    throw new DeviceError("option", { option: "the level", given: shown(level), expected });
  }
}

/** @param {unknown} epsilon @returns {number} nano-epsilon */
export function readReserve(epsilon) {
  const nano = nanoOf(epsilon);
  if (whole(nano, 0, LARGEST_NANO)) return nano;
  const expected = "a number from 0 to 32";
  throw new DeviceError("option", { option: "the reserve", given: shown(epsilon), expected });
}

/** @param {Wallet} wallet @param {string[]} places @param {string} stream the level here, or where the stream was */
const levelBefore = (wallet, places, stream) =>
  places.map((place) => wallet.at(place, stream)).find((known) => known)?.level ?? "";

/** @param {Record<string, any>} answer @param {string} stream @param {string | undefined} pin */
async function readOffer(answer, stream, pin) {
  const terms = await Terms.read(answer.terms);
  for (const wanted of [answer.pin, pin]) {
    if (wanted != null && wanted !== terms.pin) {
      throw new TermsRefused("pin-differs", { given: terms.pin, expected: shown(wanted) });
    }
  }
  if (terms.stream !== stream) {
    throw new TermsRefused("terms-malformed", { what: `they are of the stream ${terms.stream}` });
  }
  return terms;
}

/** @param {string} secret in hexadecimal digits @param {string} level collectors of 0.2.0 overlook it */
export const enrolmentBody = (secret, level) =>
  JSON.stringify({ secret, version: PROTOCOL, terms: TERMS_FORMAT, ...(level && { level }) });
