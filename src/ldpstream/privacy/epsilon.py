"""Epsilon in integer nano-units, and the exact odds that stay within it.

A device never computes with `math.exp`. It uses *odds* a : b of integers with a/b <= e^epsilon, so
that the epsilon it really has, ln(a/b), can be stated exactly and never exceeds the one asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from functools import lru_cache

from ldpstream.errors import Mistake, Problem

NANO = 10**9
LARGEST_NANO = 32 * NANO
MOST_DIGITS = 100
"""The most digits before or after the decimal point of a number that is parsed."""
ODDS_BITS = 64
"""The denominator of odds is 2^64: even at epsilon = 1e-9, rounding loses less than 1e-10 of it."""


@dataclass(frozen=True, order=True)
class Epsilon:
    """A privacy budget in integer nano-epsilon.

    >>> Epsilon.of("0.1") + Epsilon.of("0.2") == Epsilon.of("0.3")
    True
    >>> Epsilon.of(1) // 40
    Epsilon(nano=25000000)
    >>> str(Epsilon.of(0.25))
    '0.25'
    """

    nano: int

    def __post_init__(self) -> None:
        if not 1 <= self.nano <= LARGEST_NANO:
            raise Mistake(Problem.EPSILON_RANGE, given=Decimal(self.nano) / NANO)

    @classmethod
    def of(cls, value: Epsilon | str | int | float | Decimal | Fraction) -> Epsilon:
        """Parse epsilon, rounding down: 0.1 means the decimal 0.1, not its nearest float."""
        if isinstance(value, Epsilon):
            return value
        try:
            nano = _exact(value) * NANO // 1
        except (InvalidOperation, ValueError, OverflowError):
            raise Mistake(Problem.EPSILON_RANGE, given=value) from None
        if not 1 <= nano <= LARGEST_NANO:
            raise Mistake(Problem.EPSILON_RANGE, given=value)
        return cls(nano)

    def __add__(self, other: Epsilon) -> Epsilon:
        return Epsilon(self.nano + other.nano)

    def __floordiv__(self, parts: int) -> Epsilon:
        """Return one of `parts` equal shares, rounded down: towards privacy."""
        return Epsilon(self.nano // parts)

    def __float__(self) -> float:
        return self.nano / NANO

    def __str__(self) -> str:
        return format((Decimal(self.nano) / NANO).normalize(), "f")


def _exact(value: str | int | float | Decimal | Fraction) -> Fraction:
    if isinstance(value, Fraction):
        return value
    decimal = Decimal(str(value))
    if decimal.is_finite() and abs(decimal.adjusted()) > MOST_DIGITS:
        raise OverflowError  # as a fraction, 1e99999999 would fill the memory
    return Fraction(decimal)


@dataclass(frozen=True)
class Odds:
    """Integer odds of `favour` to `against` between a report's likelihoods under two values.

    >>> truthful = Odds.within(Epsilon.of(1))
    >>> float(truthful.ratio)
    2.718281828459045
    >>> truthful.ratio <= Odds.within(Epsilon(10**9 + 1)).ratio
    True
    """

    favour: int
    against: int

    @classmethod
    def within(cls, epsilon: Epsilon, parts: int = 1) -> Odds:
        """Return the largest odds over 2^64 with ratio <= e^(epsilon/parts)."""
        return cls(_exp_floor(Fraction(epsilon.nano, NANO * parts)), 1 << ODDS_BITS)

    @property
    def ratio(self) -> Fraction:
        return Fraction(self.favour, self.against)


def log_ceiling(ratio: Fraction, digits: int = 30) -> Decimal:
    """Return ln(ratio), rounded up: the epsilon of a randomiser with this worst likelihood ratio.

    >>> log_ceiling(Fraction(1))
    Decimal('0')
    >>> log_ceiling(Odds.within(Epsilon.of(1)).ratio) <= 1
    True
    """
    if ratio == 1:
        return Decimal(0)
    with localcontext(Context(prec=digits + 20)):
        approximate = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    # The working precision carries 20 spare digits, of which far fewer than 10 can be wrong.
    slack = Decimal(10) ** (approximate.adjusted() - digits - 10)
    with localcontext(Context(prec=digits, rounding="ROUND_CEILING")):
        return approximate + slack


@lru_cache(maxsize=4096)
def _exp_floor(exponent: Fraction) -> int:
    """Return floor(2^64 * e^exponent), exactly.

    e^x is irrational for every rational x > 0, so some finite precision determines the floor.
    """
    precision = 50
    while True:
        with localcontext(Context(prec=precision)):
            value = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
            scaled = value * (1 << ODDS_BITS)
            doubt = scaled.scaleb(4 - precision)
            low, high = int(scaled - doubt), int(scaled + doubt)
        if low == high:
            return low
        precision *= 2
