"""A stream from a CSV of histograms: a row for each timestamp and a column for each label."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ldpstream.domain import Domain
from ldpstream.errors import Mistake
from ldpstream.streams.faults import bad_file, unreadable
from ldpstream.streams.stream import CountsStream

MOST_DIGITS = 15
"""Digits of a count, at most: sums of counts stay exact, as integers and as floats."""


def read_counts(path: Path) -> CountsStream:
    """Read counts; each row must sum to the same number of users."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error, "give a readable CSV file") from None
    if len(rows) < 2:
        raise bad_file(path, "no row of counts", "give a header and a row for each timestamp")
    header, *body = rows
    try:
        domain = Domain.of([label.strip() for label in header])
    except Mistake as error:
        what, fix = (text.format(**error.facts) for text in error.problem.value)
        raise bad_file(path, f"header: {what}", fix) from None
    counts = [_numbers(path, line, row, header) for line, row in enumerate(body, start=2)]
    sums = [sum(row) for row in counts]
    for line, (row_sum, first) in enumerate(zip(sums, sums[:1] * len(sums), strict=True), start=2):
        if row_sum != first:
            what = f"row {line} sums to {row_sum}, row 2 to {first}"
            raise bad_file(path, what, "give every timestamp the same number of users")
    if sums[0] < 1:
        raise bad_file(path, "the counts are all zero", "give at least one user")
    return CountsStream(path.stem, domain, np.array(counts, np.int64))


def _numbers(path: Path, line: int, row: list[str], header: list[str]) -> list[int]:
    if len(row) != len(header):
        what = f"row {line} has {len(row)} columns, the header {len(header)}"
        raise bad_file(path, what, "give a count for each label")
    numbers = []
    for label, cell in zip(header, row, strict=True):
        digits = cell.strip()
        number = int(digits) if digits.isdecimal() and len(digits) <= MOST_DIGITS else None
        if number is None:
            what = f"row {line}, column {label!r}: {cell!r} is not a count"
            raise bad_file(path, what, "give whole numbers, 0 or more")
        numbers.append(number)
    return numbers
