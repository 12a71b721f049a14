"""MSNBC: what 989,818 visitors read on msnbc.com on 28 September 1999.

After a header that names the categories, each line is a visitor: the categories of the pages seen,
as numbers from 1. There is no clock, so t is the position in the visit; after the last page a
visitor has "left". Visits are cut after 100 pages.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldpstream.streams.datasets.dataset import DataSet, one_file, unreadable_rows
from ldpstream.streams.faults import bad_file

if TYPE_CHECKING:
    from ldpstream.streams.table import Events

LEFT = "left"
TIMESTAMPS = 100


def events(files: Sequence[Path]) -> Events:
    import polars as pl

    from ldpstream.streams.labels import Chosen
    from ldpstream.streams.table import Events

    (file,) = files
    categories, body = _parts(file)
    visits = (
        pl.scan_csv(body, has_header=False, separator="\n", quote_char=None, new_columns=["pages"])
        .with_row_index("user")
        .with_columns(pl.col("pages").str.strip_chars().str.split(" ").list.head(TIMESTAMPS))
    )
    numbers = [str(number) for number in range(1, len(categories) + 1)]
    length = pl.col("pages").list.len().cast(pl.Int64)
    pages = (
        visits.select("user", time=pl.int_ranges(1, length + 1), value="pages")
        .explode("time", "value")
        .with_columns(
            pl.col("value").replace_strict(
                numbers, categories, default=None, return_dtype=pl.String
            )
        )
    )
    ends = visits.select("user", time=length + 1, value=pl.lit(LEFT))
    return Events(
        frame=pl.concat([pages, ends]),
        every=1,
        labels=Chosen((*categories, LEFT)),
        blame=unreadable_rows(file),
        file=file,
        timestamps=TIMESTAMPS,
    )


def _parts(file: Path) -> tuple[list[str], bytes]:
    """Return the names of the categories, and the lines of the visitors."""
    head, mark, body = _text(file).partition(b"% Sequences:")
    names = [line.split() for line in head.decode("latin-1").splitlines() if line[:1] not in "%"]
    categories = [name for line in names for name in line]
    if not mark or len(categories) < 2:
        raise bad_file(file, "no header of categories", "give msnbc990928.seq or its .zip")
    return categories, body.strip(b"\r\n")


def _text(file: Path) -> bytes:
    if file.suffix != ".zip":
        return file.read_bytes()
    try:
        with zipfile.ZipFile(file) as archive:
            inside = [name for name in archive.namelist() if name == Path(name).name]
            (name,) = (name for name in inside if name.endswith(".seq"))
            return archive.read(name)
    except (zipfile.BadZipFile, ValueError):
        raise bad_file(file, "no .seq file inside", "give the .zip as downloaded") from None


MSNBC = DataSet(
    name="msnbc",
    what="visitors of msnbc.com, Sep 28, 1999: kind of page, by position in the visit",
    where="archive.ics.uci.edu: msnbc.com anonymous web data",
    licence="CC BY 4.0",
    find=one_file(".zip", ".seq"),
    events=events,
)
