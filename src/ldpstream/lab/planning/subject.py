"""The subject of a plan: labels, or a number in a range."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ldpstream.domain import Domain
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.queries import HISTOGRAM, MeanQuery, Query
from ldpstream.numeric import Range
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
        return 1 / self.values if self.labels else self.query.unit

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
    def of_range(cls, text: str, levels: int | None = None) -> Subject:
        """Make a subject, the mean, from LOW:HIGH; `levels` are those of a sample, if there is one.

        >>> Subject.of_range("-20:60").typical
        80.0
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
        return cls(MeanQuery(ends.low, ends.high), levels or ends.levels)


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
