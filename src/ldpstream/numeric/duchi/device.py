from __future__ import annotations

from fractions import Fraction

from ldpstream.numeric.device_half import NumericDevice, Scale
from ldpstream.privacy.epsilon import Epsilon, Odds
from ldpstream.privacy.randomness import Source


class Device(NumericDevice):
    """Round the value at random to an end of the range, and keep that bit with odds a : b.

    It is rounded to 1 with probability u, and kept with probability a / (a + b). Odds a : b within
    e^epsilon. Report: a bit, 1 byte. Pr[1 | u] = (b + (a-b)u) / (a+b) is that of Duchi, Jordan
    and Wainwright, "Minimax optimal procedures for locally private estimation", JASA 113 (2018).
    Variance: ab/(a-b)^2 + u(1-u), in units of the range.

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = Device(levels=1025, epsilon=Epsilon.of(1))
    >>> device.perturb(512, SystemSource()) in (0, 1), device.report_bytes
    (True, 2)
    >>> f"{float(device.worst_noise):.3f}"
    '1.171'
    """

    def __init__(self, levels: int, epsilon: Epsilon) -> None:
        odds = Odds.within(epsilon)
        self._favour = odds.favour
        self._total = odds.favour + odds.against
        self.p = Fraction(odds.favour, self._total)
        """Pr[1 | u = 1]."""
        self.q = 1 - self.p
        """Pr[1 | u = 0]."""
        super().__init__(levels, epsilon, (Scale(2, self.q, self.p - self.q),))
        self.worst_ratio = odds.ratio
        self.base = self.p * self.q / (self.p - self.q) ** 2
        self.bend = Fraction(1)

    def probability(self, output: int, level: int) -> Fraction:
        one = self.q + (self.p - self.q) * Fraction(level, self.steps)
        return one if output else 1 - one

    def _perturb(self, value: int, source: Source) -> int:
        rounded = source.below(self.steps) < value
        truthful = source.coin(self._favour, self._total)
        return int(rounded == truthful)
