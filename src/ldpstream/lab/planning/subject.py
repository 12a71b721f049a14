"""The subject of a plan: labels, or a number in a range."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ldpstream.domain import Domain
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.queries import HISTOGRAM, DistributionQuery, MeanQuery, Query
from ldpstream.numeric import BinnedRange, Range
from ldpstream.streams.faults import bad_file, unreadable


@dataclass(frozen=True)
class Subject:
    """The values that devices hold, and the query about them."""

    query: Query
    values: int
    """The number of labels, or of levels of a number."""
    labels: tuple[str, ...] = ()
    named: bool = False
    """Whether the labels have names, or just numbers."""

    @property
    def typical(self) -> float:
        """What a relative error is relative to: the mean frequency, or the range of a number."""
        if isinstance(self.query, MeanQuery | DistributionQuery):
            return self.query.high - self.query.low
        return 1 / self.values

    @property
    def binned(self) -> bool:
        """Whether a distribution in bins is asked for."""
        return isinstance(self.query, DistributionQuery)

    @classmethod
    def of_domain(cls, domain: Domain, *, named: bool = True) -> Subject:
        return cls(HISTOGRAM, len(domain), domain.labels, named)

    @classmethod
    def of_labels(cls, text: str) -> Subject:
        """Make a subject from a number of labels, or from a file with one label on each line.

        >>> Subject.of_labels("3").labels
        ('0', '1', '2')
        """
        if text.isdecimal():
            return cls.of_domain(Domain.numbered(int(text)), named=False)
        return cls.of_domain(_labels_in(Path(text)))

    @classmethod
    def of_range(cls, text: str, levels: int | None = None, *, quantiles: bool = False) -> Subject:
        """Make a subject from LOW:HIGH: the mean, or the distribution with its quantiles.

        `levels` are those of a sample, if there is one.

        >>> Subject.of_range("-20:60").typical
        80.0
        >>> Subject.of_range("-20:60", quantiles=True).query
        DistributionQuery(low=-20.0, high=60.0, bins=32)
        """
        low, _, high = text.partition(":")
        try:
            ends = Range(float(low), float(high))
        except Mistake:
            raise
        except ValueError:
            raise Mistake(
                Problem.OPTION, option="--range", given=repr(text), expected="LOW:HIGH, two numbers"
            ) from None
        if not quantiles:
            return cls(MeanQuery(ends.low, ends.high), levels or ends.levels)
        bins = min(DistributionQuery.bins, levels or ends.levels)
        binned = BinnedRange.of(ends.low, ends.high, bins)
        return cls(DistributionQuery(ends.low, ends.high, bins), levels or binned.levels)


def _labels_in(path: Path) -> Domain:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        fix = "give a number of labels, or a file with one label per line"
        raise unreadable(path, error, fix) from None
    try:
        return Domain.of([line.strip() for line in lines if line.strip()])
    except Mistake as error:
        what, _, fix = str(error).partition("; ")
        raise bad_file(path, what, fix) from None
