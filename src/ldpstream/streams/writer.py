"""A writer of events, in any order and number, to an `EventsStream`, in bounded memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ldpstream.domain import Domain
from ldpstream.streams.events import ENDS, FORMAT, META, USERS, VALUES, EventsStream
from ldpstream.streams.stream import index_type

Array = NDArray[Any]

BUCKETS = 64
"""Spill files, each for a span of timestamps; well below the 256 open files that macOS allows."""
_ROW = np.dtype([("t", "<u4"), ("user", "<u4"), ("value", "<u2"), ("time", "<i8")])


class EventsWriter:
    """An external sort: events are spilled by span of timestamps, then each span is sorted.

    Of several events of one user within one timestamp the last one counts: by `time`, and of equal
    times the one that was added last. Events that change nothing are left out.
    """

    def __init__(self, folder: Path, domain: Domain, users: int, timestamps: int) -> None:
        self._folder = folder
        self._domain = domain
        self._users = users
        self._timestamps = timestamps
        self._span = -(-timestamps // BUCKETS)
        self._paths = [folder / f"spill-{bucket}" for bucket in range(BUCKETS)]
        self._spills = [path.open("wb") for path in self._paths]

    def __enter__(self) -> EventsWriter:
        return self

    def __exit__(self, *error: object) -> None:
        for spill in self._spills:
            spill.close()

    def add(self, t: Array, user: Array, value: Array, time: Array) -> None:
        """Take events in: t from 1, indexes of users and labels, and a time that orders them."""
        rows = np.empty(len(t), _ROW)
        rows["t"], rows["user"], rows["value"], rows["time"] = t, user, value, time
        bucket = ((rows["t"] - 1) // self._span).astype(np.uint8)
        order = np.argsort(bucket, kind="stable")
        rows, ends = rows[order], np.cumsum(np.bincount(bucket, minlength=BUCKETS))
        for spill, part in zip(self._spills, np.split(rows, ends[:-1]), strict=True):
            if len(part):
                spill.write(part.data)

    def finish(self, name: str, key: str) -> EventsStream:
        """Sort what was added and write the stream."""
        labels = index_type(len(self._domain))
        held = np.zeros(self._users, labels)
        changes = np.zeros(self._timestamps + 1, np.int64)
        with (
            _NpyFile(self._folder / USERS, np.dtype("<u4")) as users,
            _NpyFile(self._folder / VALUES, np.dtype(labels)) as values,
        ):
            for path, spill in zip(self._paths, self._spills, strict=True):
                spill.close()
                rows = _changes(np.fromfile(path, _ROW), held)
                path.unlink()
                users.append(rows["user"])
                values.append(rows["value"])
                changes += np.bincount(rows["t"], minlength=len(changes))
        np.save(self._folder / ENDS, np.cumsum(changes))
        meta = {
            "format": FORMAT,
            "name": name,
            "labels": self._domain.labels,
            "users": self._users,
            "timestamps": self._timestamps,
            "key": key,
        }
        (self._folder / META).write_text(json.dumps(meta, indent=1), encoding="utf-8")
        return EventsStream.open(self._folder)


def _changes(rows: Array, held: Array) -> Array:
    """Return the rows that change what a user holds, sorted by t; `held` is updated.

    Only the last row of each user and timestamp can be one.
    """
    if not len(rows):
        return rows
    rows = rows[np.argsort(rows["time"], kind="stable")]
    key = rows["user"].astype(np.uint64) << 32 | rows["t"]
    rows = rows[np.argsort(key, kind="stable")]
    user, t = rows["user"], rows["t"]
    rows = rows[_last_of_run((user[1:] != user[:-1]) | (t[1:] != t[:-1]))]
    user, value = rows["user"], rows["value"]
    other_user = user[1:] != user[:-1]
    before = np.concatenate([held[user[:1]], value[:-1]])
    starts = np.flatnonzero(other_user) + 1
    before[starts] = held[user[starts]]
    last = _last_of_run(other_user)
    held[user[last]] = value[last]
    rows = rows[value != before]
    return rows[np.argsort(rows["t"], kind="stable")]


def _last_of_run(differs_from_next: Array) -> Array:
    return np.append(differs_from_next, True)


class _NpyFile:
    """A .npy file that grows; its header has room for the final length."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._file = path.open("wb")
        self._dtype = dtype
        self._length = 0
        self._header()

    def __enter__(self) -> _NpyFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.seek(0)
        self._header()
        self._file.close()

    def append(self, column: Array) -> None:
        self._file.write(np.ascontiguousarray(column, self._dtype).data)
        self._length += len(column)

    def _header(self) -> None:
        npy.write_array_header_1_0(
            self._file,
            {
                "descr": npy.dtype_to_descr(self._dtype),
                "fortran_order": False,
                "shape": (self._length,),
            },
        )
