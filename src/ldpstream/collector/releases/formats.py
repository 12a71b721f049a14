"""Releases as files: what the API answers with and `ldpstream export` writes.

JSON, NDJSON and CSV have a row for each timestamp. Arrow and Parquet have a row for each timestamp
and label, so that their columns do not depend on the labels. All have variance, interval and flags.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ldpstream.collector.store.contract import Release
from ldpstream.extras import need

if TYPE_CHECKING:
    import polars as pl

MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "ndjson": "application/x-ndjson",
    "arrow": "application/vnd.apache.arrow.file",
    "parquet": "application/vnd.apache.parquet",
}
FACTS = ("t", "at_ms", "fresh", "missed", "asked", "received")
PARTS = ("variance", "low", "high")
REVISED = ("revised", "revised_low", "revised_high")
"""What stands beside a release if it was asked for."""


def write(kind: str, stream: str, labels: Sequence[str], rows: Sequence[Release]) -> bytes:
    """Return releases in a format of `MEDIA_TYPES`."""
    return _WRITERS[kind](stream, labels, rows)


def _json(stream: str, labels: Sequence[str], rows: Sequence[Release]) -> bytes:
    head = json.dumps({"stream": stream, "labels": list(labels)})
    # Row by row: one call for all would keep other threads waiting until it is done.
    return f'{head[:-1]}, "releases": [{",".join(row.line for row in rows)}]}}'.encode()


def _ndjson(stream: str, labels: Sequence[str], rows: Sequence[Release]) -> bytes:
    return "".join(row.line + "\n" for row in rows).encode()


def _csv(stream: str, labels: Sequence[str], rows: Sequence[Release]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    parts = _parts(rows)
    writer.writerow([*FACTS, *labels, *(f"{part}:{name}" for part in parts for name in labels)])
    for row in rows:
        content = row.to_json()
        numbers = (number for part in ("values", *parts) for number in content[part])
        writer.writerow([*(content[fact] for fact in FACTS), *numbers])
    return text.getvalue().encode()


def _arrow(stream: str, labels: Sequence[str], rows: Sequence[Release]) -> bytes:
    need("Arrow", "data")
    file = io.BytesIO()
    _table(labels, rows).write_ipc(file)
    return file.getvalue()


def _parquet(stream: str, labels: Sequence[str], rows: Sequence[Release]) -> bytes:
    need("Parquet", "data")
    file = io.BytesIO()
    _table(labels, rows).write_parquet(file)
    return file.getvalue()


def _table(labels: Sequence[str], rows: Sequence[Release]) -> pl.DataFrame:
    import polars as pl

    contents = [row.to_json() for row in rows]
    kinds = {"fresh": pl.Boolean(), "missed": pl.Boolean()}
    columns = [
        pl.Series(
            name, [one[name] for one in contents for _ in labels], kinds.get(name, pl.Int64())
        )
        for name in FACTS
    ]
    columns.append(pl.Series("label", list(labels) * len(rows), pl.String()))
    for name, part in (("value", "values"), *((part, part) for part in _parts(rows))):
        numbers = [number for one in contents for number in one[part]]
        columns.append(pl.Series(name, numbers, pl.Float64()))
    return pl.DataFrame(columns)


def _parts(rows: Sequence[Release]) -> tuple[str, ...]:
    revised = bool(rows) and REVISED[0] in rows[0].content
    return (*PARTS, *REVISED) if revised else PARTS


_WRITERS: dict[str, Callable[[str, Sequence[str], Sequence[Release]], bytes]] = {
    "json": _json,
    "csv": _csv,
    "ndjson": _ndjson,
    "arrow": _arrow,
    "parquet": _parquet,
}
