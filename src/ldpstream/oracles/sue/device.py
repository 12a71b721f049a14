from __future__ import annotations

from fractions import Fraction

from ldpstream.oracles.bitmap_device import BitmapDevice, coins
from ldpstream.privacy.epsilon import Epsilon, Odds
from ldpstream.privacy.randomness import Source


class Device(BitmapDevice):
    """Write the value as d bits, one of them set, and flip each with probability b / (a + b).

    Odds a : b within e^(epsilon/2), since two values differ in two bits. Report: d bits.
    Variance: e^(eps/2) / (n(e^(eps/2)-1)^2), whatever f, since p + q = 1.
    Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014; Wang et al., USENIX Security 2017, 4.2.

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = Device(labels=12, epsilon=Epsilon.of(2))
    >>> report = device.perturb(3, SystemSource())
    >>> device.decode(device.encode(report)) == report, device.report_bytes
    (True, 3)
    """

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        odds = Odds.within(epsilon, parts=2)
        self._against = odds.against
        self._total = odds.favour + odds.against
        self.p = Fraction(odds.favour, self._total)
        self.q = Fraction(odds.against, self._total)
        self.worst_ratio = odds.ratio**2

    def _perturb(self, value: int, source: Source) -> int:
        noise = coins(source, self.labels, self._against, self._total)
        return self._edited(noise, value, clear=False, flip=True)
