"""Tables of results as frames of pandas and Polars, which nothing else here needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    import pandas
    import polars

Columns: TypeAlias = dict[str, NDArray[Any]]
"""A table by the names of its columns, which are of equal length."""
Table: TypeAlias = Columns | Sequence[Mapping[str, Any]]
"""Columns, or a mapping for each row."""


def pandas_frame(table: Table) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError:
        raise _missing("pandas") from None
    return pandas.DataFrame(table)


def polars_frame(table: Table) -> polars.DataFrame:
    try:
        import polars
    except ImportError:
        raise _missing("polars") from None
    return polars.DataFrame(table, infer_schema_length=None)


def _missing(package: str) -> Mistake:
    return Mistake(Problem.PACKAGE_MISSING, what="a table", package=package)
