from __future__ import annotations

from fractions import Fraction

from ldpstream.errors import MalformedReport, Problem
from ldpstream.oracles.bitmap_device import BitmapDevice
from ldpstream.oracles.noise import mean_noise
from ldpstream.privacy.epsilon import Epsilon, Odds
from ldpstream.privacy.randomness import Source, either


class Device(BitmapDevice):
    """Report a set of k labels; a set with the value has odds a : b to one without.

    Odds a : b within e^epsilon, k about d / (e^epsilon + 1). Report: d bits, k of them set.
    Variance: `CollectorHalf.variance` with p = ka / (ka + (d-k)b) and
    q = (p(k-1) + (1-p)k) / (d-1). Ye and Barg, "Optimal schemes for discrete distribution
    estimation under locally differential privacy", IEEE Trans. Inf. Theory 64 (2018); Wang et al.,
    "Mutual information optimally local private discrete distribution estimation", 2016.

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = Device(labels=12, epsilon=Epsilon.of(1))
    >>> report = device.perturb(3, SystemSource())
    >>> device.size, report.bit_count(), device.report_bytes
    (3, 3, 3)
    """

    supports_equally_many = True

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        self._odds = Odds.within(epsilon)
        self.size = self._best_size()
        """k, the number of labels in a report."""
        self.p, self.q = self._probabilities(self.size)
        self.worst_ratio = self._odds.ratio

    def _best_size(self) -> int:
        near = int(self.labels / (self._odds.ratio + 1))
        sizes = {min(max(size, 1), self.labels - 1) for size in (near, near + 1)}
        return min(
            sorted(sizes), key=lambda size: mean_noise(*self._probabilities(size), self.labels)
        )

    def _probabilities(self, size: int) -> tuple[Fraction, Fraction]:
        favour, total = self._inclusion(size)
        p = Fraction(favour, total)
        return p, (p * (size - 1) + (1 - p) * size) / (self.labels - 1)

    def _inclusion(self, size: int) -> tuple[int, int]:
        """Return favour and total of the probability that the value is in the set."""
        favour = size * self._odds.favour
        return favour, favour + (self.labels - size) * self._odds.against

    def _perturb(self, value: int, source: Source) -> int:
        included = source.coin(*self._inclusion(self.size))
        others = _distinct(source, self.labels - 1, self.size)
        members = [other + (other >= value) for other in others]
        # They are in random order, so this drops a random one of them.
        members[-1] = either(included, value, members[-1])
        bitmap = bytearray(self.payload_bytes)
        for member in members:
            bitmap[member // 8] |= 1 << member % 8
        return int.from_bytes(bitmap, "little")

    def _unpack(self, packed: int) -> int:
        report = super()._unpack(packed)
        if report.bit_count() != self.size:
            raise MalformedReport(
                Problem.REPORT_RANGE,
                field="number of labels",
                given=report.bit_count(),
                expected=self.size,
            )
        return report


def _distinct(source: Source, bound: int, number: int) -> list[int]:
    """Draw `number` distinct ones of 0 .. bound-1 in random order: a shuffle, stopped early."""
    moved: dict[int, int] = {}
    drawn = []
    for place in range(number):
        pick = place + source.below(bound - place)
        drawn.append(moved.get(pick, pick))
        moved[pick] = moved.get(place, place)
    return drawn
