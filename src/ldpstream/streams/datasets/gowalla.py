"""Gowalla: check-ins of people around New York, 2009 and 2010 (SNAP).

Tab-separated, without a header: user, time (ISO 8601, UTC), latitude, longitude, place. A timestamp
is a day; the value is the cell of the last check-in. The 25 cells are five rows from south to north
times five columns from west to east, each row and each column with a fifth of all check-ins.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldpstream.streams.datasets.dataset import DataSet, one_file, unreadable_rows

if TYPE_CHECKING:
    import polars as pl

    from ldpstream.streams.table import Events

STRIPS = 5
DAY = 86_400


def events(files: Sequence[Path]) -> Events:
    import polars as pl

    from ldpstream.streams.labels import Chosen
    from ldpstream.streams.table import Events

    (file,) = files
    columns = {
        "user": pl.Int64,
        "time": pl.String,
        "latitude": pl.Float64,
        "longitude": pl.Float64,
        "place": pl.String,
    }
    checkins = pl.scan_csv(file, has_header=False, separator="\t", schema=columns)
    frame = checkins.select(
        "user",
        pl.col("time")
        .str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_unit="us", strict=False)
        .dt.epoch("s"),
        value=pl.format(
            "row {} column {}", _strip(checkins, "latitude"), _strip(checkins, "longitude")
        ),
    )
    strips = range(1, STRIPS + 1)
    return Events(
        frame=frame,
        every=DAY,
        labels=Chosen(tuple(f"row {row} column {column}" for row in strips for column in strips)),
        blame=unreadable_rows(file),
        file=file,
        aligned=True,
    )


def _strip(frame: pl.LazyFrame, column: str) -> pl.Expr:
    """Return the number of a row's strip, 1 to STRIPS; all strips have equally many rows."""
    import polars as pl

    from ldpstream.streams.labels import bin_of, quantiles

    inner = quantiles(frame, column, STRIPS)[1:-1]
    return 1 + bin_of(pl.col(column), inner)


GOWALLA = DataSet(
    name="gowalla",
    what="check-ins around New York, 2009 and 2010: cell of the last one, every day",
    where="snap.stanford.edu/data/loc-gowalla.html (those around New York)",
    licence="see its page",
    find=one_file(".csv.gz", ".csv", ".txt.gz", ".txt"),
    events=events,
)
