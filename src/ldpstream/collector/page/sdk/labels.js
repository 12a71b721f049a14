/** The oracles whose report is one number: GRR and Hadamard response. */

import { oddsWithin } from "./odds.js";
import { Oracle, bytesFor, littleEndian } from "./oracle.js";

/** @typedef {import("./randomness.js").Source} Source */

/** Report the true label with odds a : b to any other. */
export class Grr extends Oracle {
  /** @param {number} labels @param {number} nano */
  constructor(labels, nano) {
    super(labels, nano);
    const odds = oddsWithin(nano);
    this.favour = odds.favour;
    this.total = odds.favour + odds.against * BigInt(labels - 1);
    this.worstRatio = odds.ratio;
  }

  /** @param {number} value @param {Source} source */
  payload(value, source) {
    const truthful = source.coin(this.favour, this.total);
    const other = Number(source.below(BigInt(this.labels - 1)));
    const label = truthful ? value : other + Number(other >= value);
    return littleEndian(label, bytesFor(this.labels));
  }
}

/** Report a column in which the value's row of a Hadamard matrix has +1, with odds a : b. */
export class Hadamard extends Oracle {
  /** @param {number} labels @param {number} nano */
  constructor(labels, nano) {
    super(labels, nano);
    const odds = oddsWithin(nano);
    this.favour = odds.favour;
    this.total = odds.favour + odds.against;
    this.columns = 2 ** labels.toString(2).length;
    this.worstRatio = odds.ratio;
  }

  /** @param {number} value @param {Source} source */
  payload(value, source) {
    const supporting = source.coin(this.favour, this.total);
    const column = Number(source.below(BigInt(this.columns)));
    const row = value + 1;
    // Flipping one bit of the row maps its +1 half onto its -1 half: either stays uniform.
    const flipped = isEven(column & row) === supporting ? column : column ^ (row & -row);
    return littleEndian(flipped, bytesFor(this.columns));
  }
}

/** @param {number} bits whether an even number of them is set */
function isEven(bits) {
  let even = true;
  for (let rest = bits; rest; rest &= rest - 1) even = !even;
  return even;
}
