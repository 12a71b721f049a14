"""The collector half of every oracle: from many reports to support counts to unbiased estimates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes, Counts, Floats
from ldpstream.errors import LdpStreamError, MalformedReport, Mistake, Problem
from ldpstream.oracles.device_half import WIRE_VERSION, DeviceHalf

Reports = NDArray[Any]
"""A batch of decoded reports along the first axis; dtype and other axes depend on the oracle."""
See = Callable[[Reports], None]
"""A callback that is given reports while they are counted."""


@dataclass(frozen=True)
class Support:
    """The number of `reports` reports that support each label. Supports of one round add up.

    >>> one, other = Support(np.array([3, 1]), 4), Support(np.array([0, 2]), 2)
    >>> (one + other).counts.tolist(), (one + other).reports
    ([3, 3], 6)
    """

    counts: Counts
    reports: int

    def __add__(self, other: Support) -> Support:
        if len(self.counts) != len(other.counts):
            raise Mistake(Problem.SUPPORT_MISMATCH, left=len(self.counts), right=len(other.counts))
        return Support(self.counts + other.counts, self.reports + other.reports)

    @classmethod
    def none(cls, counters: int) -> Support:
        return cls(np.zeros(counters, np.int64), 0)


class ReportReader(ABC):
    """A decoder and counter of the reports of a randomiser, a batch at a time."""

    def __init__(self, report_bytes: int, counters: int) -> None:
        self._report_bytes = report_bytes
        self.counters = counters
        """The number of counts in a support."""

    def count(self, tables: Iterable[Bytes], see: See | None = None) -> Support:
        """Count encoded reports, given as tables with one in each row; `see` gets them decoded."""
        counted = Support.none(self.counters)
        for table in tables:
            reports = self.decode_table(table)
            counted += self.support(reports)
            if see is not None:
                see(reports)
        return counted

    @abstractmethod
    def support(self, reports: Reports) -> Support:
        """Count decoded reports."""

    def decode(self, wires: Sequence[bytes]) -> Reports:
        """Decode a batch of reports; raise `MalformedReport` at the first bad one."""
        size = self._report_bytes
        for wire in wires:
            if len(wire) != size:
                raise MalformedReport(Problem.REPORT_LENGTH, given=len(wire), expected=size)
        table = np.frombuffer(b"".join(wires), np.uint8).reshape(len(wires), size)
        return self.decode_table(table)

    def decode_table(self, table: Bytes) -> Reports:
        """Decode a table of reports, one in each row and each of the right length."""
        wrong = table[:, 0] != WIRE_VERSION
        if wrong.any():
            version = int(table[wrong.argmax(), 0])
            raise MalformedReport(Problem.REPORT_VERSION, given=version, expected=WIRE_VERSION)
        return self._unpack(table[:, 1:])

    @abstractmethod
    def _unpack(self, payloads: Bytes) -> Reports:
        """Decode a table of payload bytes, one report in each row, and check ranges."""


class Pure:
    """The estimator for reports that support a true label with probability p, another with q."""

    def __init__(self, p: Fraction, q: Fraction) -> None:
        self.p, self.q = float(p), float(q)
        self._gain = float(p - q)
        self._base = float(q * (1 - q) / (p - q) ** 2)
        self._slope = float((1 - p - q) / (p - q))

    def estimate(self, support: Support) -> Floats:
        """Return the unbiased frequencies (counts/n - q) / (p - q), not clipped or normalised."""
        if support.reports == 0:
            raise LdpStreamError(Problem.NO_REPORTS)
        return self.unbiased(support.counts / support.reports)

    def unbiased(self, supporting: Floats) -> Floats:
        """Return the frequencies of labels that these shares of the reports support."""
        return (supporting - self.q) / self._gain

    def variance(
        self, reports: int | Counts, frequencies: Floats, population: int | None = None
    ) -> Floats:
        """Return the variance of each bin of an estimate from `reports` reports.

        At frequency f, it is the randomiser's q(1-q)/(n(p-q)^2) + f(1-p-q)/(n(p-q)) (Wang et
        al. 2017, eq. 5) and, with `population`, that of drawing n of N users without replacement,
        f(1-f)/n * (N-n)/(N-1). An array of n has a row for each row of frequencies.
        """
        noise: Floats = (self._base + frequencies * self._slope) / reports
        if population is None:
            return noise
        return noise + sampling(reports, population) * frequencies * (1 - frequencies)

    def paper_variance(self, reports: int) -> float:
        """Return the literature's V(epsilon, n): q(1-q)/(n(p-q)^2), the limit for rare labels."""
        return self._base / reports


class CollectorHalf(ReportReader, Pure):
    """The decoder, counter and estimator for the reports of one device half.

    The formulas hold for every pure oracle; only decoding and counting differ between oracles.
    """

    def __init__(self, device: DeviceHalf[Any]) -> None:
        ReportReader.__init__(self, device.report_bytes, device.labels)
        Pure.__init__(self, device.p, device.q)
        self.device = device
        self.labels = device.labels

    def support(self, reports: Reports) -> Support:
        """Count, for each label, the reports that support it."""
        return Support(self._count(reports), len(reports))

    def mean_variance(
        self, reports: int, population: int | None = None, concentration: float | None = None
    ) -> float:
        """Return `variance` averaged over the bins: the paper's V(epsilon, n), corrected.

        See docs/paper-corrections.md, 2.

        Since the frequencies sum to 1 the noise does not depend on them. The sampling part does,
        through the concentration, sum of f^2 (1/labels if not given).
        """
        noise = (self._base + self._slope / self.labels) / reports
        if population is None:
            return noise
        spread = 1 - (1 / self.labels if concentration is None else concentration)
        return noise + sampling(reports, population) * spread / self.labels

    @abstractmethod
    def _count(self, reports: Reports) -> Counts: ...


def little_endian(payloads: Bytes) -> NDArray[np.uint32]:
    """Return rows of at most four bytes as little-endian numbers."""
    numbers = np.zeros(len(payloads), np.uint32)
    for place in range(payloads.shape[1]):
        numbers |= payloads[:, place].astype(np.uint32) << np.uint32(8 * place)
    return numbers


def check_all_below(field: str, numbers: NDArray[Any], bound: int) -> None:
    """Refuse the first of `numbers` that is not below `bound`."""
    wrong = numbers >= bound
    if wrong.any():
        raise MalformedReport(
            Problem.REPORT_RANGE,
            field=field,
            given=int(numbers[wrong.argmax()]),
            expected=f"below {bound}",
        )


@overload
def sampling(reports: int, population: int) -> float: ...
@overload
def sampling(reports: Counts, population: int) -> Floats: ...
def sampling(reports: int | Counts, population: int) -> float | Floats:
    """Return the variance factor of drawing `reports` of `population` without replacement.

    It is 0 if there are at least `population` reports: then everyone was asked.
    """
    rest: float | Floats = np.maximum(population - reports, 0)
    return rest / (max(population - 1, 1) * reports)
