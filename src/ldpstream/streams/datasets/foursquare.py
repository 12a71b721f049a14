"""Foursquare: 33 million check-ins all over the world (Yang et al., TIST 2015).

`dataset_TIST2015_Checkins.txt` has user, venue, UTC time and offset in minutes, and
`dataset_TIST2015_POIs.txt` venue, latitude, longitude, category and country, both tab-separated.

The paper has 447 timestamps in the 18 months and does not say how long they are. Here: days (UTC),
the first 447 of them; a user who appears later is left out. The value is the country of the last
check-in: the 77 most frequent ones, and "other" if a file has more.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldpstream.streams.datasets.dataset import DataSet, StreamSize, named_files, unreadable_rows

if TYPE_CHECKING:
    from ldpstream.streams.table import Events

CHECKINS, VENUES = "dataset_TIST2015_Checkins.txt", "dataset_TIST2015_POIs.txt"
DAY = 86_400


def events(files: Sequence[Path]) -> Events:
    import polars as pl

    from ldpstream.streams.labels import MostFrequent
    from ldpstream.streams.table import Events

    checkins, venues = (
        pl.scan_csv(
            path,
            has_header=False,
            separator="\t",
            quote_char=None,
            schema=dict.fromkeys(columns, pl.String),
        )
        for path, columns in zip(
            files,
            (
                ("user", "venue", "time", "offset"),
                ("venue", "latitude", "longitude", "category", "value"),
            ),
            strict=True,
        )
    )
    # "Tue Apr 03 18:00:06 +0000 2012": the weekday is redundant.
    clock = (
        pl.col("time")
        .str.slice(4)
        .str.to_datetime("%b %d %H:%M:%S %z %Y", time_unit="us", strict=False)
    )
    frame = checkins.join(
        venues.select("venue", "value"), on="venue", how="left", maintain_order="left"
    ).select(pl.col("user").cast(pl.Int64, strict=False), clock.dt.epoch("s"), "value")
    return Events(
        frame=frame,
        every=DAY,
        labels=MostFrequent(SIZE.labels),
        blame=unreadable_rows(files[0]),
        file=files[0],
        timestamps=SIZE.timestamps,
        aligned=True,
    )


SIZE = StreamSize(users=265_149, timestamps=447, labels=77)
FOURSQUARE = DataSet(
    name="foursquare",
    what="check-ins from Apr 2012 to Sep 2013: country of the last one, every day",
    where="sites.google.com/site/yangdingqi/home/foursquare-dataset (global-scale check-ins)",
    licence="see its page",
    find=named_files(CHECKINS, VENUES),
    events=events,
    paper=SIZE,
)
