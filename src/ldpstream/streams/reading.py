"""Errors of Polars about a broken file, in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from ldpstream.streams.faults import bad_file


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn errors in reading the file into a `Mistake`."""
    try:
        yield
    except pl.exceptions.NoDataError:
        raise bad_file(path, "the file is empty", "give a header and a row per event") from None
    except pl.exceptions.ColumnNotFoundError as error:
        what = str(error).strip().splitlines()[0]
        raise bad_file(path, what, "give the file as it was downloaded") from None
    except pl.exceptions.ComputeError as error:
        what = str(error).strip().splitlines()[0]
        raise bad_file(path, f"cannot be read ({what})", "write or fetch the file again") from None
