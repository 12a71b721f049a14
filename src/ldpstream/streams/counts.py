"""A stream from a table of histograms: a row for each timestamp and a column for each label."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from ldpstream.arguments import checked
from ldpstream.domain import Domain
from ldpstream.errors import Mistake
from ldpstream.streams.faults import bad_file, unreadable
from ldpstream.streams.notes import Tell, warn
from ldpstream.streams.separators import separator_of
from ldpstream.streams.stream import CountsStream

MOST_DIGITS = 15
"""Digits of a count, at most: sums of counts stay exact, as integers and as floats."""


@checked
def read_counts(path: Path | str, *, tell: Tell = warn) -> CountsStream:
    r"""Read histograms from a text file; each row must sum to the same number of users.

    Cells are separated by commas, tabs or semicolons. The first row names the labels; if it is a
    row of counts like all others, they are numbered from 0. A blank cell is what its row lacks.

    Args:
        path: the file, with a row for each timestamp and a column for each label.
        tell: called with a line about whatever was guessed or filled in; by default it is a
            `DataWarning`.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("home,work\n3,1\n2,2\n")
    ...     file.flush()
    ...     read_counts(file.name).table.tolist()
    [[3, 1], [2, 2]]
    """
    file = Path(path)
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            separator = separator_of(lines.readline())
            lines.seek(0)
            rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(file, error, "give a readable CSV file") from None
    if not rows:
        raise bad_file(file, "no row of counts", "give a header and a row for each timestamp")
    table = CountsTable(file, tuple(cell.strip() for cell in rows[0]), rows[1:], 2)
    if _is_headless(rows):
        numbered = tuple(str(place) for place in range(len(rows[0])))
        tell(f"{file}: no header, so labels are numbered 0 to {len(numbered) - 1}")
        table = CountsTable(file, numbered, rows, 1)
    return table.stream(file.stem, tell)


def _is_headless(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row holds counts: it sums to as many users as the second."""
    first, *others = ([_count(cell) for cell in row] for row in rows[:2])
    if None in first or first == list(range(len(first))):
        return False
    return not others or sum(filter(None, first)) == sum(filter(None, others[0]))


@dataclass(frozen=True)
class CountsTable:
    """Labels, and rows of counts that are still text or any numbers."""

    file: Path
    """The file that messages name."""
    labels: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    first: int
    """The number of the first row, as messages count."""

    def stream(self, name: str, tell: Tell) -> CountsStream:
        """Return the stream, with blanks filled; tell what was filled in."""
        if not self.rows:
            raise bad_file(
                self.file, "no row of counts", "give a header and a row for each timestamp"
            )
        domain = self._domain()
        found = [self._numbers(line, row) for line, row in enumerate(self.rows, self.first)]
        users = self._users(found)
        blanks = [
            (line, self.labels[row.index(None)], row.count(None))
            for line, row in enumerate(found, self.first)
            if None in row
        ]
        counts = [self._filled(line, row, users) for line, row in enumerate(found, self.first)]
        if blanks:
            line, label, _ = blanks[0]
            tell(
                f"{self.file}: {sum(number for *_, number in blanks)} blank cell(s), filled with "
                f"what the row lacks to {users} users; the first is row {line}, column {label!r}"
            )
        return CountsStream(name, domain, np.array(counts, np.int64))

    def _domain(self) -> Domain:
        try:
            return Domain.of(self.labels)
        except Mistake as error:
            what, fix = (text.format(**error.facts) for text in error.problem.value)
            raise bad_file(self.file, f"header: {what}", fix) from None

    def _numbers(self, line: int, row: Sequence[object]) -> list[int | None]:
        if len(row) != len(self.labels):
            what = f"row {line} has {len(row)} columns, the header {len(self.labels)}"
            raise bad_file(self.file, what, "give a count for each label")
        for label, cell in zip(self.labels, row, strict=True):
            if not _is_blank(cell) and _count(cell) is None:
                what = f"row {line}, column {label!r}: {cell!r} is not a count"
                raise bad_file(self.file, what, "give whole numbers, 0 or more; no column of times")
        return [_count(cell) for cell in row]

    def _time_column(self, rows: Sequence[Sequence[int | None]]) -> str:
        """Return a hint if the first column grows from row to row, as a column of times does."""
        times = [row[0] for row in rows if row[0] is not None]
        if all(one < later for one, later in pairwise(times)):
            return f"; if column {self.labels[0]!r} is a time, leave it out"
        return ""

    def _users(self, rows: Sequence[Sequence[int | None]]) -> int:
        """Return the sum of the rows without a blank, which must be the same for all."""
        sums = {
            line: sum(filter(None, row))
            for line, row in enumerate(rows, self.first)
            if None not in row
        }
        if not sums:
            raise bad_file(self.file, "every row has a blank cell", "fill in at least one row")
        start, users = next(iter(sums.items()))
        for line, total in sums.items():
            if total != users:
                what = f"row {line} sums to {total}, row {start} to {users}"
                fix = "give every timestamp the same number of users"
                raise bad_file(self.file, what, fix + self._time_column(rows))
        if users < 1:
            raise bad_file(self.file, "the counts are all zero", "give at least one user")
        return users

    def _filled(self, line: int, row: Sequence[int | None], users: int) -> list[int]:
        """Return a row whose one blank is what it lacks; several are 0 if it lacks nothing."""
        blanks = row.count(None)
        lacking = users - sum(filter(None, row))
        if blanks and (lacking < 0 or (blanks > 1 and lacking)):
            what = f"row {line} has {blanks} blank cell(s) and lacks {lacking} of {users} users"
            raise bad_file(self.file, what, "fill in all of them but one")
        return [lacking if cell is None else cell for cell in row]


def _is_blank(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _count(cell: object) -> int | None:
    """Return the count in a cell, or None if it holds none."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    digits = str(cell).strip()
    return int(digits) if digits.isdecimal() and len(digits) <= MOST_DIGITS else None
