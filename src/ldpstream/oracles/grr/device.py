from __future__ import annotations

from fractions import Fraction

from ldpstream.oracles.device_half import DeviceHalf, bytes_for, check_range
from ldpstream.privacy.epsilon import Epsilon, Odds
from ldpstream.privacy.randomness import Source, either


class Device(DeviceHalf[int]):
    """Report the true label with probability a / (a + b(d-1)), each other with b / (a + b(d-1)).

    Odds a : b within e^epsilon. Report: a label, 1 or 2 bytes. Variance: `CollectorHalf.variance`
    with these p and q, that is (d-2+e^eps)/(n(e^eps-1)^2) + f(d-2)/(n(e^eps-1)) (paper, eq. 1-2).

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = Device(labels=4, epsilon=Epsilon.of(2))
    >>> report = device.perturb(3, SystemSource())
    >>> device.decode(device.encode(report)) == report
    True
    """

    supports_equally_many = True

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        odds = Odds.within(epsilon)
        self._favour = odds.favour
        self._total = odds.favour + odds.against * (labels - 1)
        self.p = Fraction(odds.favour, self._total)
        self.q = Fraction(odds.against, self._total)
        self.worst_ratio = odds.ratio
        self.payload_bytes = bytes_for(labels)

    def supports(self, report: int, label: int) -> bool:
        return report == label

    def _perturb(self, value: int, source: Source) -> int:
        truthful = source.coin(self._favour, self._total)
        other = source.below(self.labels - 1)
        return either(truthful, value, other + (other >= value))

    def _pack(self, report: int) -> int:
        return report

    def _unpack(self, packed: int) -> int:
        return check_range("label", packed, self.labels)
