from __future__ import annotations

from fractions import Fraction

from ldpstream.oracles.bitmap_device import BitmapDevice, coins
from ldpstream.privacy.epsilon import Epsilon, Odds
from ldpstream.privacy.randomness import Source


class Device(BitmapDevice):
    """Set the bit of the value with probability 1/2, every other bit with b / (a + b).

    Odds a : b within e^epsilon. Report: d bits. Variance: 4e^eps / (n(e^eps-1)^2) + f/n.
    Wang et al., "Locally differentially private protocols for frequency estimation", USENIX
    Security 2017, 4.2.

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = Device(labels=12, epsilon=Epsilon.of(2))
    >>> report = device.perturb(3, SystemSource())
    >>> device.decode(device.encode(report)) == report, device.report_bytes
    (True, 3)
    """

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        odds = Odds.within(epsilon)
        self._against = odds.against
        self._total = odds.favour + odds.against
        self.p = Fraction(1, 2)
        self.q = Fraction(odds.against, self._total)
        self.worst_ratio = odds.ratio

    def _perturb(self, value: int, source: Source) -> int:
        # The noise of the true label is drawn too, and dropped: the draws do not tell the value.
        noise = coins(source, self.labels, self._against, self._total)
        kept = source.coin(1, 2)
        return self._edited(noise, value, clear=True, flip=kept)
