"""The leaderboard: every mechanism on every stream, under the same promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from ldpstream.lab.experiment import Experiment
from ldpstream.lab.reproduction.judges.predicates import geometric_mean
from ldpstream.lab.results import Results, Row
from ldpstream.mechanisms.settings import RunOptions
from ldpstream.streams.stream import Stream
from ldpstream.streams.synthetic import named

BUILT_IN = ("sin", "log", "lns", "step", "constant", "zipf:labels=32", "meter:steps=31")
"""Zipf and meter with fewer labels than usual: a page has to be made in minutes."""
GENERATED = tuple(f"generated:seed={seed}" for seed in range(4))
WITH_INTERVALS = RunOptions(intervals=True)
"""Every mechanism has intervals that hold now, as those of a collector do: without them the
coverage of releases that are carried over would not be comparable."""


class StreamKind(StrEnum):
    """Where a stream comes from."""

    BUILT_IN = "built-in"
    GENERATED = "generated"
    REAL = "real"


@dataclass(frozen=True)
class LeaderboardEntry:
    """A stream of the leaderboard, by the name that `--stream` knows it by."""

    kind: StreamKind
    name: str
    stream: Stream


def entries(real: Sequence[Stream], users: int, timestamps: int) -> tuple[LeaderboardEntry, ...]:
    """Return the streams; real ones have their own users, and are cut if they are longer.

    >>> [one.name for one in entries((), users=1000, timestamps=20)][:3]
    ['sin', 'log', 'lns']
    """
    made = {StreamKind.BUILT_IN: BUILT_IN, StreamKind.GENERATED: GENERATED}
    return (
        *(
            LeaderboardEntry(kind, name, named(name, users, timestamps))
            for kind, names in made.items()
            for name in names
        ),
        *(LeaderboardEntry(StreamKind.REAL, stream.name, stream) for stream in real),
    )


@dataclass(frozen=True)
class Place:
    """The figures of one mechanism on one stream: means over its repeats."""

    entry: LeaderboardEntry
    mechanism: str
    mse: float
    error: float
    """The standard error of `mse`."""
    factor: float
    """`mse` over the least of all mechanisms on this stream."""
    mre: float
    coverage: float | None
    auc: float | None
    """None where the stream has no event to find."""
    cfpu: float
    seconds: float
    """Processor time of a run: the simulated fleet, the mechanism and its intervals."""


@dataclass(frozen=True)
class MechanismStanding:
    """One mechanism over all streams."""

    mechanism: str
    factor: float
    """The geometric mean of its places' factors."""
    best_on: int
    """On how many streams no other has a smaller MSE."""
    mre_factor: float
    coverage: float | None
    auc: float | None
    cfpu: float
    milliseconds: float
    """Of a timestamp."""


@dataclass(frozen=True)
class Leaderboard:
    """Mechanisms on streams under one epsilon and window.

    >>> board = Leaderboard(entries((), 2000, 40)[:2], ("lpu", "lsp"), window=10, repeats=2)
    >>> places = board.places(board.experiment().run())
    >>> [len(places), min(place.factor for place in places)]
    [4, 1.0]
    >>> sum(standing.best_on for standing in standings(places))
    2
    """

    entries: tuple[LeaderboardEntry, ...]
    mechanisms: tuple[str, ...]
    epsilon: float = 1.0
    window: int = 20
    repeats: int = 3
    seed: int = 0

    def experiment(self) -> Experiment:
        return Experiment(
            [entry.stream for entry in self.entries],
            self.mechanisms,
            (self.epsilon,),
            (self.window,),
            repeats=self.repeats,
            options=WITH_INTERVALS,
            seed=self.seed,
        )

    def places(self, results: Results) -> list[Place]:
        """Return the places, stream by stream, the best mechanism first."""
        summary = results.summary()
        by_stream = (
            (entry, [row for row in summary if row["fingerprint"] == entry.stream.fingerprint])
            for entry in self.entries
        )
        return [place for entry, rows in by_stream for place in _ranked(entry, rows)]


def _ranked(entry: LeaderboardEntry, rows: Sequence[Row]) -> list[Place]:
    least = min(row["mse"] for row in rows)
    return [
        Place(
            entry,
            row["mechanism"],
            row["mse"],
            row["mse_sd"] / row["repeats"] ** 0.5,
            row["mse"] / least,
            row["mre"],
            row["coverage"],
            None if row["roc"] is None else row["auc"],
            row["cfpu"],
            row["seconds"],
        )
        for row in sorted(rows, key=lambda row: float(row["mse"]))
    ]


def standings(places: Sequence[Place]) -> list[MechanismStanding]:
    """Return the mechanisms over all streams, the one with the least mean factor first."""
    least_mre: dict[str, float] = {}
    for place in places:
        name = place.entry.name
        least_mre[name] = min(place.mre, least_mre.get(name, place.mre))
    found = []
    for mechanism in dict.fromkeys(place.mechanism for place in places):
        own = [place for place in places if place.mechanism == mechanism]
        timestamps = sum(place.entry.stream.timestamps for place in own)
        found.append(
            MechanismStanding(
                mechanism,
                geometric_mean([place.factor for place in own]),
                sum(place.factor == 1 for place in own),
                geometric_mean([place.mre / least_mre[place.entry.name] for place in own]),
                _mean([place.coverage for place in own]),
                _mean([place.auc for place in own]),
                fmean(place.cfpu for place in own),
                1000 * sum(place.seconds for place in own) / timestamps,
            )
        )
    return sorted(found, key=lambda standing: standing.factor)


def _mean(figures: Sequence[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return fmean(known) if known else None
