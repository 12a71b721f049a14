from __future__ import annotations

from fractions import Fraction

from ldpstream.oracles.bitmap_device import BitmapDevice
from ldpstream.privacy.epsilon import Epsilon, Odds
from ldpstream.privacy.randomness import Source


class UnaryDevice(BitmapDevice):
    """Encode the value as d bits, one of them set, and randomise each independently.

    Report: d bits. A bit of another label is set with probability q = b / (a + b), at odds a : b.
    """

    def __init__(self, labels: int, epsilon: Epsilon, odds: Odds, p: Fraction) -> None:
        super().__init__(labels, epsilon)
        self._against = odds.against
        self._total = odds.favour + odds.against
        self.p = p
        self.q = Fraction(odds.against, self._total)

    def _noise(self, source: Source) -> int:
        """Toss a coin for each label, the true one too: the draws must not depend on the value."""
        return coins(source, self.labels, self._against, self._total)


class SueDevice(UnaryDevice):
    """SUE: flip each bit with probability b / (a + b).

    Odds a : b within e^(epsilon/2), since two values differ in two bits.
    Variance: e^(eps/2) / (n(e^(eps/2)-1)^2), whatever f, since p + q = 1.
    Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014; Wang et al., USENIX Security 2017, 4.2.

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = SueDevice(labels=12, epsilon=Epsilon.of(2))
    >>> report = device.perturb(3, SystemSource())
    >>> device.decode(device.encode(report)) == report, device.report_bytes
    (True, 3)
    """

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        odds = Odds.within(epsilon, parts=2)
        p = Fraction(odds.favour, odds.favour + odds.against)
        super().__init__(labels, epsilon, odds, p)
        self.worst_ratio = odds.ratio**2

    def _perturb(self, value: int, source: Source) -> int:
        return self._edited(self._noise(source), value, clear=False, flip=True)


class OueDevice(UnaryDevice):
    """OUE: set the bit of the value with probability 1/2, every other bit with b / (a + b).

    Odds a : b within e^epsilon. Variance: 4e^eps / (n(e^eps-1)^2) + f/n.
    Wang et al., "Locally differentially private protocols for frequency estimation", USENIX
    Security 2017, 4.2.

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = OueDevice(labels=12, epsilon=Epsilon.of(2))
    >>> report = device.perturb(3, SystemSource())
    >>> device.decode(device.encode(report)) == report, device.report_bytes
    (True, 3)
    """

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        odds = Odds.within(epsilon)
        super().__init__(labels, epsilon, odds, Fraction(1, 2))
        self.worst_ratio = odds.ratio

    def _perturb(self, value: int, source: Source) -> int:
        noise = self._noise(source)
        kept = source.coin(1, 2)
        return self._edited(noise, value, clear=True, flip=kept)


def coins(source: Source, number: int, favour: int, total: int) -> int:
    """Return a bitmap of independent coins."""
    # Through text, which takes linear time; setting bits of an integer one by one is quadratic.
    return int("".join("01"[source.coin(favour, total)] for _ in range(number)), 2)
