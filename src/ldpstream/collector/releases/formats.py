"""Releases as files: what the API answers with and `ldpstream export` writes.

JSON, NDJSON and CSV have a row for each timestamp. Arrow and Parquet have a row for each timestamp
and label, so that their columns do not depend on the labels, and such rows for each group of
devices, too: their columns `attribute` and `group` are empty for the whole fleet. All have
variance, interval and flags.

If the terms of a stream have changed, a label is known by its name: CSV has a column for each label
of any version, which is empty where a release has no such label; JSON has the labels of each
version, and releases say which is theirs. In a stream of texts each release has names of its own.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.groups import FIGURES, GROUPS, written
from ldpstream.collector.store.names import ReleasedNames
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
FACTS = ("t", "at_ms", "fresh", "missed", "asked", "received", "terms_version")
PARTS = ("variance", "low", "high")
REVISED = ("revised", "revised_low", "revised_high")
"""What stands beside a release if it was asked for."""


def write(kind: str, stream: str, names: ReleasedNames, rows: Sequence[StoredRelease]) -> bytes:
    """Return releases in a format of `MEDIA_TYPES`."""
    return _WRITERS[kind](stream, names, rows)


def _json(stream: str, names: ReleasedNames, rows: Sequence[StoredRelease]) -> bytes:
    told: dict[str, object] = {"stream": stream, "labels": names.latest}
    if len(names.versions) > 1:
        told["labels_of_versions"] = names.versions
    head = json.dumps(told)
    # Row by row: one call for all would keep other threads waiting until it is done.
    return f'{head[:-1]}, "releases": [{",".join(row.line for row in rows)}]}}'.encode()


def _ndjson(stream: str, names: ReleasedNames, rows: Sequence[StoredRelease]) -> bytes:
    return "".join(row.line + "\n" for row in rows).encode()


def _csv(stream: str, names: ReleasedNames, rows: Sequence[StoredRelease]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    joined = names.columns(rows)
    parts = _parts(rows)
    beside = [f"{part}:{name}" for part in parts for name in joined]
    taken = {*FACTS, *beside} - set(names.joined)  # a text may be called anything
    own = (f"value:{name}" if name in taken else name for name in joined)
    # With "\r\n" at its end, which is then made "\n", a lone "\r" in a name is quoted, too.
    csv.writer(text).writerow([*FACTS, *own, *beside])
    text.seek(text.tell() - 2)
    text.truncate()
    text.write("\n")
    for row in rows:
        content = _content(row)
        numbers = (
            number
            for part in ("values", *parts)
            for number in _by_name(names.at(row), content[part], joined)
        )
        writer.writerow([*(content[fact] for fact in FACTS), *numbers])
    return text.getvalue().encode()


def _content(row: StoredRelease) -> dict[str, Any]:
    return {"terms_version": row.terms_version} | row.to_json()


def _by_name(
    names: Sequence[str], numbers: Sequence[float] | None, wanted: Sequence[str]
) -> Iterable[float | None]:
    """Return numbers in the order of the wanted names; None where there is none of that name.

    There are no revised figures at all of some releases.
    """
    if numbers is None:
        return [None] * len(wanted)
    if names == wanted:
        return numbers
    known = dict(zip(names, numbers, strict=True))
    return [known.get(name) for name in wanted]


def _arrow(stream: str, names: ReleasedNames, rows: Sequence[StoredRelease]) -> bytes:
    need("Arrow", "data")
    file = io.BytesIO()
    _table(names, rows).write_ipc(file)
    return file.getvalue()


def _parquet(stream: str, names: ReleasedNames, rows: Sequence[StoredRelease]) -> bytes:
    need("Parquet", "data")
    file = io.BytesIO()
    _table(names, rows).write_parquet(file)
    return file.getvalue()


def _table(names: ReleasedNames, rows: Sequence[StoredRelease]) -> pl.DataFrame:
    import polars as pl

    contents = [(one, names.at(row)) for row in rows for one in _by_group(_content(row))]
    kinds = {"fresh": pl.Boolean(), "missed": pl.Boolean()}
    columns = [
        pl.Series(
            fact,
            [one[fact] for one, labels in contents for _ in labels],
            kinds.get(fact, pl.Int64()),
        )
        for fact in FACTS
    ]
    labels = [label for _, labels in contents for label in labels]
    columns.append(pl.Series("label", labels, pl.String()))
    for name, place in (("attribute", 0), ("group", 2)):
        parts = [one.get("group", "").partition(":")[place] for one, own in contents for _ in own]
        columns.append(pl.Series(name, parts, pl.String()))
    for name, part in (("value", "values"), *((part, part) for part in _parts(rows))):
        numbers = [n for one, own in contents for n in _by_name(own, one.get(part), own)]
        columns.append(pl.Series(name, numbers, pl.Float64()))
    return pl.DataFrame(columns)


def _by_group(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the content of a release, and that of each group that it has figures of."""
    groups = [
        {key: part for key, part in content.items() if key not in REVISED}
        | {part: one[part] for part in FIGURES}
        | {"group": written((one["attribute"], one["value"]))}
        for one in content.get(GROUPS, ())
    ]
    return [content, *groups]


def _parts(rows: Sequence[StoredRelease]) -> tuple[str, ...]:
    """Return what stands beside the values of releases; all of them are revised, or none is."""
    revised = bool(rows) and REVISED[0] in rows[0].content
    return (*PARTS, *REVISED) if revised else PARTS


_WRITERS: dict[str, Callable[[str, ReleasedNames, Sequence[StoredRelease]], bytes]] = {
    "json": _json,
    "csv": _csv,
    "ndjson": _ndjson,
    "arrow": _arrow,
    "parquet": _parquet,
}
