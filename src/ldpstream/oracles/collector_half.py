"""The collector half of every oracle: many reports -> support counts -> an unbiased histogram."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Bytes, Counts, Floats
from ldpstream.errors import LdpStreamError, MalformedReport, Mistake, Problem
from ldpstream.oracles.device_half import WIRE_VERSION, DeviceHalf

Reports = NDArray[Any]
"""A batch of decoded reports, first axis = report; the dtype and the rest are the oracle's own."""
See = Callable[[Reports], None]
"""Somebody who wants to see reports while they are counted."""


@dataclass(frozen=True)
class Support:
    """How many of `reports` reports support each label. Supports of one round add up.

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


class Reader(ABC):
    """Reads and counts the reports of a randomiser, a batch at a time."""

    def __init__(self, report_bytes: int, counters: int) -> None:
        self._report_bytes = report_bytes
        self.counters = counters
        """How many counts a support has."""

    def count(self, tables: Iterable[Bytes], see: See | None = None) -> Support:
        """The support of reports that come in parts, encoded, one a row; `see` sees them, too."""
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
        """Read a batch of encoded reports; the first bad one is refused by name."""
        size = self._report_bytes
        for wire in wires:
            if len(wire) != size:
                raise MalformedReport(Problem.REPORT_LENGTH, given=len(wire), expected=size)
        table = np.frombuffer(b"".join(wires), np.uint8).reshape(len(wires), size)
        return self.decode_table(table)

    def decode_table(self, table: Bytes) -> Reports:
        """Read a batch of encoded reports that stand one a row, each of the right length."""
        wrong = table[:, 0] != WIRE_VERSION
        if wrong.any():
            version = int(table[wrong.argmax(), 0])
            raise MalformedReport(Problem.REPORT_VERSION, given=version, expected=WIRE_VERSION)
        return self._unpack(table[:, 1:])

    @abstractmethod
    def _unpack(self, payloads: Bytes) -> Reports:
        """Decode a table of payload bytes, one row a report; check ranges."""


class Pure:
    """Estimation for reports that support what is true with probability p, what is not with q."""

    def __init__(self, p: Fraction, q: Fraction) -> None:
        self.p, self.q = float(p), float(q)
        self._gain = float(p - q)
        self._base = float(q * (1 - q) / (p - q) ** 2)
        self._slope = float((1 - p - q) / (p - q))

    def estimate(self, support: Support) -> Floats:
        """Unbiased frequencies (counts/n - q) / (p - q): not clipped, not normalised."""
        if support.reports == 0:
            raise LdpStreamError(Problem.NO_REPORTS)
        return (support.counts / support.reports - self.q) / self._gain

    def variance(self, reports: int, frequencies: Floats, population: int | None = None) -> Floats:
        """Variance of each bin of an estimate from `reports` reports, at the given frequencies.

        The randomiser's noise, q(1-q)/(n(p-q)^2) + f(1-p-q)/(n(p-q)) (Wang et al. 2017, eq. 5);
        with `population`, plus that of drawing n of N users without replacement,
        f(1-f)/n * (N-n)/(N-1).
        """
        noise = (self._base + frequencies * self._slope) / reports
        if population is None:
            return noise
        return noise + sampling(reports, population) * frequencies * (1 - frequencies)

    def paper_variance(self, reports: int) -> float:
        """V(epsilon, n) as the literature has it: q(1-q)/(n(p-q)^2), the limit of rare labels."""
        return self._base / reports


class CollectorHalf(Reader, Pure):
    """Decoding, counting and estimation for the reports of one device half.

    The formulas hold for every pure oracle; only reading the wire and counting are its own.
    """

    def __init__(self, device: DeviceHalf[Any]) -> None:
        Reader.__init__(self, device.report_bytes, device.labels)
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
    """Rows of at most four bytes as numbers."""
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


def sampling(reports: int, population: int) -> float:
    """Variance factor of drawing `reports` of `population` without replacement.

    More reports than `population` are a population of their own: everyone was asked.
    """
    return max(population - reports, 0) / (max(population - 1, 1) * reports)
