from __future__ import annotations

from fractions import Fraction

from ldpstream.oracles.device_half import DeviceHalf, bytes_for, check_range
from ldpstream.privacy.epsilon import Epsilon, Odds
from ldpstream.privacy.randomness import Source


class Device(DeviceHalf[int]):
    """Report a column in which the value's row of a Hadamard matrix has +1, with odds a : b.

    Odds a : b within e^epsilon; K columns, the power of two above d; label v has row v+1, since
    row 0 is all +1. Row r has +1 in column y if `r & y` has an even number of set bits.
    Report: a column, 1 to 3 bytes. Variance: (e^eps+1)^2 / (n(e^eps-1)^2) - f/n.
    Acharya, Sun and Zhang, "Hadamard response", AISTATS 2019, in its form of one block.

    >>> from ldpstream.privacy.randomness import SystemSource
    >>> device = Device(labels=1000, epsilon=Epsilon.of(1))
    >>> report = device.perturb(3, SystemSource())
    >>> device.decode(device.encode(report)) == report, device.columns, device.report_bytes
    (True, 1024, 3)
    """

    most_labels = 1 << 24  # a stream of texts has that many buckets (`vocabulary/`)

    def __init__(self, labels: int, epsilon: Epsilon) -> None:
        super().__init__(labels, epsilon)
        odds = Odds.within(epsilon)
        self._favour = odds.favour
        self._total = odds.favour + odds.against
        self.columns = 1 << labels.bit_length()
        self.p = Fraction(odds.favour, self._total)
        self.q = Fraction(1, 2)
        self.worst_ratio = odds.ratio
        self.payload_bytes = bytes_for(self.columns)

    def supports(self, report: int, label: int) -> bool:
        return (report & label + 1).bit_count() % 2 == 0

    def _perturb(self, value: int, source: Source) -> int:
        supporting = source.coin(self._favour, self._total)
        column = source.below(self.columns)
        # Flipping a bit at which the row has one swaps its +1 and -1 halves: both stay uniform.
        one_bit = value + 1 ^ (value + 1 & value)
        return column ^ one_bit * (self.supports(column, value) != supporting)

    def _pack(self, report: int) -> int:
        return report

    def _unpack(self, packed: int) -> int:
        return check_range("column", packed, self.columns)
