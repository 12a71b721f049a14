"""The options that choose the query of a stream; without them it is a histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.mechanisms.queries import Query

_GROUP = "Query (a histogram unless given)"

Mean = Annotated[
    str | None,
    typer.Option(
        help="the mean of a number in LOW:HIGH; labels are equal steps from LOW to HIGH, in order",
        rich_help_panel=_GROUP,
    ),
]
Distribution = Annotated[
    str | None,
    typer.Option(
        help="the distribution of a number, LOW:HIGH:BINS, with quantiles, by square wave",
        rich_help_panel=_GROUP,
    ),
]


def query_of(mean: str | None, distribution: str | None) -> Query:
    """Return the query that `--mean` and `--distribution` choose.

    >>> query_of("-20:60", None)
    MeanQuery(low=-20.0, high=60.0)
    >>> query_of(None, "0:1:16")
    DistributionQuery(low=0.0, high=1.0, bins=16)
    """
    from ldpstream.mechanisms import queries

    if mean is not None and distribution is not None:
        raise _wrong("--mean", mean, "either it or --distribution")
    if mean is not None:
        return queries.MeanQuery(*_numbers("--mean", mean, "LOW:HIGH, as in --mean=-20:60", 2))
    if distribution is not None:
        expected = "LOW:HIGH:BINS, as in 0:10:32"
        low, high, bins = _numbers("--distribution", distribution, expected, 3)
        if not bins.is_integer():
            raise _wrong("--distribution", distribution, expected)
        return queries.DistributionQuery(low, high, int(bins))
    return queries.HISTOGRAM


def _numbers(option: str, text: str, expected: str, count: int) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        raise _wrong(option, text, expected)
    return numbers


def _wrong(option: str, given: str, expected: str) -> Mistake:
    return Mistake(Problem.OPTION, option=option, given=repr(given), expected=expected)
