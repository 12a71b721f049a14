"""A stream of recorded events: each user keeps a value until the next one is recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts
from ldpstream.domain import Domain
from ldpstream.errors import Mistake, Problem
from ldpstream.streams.home import fingerprint
from ldpstream.streams.stream import (
    Snapshot,
    ValuesSnapshot,
    brief,
    fingerprint_of,
    index_type,
)

NONE = "none"
"""The label of a user before the first value (docs/paper-corrections.md, 14)."""
FORMAT = 1
"""Raised whenever the files below a folder change their meaning."""
META, ENDS, USERS, VALUES = "meta.json", "ends.npy", "users.npy", "values.npy"


class CarriedSnapshot(ValuesSnapshot):
    """Each user's label, with a histogram that is updated incrementally."""

    def __init__(self, values: NDArray[Any], counts: Counts) -> None:
        super().__init__(values, len(counts))
        self._counts = counts

    @property
    def counts(self) -> Counts:
        return self._counts


@dataclass(frozen=True, repr=False)
class EventsStream:
    """Changes of value, sorted by timestamp, in a folder that `EventsWriter` wrote.

    `users.npy` and `values.npy` say who changes to what; the changes of timestamp t end at
    `ends.npy[t]`. Everybody starts with label 0, which is "none" if anyone is without a value. The
    files are mapped, not read, and a run needs 1 or 2 bytes per user; the object itself is small
    and cheap to send between processes.
    """

    folder: Path
    name: str
    domain: Domain
    users: int
    timestamps: int
    key: str
    """Fingerprint of the files that it was made from and of how they were read."""

    @classmethod
    def open(cls, folder: Path) -> EventsStream:
        """Open a stream; raise `OSError` or `ValueError` if there is none in the folder."""
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        if meta.pop("format") != FORMAT:
            raise ValueError(f"{folder} has another format")
        return cls(folder=folder, domain=Domain.of(meta.pop("labels")), **meta)

    def __repr__(self) -> str:
        return brief(self)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the files: a folder that is prepared again may differ under the same key."""
        content = fingerprint(self.folder / file for file in (ENDS, USERS, VALUES))
        return fingerprint_of("events", self.domain, self.users, self.timestamps, content)

    def first(self, timestamps: int) -> EventsStream:
        """Return the same stream, cut after so many timestamps."""
        if not 1 <= timestamps <= self.timestamps:
            raise Mistake(
                Problem.STREAM_PARAMETER,
                stream=self.name,
                name="timestamps",
                given=timestamps,
                expected=f"1 to {self.timestamps}",
            )
        return replace(self, timestamps=timestamps)

    def snapshots(self, rng: np.random.Generator) -> Iterator[Snapshot]:
        labels = len(self.domain)
        ends, users, values = (
            np.load(self.folder / file, mmap_mode="r") for file in (ENDS, USERS, VALUES)
        )
        held = np.zeros(self.users, index_type(labels))
        counts = np.zeros(labels, np.int64)
        counts[0] = self.users
        for t in range(1, self.timestamps + 1):
            now = slice(int(ends[t - 1]), int(ends[t]))
            changing, new = users[now], values[now]
            counts += np.bincount(new, minlength=labels)
            counts -= np.bincount(held[changing], minlength=labels)
            held[changing] = new
            yield CarriedSnapshot(held, counts.copy())
