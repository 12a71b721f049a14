"""Transcripts of a run: what each simulated user has sent, as a collector would see it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import UserIndexes
from ldpstream.errors import Mistake, Problem
from ldpstream.lab.fleet import LabFleet
from ldpstream.lab.frames import Columns, pandas_frame, polars_frame
from ldpstream.mechanisms.noise import NoiseModel
from ldpstream.mechanisms.queries import HISTOGRAM
from ldpstream.mechanisms.settings import Settings
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import CountsStream, ShuffledUsers, Snapshot, Stream, ValuesSnapshot

if TYPE_CHECKING:
    import pandas
    import polars


@dataclass(frozen=True, repr=False)
class Transcript:
    """All reports of a run, in the order of time: who has sent what when, with which epsilon.

    It holds no true value: it is what a collector, or whoever attacks one, would know.
    """

    t: NDArray[np.int64]
    user: NDArray[np.uint32]
    epsilon: NDArray[np.float64]
    report: tuple[bytes, ...]
    """The bytes that the device sends; `Oracle.device(...).decode` reads them."""

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return f"Transcript({len(self):,} reports of {len(np.unique(self.user)):,} users)"

    def of(self, user: int) -> Transcript:
        """Return the part of one user."""
        own = np.flatnonzero(self.user == user)
        reports = tuple(self.report[place] for place in own)
        return Transcript(self.t[own], self.user[own], self.epsilon[own], reports)

    def columns(self) -> Columns:
        """Return a tidy table: a row for each report, its bytes in hexadecimal."""
        reports = np.array([wire.hex() for wire in self.report], object)
        return {"t": self.t, "user": self.user, "epsilon": self.epsilon, "report": reports}

    def to_pandas(self) -> pandas.DataFrame:
        return pandas_frame(self.columns())

    def to_polars(self) -> polars.DataFrame:
        return polars_frame(self.columns())


class TranscribingFleet(LabFleet):
    """A fleet in which the device half of the oracle draws every report, and all are kept."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._source = SeededSource(int(self._rng.integers(2**63)))
        self._kept: list[tuple[int, UserIndexes, Epsilon, list[bytes]]] = []

    def _support(
        self, t: int, users: UserIndexes | None, epsilon: Epsilon, snapshot: Snapshot
    ) -> Support:
        assert isinstance(self._noise, NoiseModel)
        who = np.arange(self._noise.population, dtype=np.uint32) if users is None else users
        device = self._noise.oracle.device(self._noise.labels, epsilon)
        wires = [
            device.encode(device.perturb(value, self._source))
            for value in self._values(snapshot, who)
        ]
        self._kept.append((t, who, epsilon, wires))
        collector = self._noise.pure(epsilon)
        return collector.support(collector.decode(wires))

    def _values(self, snapshot: Snapshot, users: UserIndexes) -> list[int]:
        if isinstance(snapshot, ValuesSnapshot):
            return [int(value) for value in snapshot.values[users]]
        ones = (snapshot.counts_of(users[[place]], self._rng) for place in range(len(users)))
        return [int(one.argmax()) for one in ones]

    def transcript(self) -> Transcript:
        """Return what was sent so far."""
        sizes = [len(who) for _, who, _, _ in self._kept]
        return Transcript(
            np.repeat([t for t, *_ in self._kept], sizes),
            np.concatenate([who for _, who, _, _ in self._kept]),
            np.repeat([float(epsilon) for *_, epsilon, _ in self._kept], sizes),
            tuple(wire for *_, wires in self._kept for wire in wires),
        )


class SeededSource:
    """A `Source` that repeats itself, for simulated devices only."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - nobody's value is protected here

    def coin(self, favour: int, total: int) -> bool:
        return self.below(total) < favour

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


def with_values(stream: Stream, settings: Settings) -> Stream:
    """Return the stream with values of single users; refuse settings without transcripts."""
    if settings.levels is not None or settings.query != HISTOGRAM:
        given = f"with {'levels' if settings.levels else settings.query}"
        expected = "a histogram without levels"
        raise Mistake(Problem.OPTION, option="transcripts", given=given, expected=expected)
    return ShuffledUsers(stream) if isinstance(stream, CountsStream) else stream
