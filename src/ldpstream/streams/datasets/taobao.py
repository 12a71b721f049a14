"""Taobao: which advertisements customers clicked on (Ali display-ad click data).

`raw_sample.csv` has user, time_stamp, adgroup_id, pid, nonclk, clk, with a row for each
advertisement shown; `ad_feature.csv` has adgroup_id, cate_id and more, with a row for each.

The paper has 117 groups of categories, 10 minutes and three days, and does not say which. Here: the
116 categories that are clicked most, "other" for the rest, and the first three days of the file.
The value is the category of the last click. A customer who was shown something in these days and
clicked on nothing is a user without a value: the paper's N leaves no other reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldpstream.streams.datasets.dataset import DataSet, StreamSize, named_files, unreadable_rows

if TYPE_CHECKING:
    from ldpstream.streams.table import Events

TEN_MINUTES = 600


def events(files: Sequence[Path]) -> Events:
    import polars as pl

    from ldpstream.streams.labels import MostFrequent
    from ldpstream.streams.table import Events

    shown, advertisements = (pl.scan_csv(path, infer_schema=False) for path in files)
    categories = advertisements.select(
        pl.col("adgroup_id").cast(pl.Int64, strict=False), category="cate_id"
    )
    frame = (
        shown.select(
            pl.col("user").cast(pl.Int64, strict=False),
            pl.col("time_stamp").cast(pl.Int64, strict=False).alias("time"),
            pl.col("adgroup_id").cast(pl.Int64, strict=False),
            clicked=pl.col("clk") == "1",
        )
        .join(categories, on="adgroup_id", how="left", maintain_order="left")
        .select(
            "user", "time", value=pl.when("clicked").then(pl.col("category").fill_null("other"))
        )
    )
    return Events(
        frame=frame,
        every=TEN_MINUTES,
        labels=MostFrequent(SIZE.labels - 1),
        blame=unreadable_rows(files[0]),
        file=files[0],
        timestamps=SIZE.timestamps,
        aligned=True,
        silent=True,
    )


SIZE = StreamSize(users=1_023_154, timestamps=432, labels=117)
TAOBAO = DataSet(
    name="taobao",
    what="clicks on advertisements, May 2017: category of the last one, every 10 minutes",
    where="tianchi.aliyun.com/dataset/56",
    licence="see its page",
    find=named_files("raw_sample.csv", "ad_feature.csv"),
    events=events,
    paper=SIZE,
)
