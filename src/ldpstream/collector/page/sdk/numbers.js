/**
 * The randomisers of numbers, as the device halves in `numeric/`. A value is a level 0 .. steps, a
 * report one of `outputs` numbers.
 */

import { Fraction, fraction } from "./fraction.js";
import { NANO, expBounds, oddsWithin } from "./odds.js";
import { Oracle, bytesFor, littleEndian } from "./oracle.js";

/** @typedef {import("./randomness.js").Source} Source */
/** @typedef {import("./odds.js").Odds} Odds */

const [ZERO, ONE] = [fraction(0), fraction(1)];

/** The variance of a report's number, at unit value u, is base + bend u(1-u). @abstract */
class NumericOracle extends Oracle {
  base = ZERO;
  bend = ZERO;

  /** @param {number} levels @param {number} nano @param {number} outputs */
  constructor(levels, nano, outputs) {
    super(levels, nano);
    this.steps = levels - 1;
    this.outputs = outputs;
  }

  /** @param {number} value @param {Source} source */
  payload(value, source) {
    return littleEndian(this.output(value, source), bytesFor(this.outputs));
  }

  /** @abstract @param {number} value @param {Source} source @returns {number} */
  output(value, source) {
    throw new Error(`no output for ${value} from ${source}`);
  }
}

/** Round the value at random to an end of the range, and keep that bit with odds a : b. */
export class Duchi extends NumericOracle {
  /** @param {number} levels @param {number} nano */
  constructor(levels, nano) {
    super(levels, nano, 2);
    const odds = oddsWithin(nano);
    this.favour = odds.favour;
    this.total = odds.favour + odds.against;
    this.worstRatio = odds.ratio;
    const p = new Fraction(this.favour, this.total);
    const gain = p.plus(p).minus(ONE);
    this.base = p.times(ONE.minus(p)).over(gain.times(gain));
    this.bend = ONE;
  }

  /** @param {number} value @param {Source} source */
  output(value, source) {
    const rounded = source.below(BigInt(this.steps)) < BigInt(value);
    const truthful = source.coin(this.favour, this.total);
    return Number(rounded === truthful);
  }
}

/** Report an output in the band k .. k+width-1 of level k, with odds a : b to any other output. */
class BandOracle extends NumericOracle {
  /** @param {number} levels @param {number} nano @param {number} width */
  constructor(levels, nano, width) {
    super(levels, nano, levels - 1 + width);
    const odds = oddsWithin(nano);
    const { total, base, bend } = bandMoments(this.steps, width, odds);
    this.width = width;
    this.inside = BigInt(width) * odds.favour;
    this.total = total;
    this.worstRatio = odds.ratio;
    [this.base, this.bend] = [base, bend];
  }

  /** @param {number} value @param {Source} source */
  output(value, source) {
    // All three are always drawn: the draws must not depend on the value.
    const inBand = source.coin(this.inside, this.total);
    const near = Number(source.below(BigInt(this.width)));
    const far = Number(source.below(BigInt(this.steps)));
    return inBand ? value + near : far + (far >= value ? this.width : 0);
  }
}

/**
 * The total weight of a band's outputs, and the variance of its number.
 * @param {number} stepsOf @param {number} widthOf @param {Odds} odds
 */
function bandMoments(stepsOf, widthOf, odds) {
  const [steps, width] = [BigInt(stepsOf), BigInt(widthOf)];
  const outputs = steps + width;
  const more = odds.favour - odds.against;
  const total = width * odds.favour + steps * odds.against;
  const mean = (/** @type {bigint} */ below, /** @type {bigint} */ inBand) =>
    new Fraction(odds.against * below + more * inBand, total);
  const zero = mean(sum(outputs), sum(width));
  const square = mean(sumOfSquares(outputs), sumOfSquares(width));
  const unit = new Fraction(more * width * steps, total);
  return {
    total,
    base: square.minus(zero.times(zero)).over(unit.times(unit)),
    bend: ONE.minus(fraction(steps).over(unit)),
  };
}

/** @param {bigint} n @returns {bigint} 0 + 1 + ... + n-1 */
const sum = (n) => (n * (n - 1n)) / 2n;

/** @param {bigint} n */
const sumOfSquares = (n) => (n * (n - 1n) * (2n * n - 1n)) / 6n;

/** A band of the width with the least worst-case variance. */
export class Piecewise extends BandOracle {
  /** @param {number} levels @param {number} nano */
  constructor(levels, nano) {
    super(levels, nano, leastNoisyWidth(levels - 1, oddsWithin(nano)));
  }
}

/** @param {number} steps @param {Odds} odds whose variance falls up to this width, and rises after it */
function leastNoisyWidth(steps, odds) {
  const base = (/** @type {number} */ width) => bandMoments(steps, width, odds).base;
  let [low, high] = [1, steps];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (base(middle).compare(base(middle + 1)) <= 0) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Use the band with probability alpha, otherwise the bit: outputs 0 and 1 are the bit's. */
export class Hybrid extends NumericOracle {
  /** @param {number} levels @param {number} nano */
  constructor(levels, nano) {
    const [bit, band] = [new Duchi(levels, nano), new Piecewise(levels, nano)];
    super(levels, nano, bit.outputs + band.outputs);
    this.bit = bit;
    this.band = band;
    const ratios = [bit.worstRatio, band.worstRatio];
    this.worstRatio = ratios[0].compare(ratios[1]) >= 0 ? ratios[0] : ratios[1];
    // At this share the two bends cancel.
    const level = ONE.over(ONE.minus(band.bend));
    this.alpha = this.#worst(ZERO).compare(this.#worst(level)) <= 0 ? ZERO : level;
    [this.base, this.bend] = this.#mix(this.alpha);
  }

  /** @param {Fraction} alpha */
  #mix(alpha) {
    const mixed = (/** @type {Fraction} */ band, /** @type {Fraction} */ bit) =>
      alpha.times(band).plus(ONE.minus(alpha).times(bit));
    return [mixed(this.band.base, this.bit.base), mixed(this.band.bend, this.bit.bend)];
  }

  /** @param {Fraction} alpha */
  #worst(alpha) {
    const [base, bend] = this.#mix(alpha);
    return bend.compare(ZERO) > 0 ? base.plus(bend.over(fraction(4))) : base;
  }

  /** @param {number} value @param {Source} source */
  output(value, source) {
    // Both are always drawn: the draws must not depend on the coin.
    const byBand = source.coin(this.alpha.numerator, this.alpha.denominator);
    const bit = this.bit.output(value, source);
    const near = this.band.output(value, source);
    return byBand ? this.bit.outputs + near : bit;
  }
}

/** A band of the width at which a report is most informative about the value. */
export class SquareWave extends BandOracle {
  /** @param {number} levels @param {number} nano */
  constructor(levels, nano) {
    super(levels, nano, mostInformativeWidth(levels, nano));
  }
}

/**
 * 2 floor(b levels) + 1 with b = (E e^E - e^E + 1) / (2 e^E (e^E - 1 - E)), Li et al., section 5.3.
 * @param {number} levels @param {number} nano
 */
function mostInformativeWidth(levels, nano) {
  for (let precision = 256n; ; precision *= 2n) {
    const [low, high] = expBounds(BigInt(nano), BigInt(NANO), precision).map((power) =>
      half(levels, nano, new Fraction(power, 1n << precision)),
    );
    if (low === high) return 2 * Number(low) + 1;
  }
}

/** @param {number} levels @param {number} nano @param {Fraction} power close to e^epsilon */
function half(levels, nano, power) {
  const epsilon = new Fraction(BigInt(nano), BigInt(NANO));
  const over = epsilon.times(power).minus(power).plus(ONE);
  const under = fraction(2).times(power).times(power.minus(ONE).minus(epsilon));
  return over.over(under).times(fraction(levels)).floor();
}
