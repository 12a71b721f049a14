"""Making a stream from a table of events: it finds users, timestamps and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ldpstream.domain import Domain
from ldpstream.errors import Mistake
from ldpstream.streams.events import NONE
from ldpstream.streams.faults import bad_file
from ldpstream.streams.grouping import BATCH, grouped
from ldpstream.streams.labels import LabelRule
from ldpstream.streams.writer import EventsWriter

Watch = Callable[[str, int, int], None]
"""Called with what is being done, and how many rows of how many (0: not known yet) are done."""

MOST_TIMESTAMPS = 1_000_000


@dataclass(frozen=True)
class Events:
    """Rows of user, time and value, and how to make a stream of them."""

    frame: pl.LazyFrame
    """Columns `user` (anything that can be sorted), `time` (Int64) and `value`, in any order."""
    every: int
    """The length of a timestamp, in units of `time`."""
    labels: LabelRule
    blame: Callable[[str], Mistake]
    """Makes the error for a null in the frame's column of this name, which must have none."""
    file: Path
    """The file that messages name."""
    timestamps: int | None = None
    """Cut the stream after so many."""
    aligned: bool = False
    """Whether timestamps begin at multiples of `every`, rather than with the first event."""
    silent: bool = False
    """Whether a row may have no value: then it only says that the user exists."""
    blank: pl.Expr = field(default_factory=lambda: pl.lit(False))
    """Whether a row has a blank cell: then it is counted and left out."""


@dataclass(frozen=True)
class TableExtent:
    """The users and the timestamps of a table."""

    users: pl.DataFrame
    """Columns `user` and `index`, sorted."""
    rows: int
    start: int
    timestamps: int
    late: bool
    """Whether somebody has no value at the first timestamp."""
    blank: int
    """The rows that are left out for a blank cell."""


def write_events(events: Events, folder: Path, *, name: str, key: str, watch: Watch) -> TableExtent:
    """Write the stream into the folder, in three passes over the table, batch by batch."""
    extent = find_extent(events, watch)
    end = extent.start + extent.timestamps * events.every
    whole = pl.col("value").is_not_null() & ~events.blank
    valued = events.frame.filter(whole & (pl.col("time") < end))
    watch("finding the labels", 0, 0)
    labels = events.labels.learn(valued, events.file)
    domain, recode = _with_none(labels.names) if extent.late else _as_is(labels.names)
    if len(domain) < 2:
        what = f"every value is {domain[0]!r}"
        raise bad_file(events.file, what, "give a column with 2 or more different values")
    coded = valued.join(extent.users.lazy(), on="user", how="inner", maintain_order="left").select(
        "index", "time", code=labels.code
    )
    done = 0
    with EventsWriter(folder, Domain.of(domain), len(extent.users), extent.timestamps) as writer:
        for batch in coded.collect_batches(chunk_size=BATCH, maintain_order=True):
            times = batch["time"].to_numpy()
            t = (times - extent.start) // events.every + 1
            writer.add(t, batch["index"].to_numpy(), recode[batch["code"].to_numpy()], times)
            done += len(batch)
            watch("reading the events", done, extent.rows)
        watch("sorting the events", 0, 0)
        writer.finish(name, key)
    return extent


def find_extent(events: Events, watch: Watch) -> TableExtent:
    """Find users and times in one pass; refuse a table that cannot be a stream."""
    time, valueless, whole = pl.col("time"), pl.col("value").is_null(), ~events.blank
    valued = pl.when(whole & ~valueless).then(time)
    rows = events.frame.select(
        "user",
        seen=pl.when(whole).then(time),
        first=valued,
        last=valued,
        rows=pl.lit(1, pl.Int64),
        blank=events.blank.cast(pl.Int64),
        userless=whole & pl.col("user").is_null(),
        timeless=whole & time.is_null(),
        valueless=whole & valueless,
    )
    found = grouped(
        rows,
        "user",
        pl.col("seen", "first").min(),
        pl.col("last", "userless", "timeless", "valueless").max(),
        pl.col("rows", "blank").sum(),
        done=lambda rows: watch("finding the users", rows, 0),
    ).sort("user")
    _check(events, found)
    first, last = _whole(found["first"].min()), _whole(found["last"].max())
    start = first - first % events.every if events.aligned else first
    timestamps = (last - start) // events.every + 1
    if events.timestamps is not None:
        timestamps = min(timestamps, events.timestamps)
    if timestamps > MOST_TIMESTAMPS:
        what = f"{timestamps:,} timestamps from the first event to the last"
        raise bad_file(events.file, what, f"give a longer --every (at most {MOST_TIMESTAMPS:,})")
    present = found.filter(pl.col("seen") < start + timestamps * events.every)
    if len(present) < 2:
        raise bad_file(events.file, "all events are of one user", "give events of 2 or more users")
    late = (present["first"].fill_null(last + 1) >= start + events.every).any()
    return TableExtent(
        users=present.select("user").with_row_index("index"),
        rows=_whole(found["rows"].sum()),
        start=start,
        timestamps=timestamps,
        late=late,
        blank=_whole(found["blank"].sum()),
    )


def _check(events: Events, found: pl.DataFrame) -> None:
    if not len(found):
        raise bad_file(events.file, "no row of events", "give a row for each event")
    if found["blank"].sum() == found["rows"].sum():
        raise bad_file(events.file, "every row has a blank cell", "fill in some of them")
    if found["userless"].any():
        raise events.blame("user")
    if found["timeless"].any():
        raise events.blame("time")
    if (found["valueless"].any() and not events.silent) or found["first"].is_null().all():
        raise events.blame("value")


def _with_none(names: list[str]) -> tuple[list[str], NDArray[np.uint16]]:
    """Put "none" first, also if it is a value: everybody starts with the first label."""
    domain = [NONE, *(name for name in names if name != NONE)]
    return domain, np.array([domain.index(name) for name in names], np.uint16)


def _as_is(names: list[str]) -> tuple[list[str], NDArray[np.uint16]]:
    return names, np.arange(len(names), dtype=np.uint16)


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value
