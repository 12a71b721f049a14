/** Exact fractions of big integers. */

/** @param {bigint} a @param {bigint} b @returns {bigint} */
function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a < 0n ? -a : a;
}

export class Fraction {
  /** @param {bigint} numerator @param {bigint} [denominator] */
  constructor(numerator, denominator = 1n) {
    if (denominator === 0n) throw new RangeError("a fraction over zero");
    const common = gcd(numerator, denominator) * (denominator < 0n ? -1n : 1n);
    this.numerator = numerator / common;
    this.denominator = denominator / common;
  }

  /** @param {number} double finite @returns {Fraction} exactly this number */
  static of(double) {
    let [over, exponent] = [double, 0];
    while (!Number.isInteger(over)) [over, exponent] = [over * 2, exponent + 1];
    return new Fraction(BigInt(over), 1n << BigInt(exponent));
  }

  /** @param {Fraction} other */
  plus(other) {
    return new Fraction(
      this.numerator * other.denominator + other.numerator * this.denominator,
      this.denominator * other.denominator,
    );
  }

  /** @param {Fraction} other */
  minus(other) {
    return this.plus(new Fraction(-other.numerator, other.denominator));
  }

  /** @param {Fraction} other */
  times(other) {
    return new Fraction(this.numerator * other.numerator, this.denominator * other.denominator);
  }

  /** @param {Fraction} other */
  over(other) {
    return new Fraction(this.numerator * other.denominator, this.denominator * other.numerator);
  }

  /** @param {Fraction} other @returns {number} below, at or above zero */
  compare(other) {
    const left = this.numerator * other.denominator;
    const right = other.numerator * this.denominator;
    return left < right ? -1 : Number(left > right);
  }

  /** @returns {bigint} rounded down */
  floor() {
    const quotient = this.numerator / this.denominator;
    return this.numerator % this.denominator < 0n ? quotient - 1n : quotient;
  }

  /** @returns {bigint} the nearest integer, ties to even, as Python's round */
  round() {
    const doubled = new Fraction(2n * this.numerator + this.denominator, 2n * this.denominator);
    const up = doubled.floor();
    return doubled.denominator === 1n && up % 2n ? up - 1n : up;
  }

  /** @returns {number} the nearest double, ties to even, as Python's float(Fraction) */
  toNumber() {
    if (this.numerator < 0n) return -new Fraction(-this.numerator, this.denominator).toNumber();
    if (this.numerator === 0n) return 0;
    // At least 64 bits of the quotient, and a last bit that says whether anything was cut off:
    // Number() then rounds as if it saw the whole.
    const bits = (/** @type {bigint} */ n) => n.toString(2).length;
    const shift = 66 - bits(this.numerator) + bits(this.denominator);
    const [over, under] =
      shift >= 0
        ? [this.numerator << BigInt(shift), this.denominator]
        : [this.numerator, this.denominator << BigInt(-shift)];
    const sticky = over % under ? 1n : 0n;
    return Number((over / under) * 2n + sticky) * 2 ** (-shift - 1);
  }

  toString() {
    return `${this.numerator}/${this.denominator}`;
  }
}

/** @param {number | bigint} whole */
export const fraction = (whole) => new Fraction(BigInt(whole));
