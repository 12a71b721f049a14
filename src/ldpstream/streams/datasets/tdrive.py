"""T-Drive: a week of taxis in Beijing (the paper's "Taxi").

The release is a folder of text files, one for each taxi, with lines `taxi id, date time,
longitude, latitude`. Some files are empty; their taxis are users who never say where they are.

The paper divides the city into five areas and does not say which. Here: the centre, which is the
box around the Fourth Ring Road, and what lies outside of it in each quarter as seen from its
middle. Positions outside the municipality are faults of the receiver and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldpstream.streams.datasets.dataset import DataSet, StreamSize, unreadable_rows
from ldpstream.streams.faults import bad_file

if TYPE_CHECKING:
    from ldpstream.streams.table import Events

WEST, EAST, SOUTH, NORTH = 116.27, 116.49, 39.83, 39.99
"""The Fourth Ring Road."""
MUNICIPALITY = (115.4, 117.6, 39.4, 41.1)
AREAS = ("centre", "north-east", "north-west", "south-east", "south-west")
TEN_MINUTES = 600


def find(source: Path) -> list[Path]:
    files = sorted(source.rglob("*.txt")) if source.is_dir() else [source]
    taxis = [path for path in files if path.stem.isdecimal()]
    if not any(path.stat().st_size for path in taxis):
        what = "no text file with a taxi's number as its name, like 1.txt"
        raise bad_file(source, what, "give the folder taxi_log_2008_by_id")
    return taxis


def events(files: Sequence[Path]) -> Events:
    import polars as pl

    from ldpstream.streams.labels import Chosen
    from ldpstream.streams.table import Events

    columns = {"user": pl.Int64, "time": pl.String, "east": pl.Float64, "north": pl.Float64}
    full = [path for path in files if path.stat().st_size]
    empty = [int(path.stem) for path in files if not path.stat().st_size]
    east, north = pl.col("east"), pl.col("north")
    left, right, bottom, top = MUNICIPALITY
    side = pl.when(east >= (WEST + EAST) / 2).then(pl.lit("-east")).otherwise(pl.lit("-west"))
    half = pl.when(north >= (SOUTH + NORTH) / 2).then(pl.lit("north")).otherwise(pl.lit("south"))
    central = east.is_between(WEST, EAST) & north.is_between(SOUTH, NORTH)
    seen = (
        pl.scan_csv(full, has_header=False, schema=columns)
        .filter(east.is_between(left, right) & north.is_between(bottom, top))
        .select(
            "user",
            pl.col("time")
            .str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", strict=False)
            .dt.epoch("s"),
            value=pl.when(central).then(pl.lit("centre")).otherwise(half + side),
        )
    )
    nowhere = pl.LazyFrame({"user": empty}, schema={"user": pl.Int64}).select(
        "user", time=pl.lit(0, pl.Int64), value=pl.lit(None, pl.String)
    )
    return Events(
        frame=pl.concat([seen, nowhere]),
        every=TEN_MINUTES,
        labels=Chosen(AREAS),
        blame=unreadable_rows(files[0].parent),
        file=files[0].parent,
        timestamps=TDRIVE_SIZE.timestamps,
        aligned=True,
        silent=True,
    )


TDRIVE_SIZE = StreamSize(users=10_357, timestamps=886, labels=5)
TDRIVE = DataSet(
    name="tdrive",
    what="taxis in Beijing, Feb 2 to 8, 2008: area of the city, every 10 minutes",
    where="microsoft.com/en-us/research/publication/t-drive-trajectory-data-sample",
    licence="see its page",
    find=find,
    events=events,
    paper=TDRIVE_SIZE,
)
