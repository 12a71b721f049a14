"""A bank of members that has seen all tallies of a stretch of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ldpstream.arrays import Flags, Floats
from ldpstream.compiled import in_chunks
from ldpstream.refine.disturbances import Gains, Means, Sparse
from ldpstream.refine.hindsight import Member

Item = TypeVar("Item")
Done = TypeVar("Done")


@dataclass(frozen=True)
class TallyBlock:
    """Tallies of some labels over some timestamps, T x d."""

    measured: Floats
    """0 where nothing was measured."""
    variance: Floats
    heard: Flags

    @cached_property
    def shared(self) -> Floats:
        """The variance of a tally at each timestamp, of the mean label."""
        shared: Floats = self.variance.mean(axis=1)
        return shared

    @cached_property
    def scale(self) -> float:
        """The unit of all process noises."""
        return float(self.shared[self.heard].mean())

    @cached_property
    def relative(self) -> Floats:
        """The variance of each label's tallies, in units of the mean label's."""
        relative: Floats = self.variance[self.heard].mean(axis=0) / self.scale
        return relative

    def part(self, rows: slice, columns: slice) -> TallyBlock:
        """Return a part that keeps the variance that all labels share."""
        part = TallyBlock(
            self.measured[rows, columns], self.variance[rows, columns], self.heard[rows]
        )
        part.__dict__.update(shared=self.shared[rows], scale=self.scale)
        return part


@dataclass(frozen=True)
class Bank:
    """Members in units of a stream's tallies, and their prior weights."""

    models: tuple[Sparse, ...]
    prior: Floats
    errors: Floats
    """The shares of the members' variances that are error."""
    seasonal: Flags
    start: float

    @classmethod
    def of(cls, members: Sequence[Member], labels: int, scale: float) -> Bank:
        start_variance = (1 - 1 / labels) / labels if labels > 1 else 1.0
        prior = np.array([member.prior for member in members])
        return cls(
            tuple(Sparse.of(member.model, start_variance, scale) for member in members),
            prior / prior.sum(),
            np.array([member.error for member in members]),
            np.array([member.is_season for member in members]),
            1 / max(labels, 2),
        )

    def only(self, kept: Flags) -> Bank:
        """Return a bank of some of the members."""
        models = tuple(m for m, keep in zip(self.models, kept, strict=True) if keep)
        prior = self.prior[kept] / self.prior[kept].sum()
        return Bank(models, prior, self.errors[kept], self.seasonal[kept], self.start)

    def over(self, stretch: TallyBlock, shifts: Floats) -> list[Between]:
        """Run all members over a stretch; return what they say of each label.

        `shifts` are variances that the level has in addition, T.
        """
        gains, means = self._run(stretch, shifts)
        certainty, variances = _side_by_side(gains, "certainty"), _side_by_side(gains, "apart")
        return [
            Between(_side_by_side(means, "apart", label), certainty, variances)
            for label in range(stretch.measured.shape[1])
        ]

    def tested(self, stretch: TallyBlock, shifts: Floats) -> Tested:
        """Run all members over a stretch of one label, to look for shifts."""
        gains, means = self._run(stretch, shifts)
        return Tested(
            *(_side_by_side(means, name, 0) for name in ("innovations", "score")),
            *(_side_by_side(gains, name) for name in ("spreads", "shift")),
        )

    def _run(self, stretch: TallyBlock, shifts: Floats) -> tuple[list[Gains], list[Means]]:
        def run(model: Sparse) -> tuple[Gains, Means]:
            gains = Gains.of(model, stretch.shared, stretch.heard, shifts)
            return gains, Means.of(model, gains, self.start, stretch.measured)

        gains, means = zip(*in_threads(run, self.models, len(stretch.heard)), strict=True)
        return list(gains), list(means)


def in_threads(work: Callable[[Item], Done], items: Sequence[Item], rows: int) -> list[Done]:
    """Return what `work` makes of each item, which has so many rows, on all cores."""
    turns = [*range(0, len(items), 2), *range(1, len(items), 2)]  # those side by side cost alike

    def part(begin: int, end: int) -> list[tuple[int, Done]]:
        return [(turn, work(items[turn])) for turn in turns[begin // rows : end // rows]]

    parts = in_chunks(rows * len(items), part, rows)
    done = dict(pair for part in parts for pair in part)
    return [done[place] for place in range(len(items))]


def _side_by_side(parts: Sequence[Any], name: str, label: int | None = None) -> Floats:
    """Return one figure of all members, T x members, for a label if labels have their own."""
    arrays = [getattr(part, name) for part in parts]
    return np.stack(arrays if label is None else [one[:, label] for one in arrays], axis=1)


@dataclass(frozen=True)
class Between:
    """What members say of one label from all tallies but that of t, T x members."""

    means: Floats
    certainty: Floats
    """Reciprocal variances of a tally, in units of the mean label's."""
    variances: Floats
    """Variances of the means, in the same units."""

    def said(self, measured: Floats, relative: float) -> Floats:
        """Return the log-density that each member gave each tally, from all others."""
        certainty = np.where(self.certainty > 0, self.certainty / relative, 1.0)
        squares = (measured[:, None] - self.means) ** 2
        said = -0.5 * (squares * certainty - np.log(certainty))
        return np.where(self.certainty > 0, said, 0.0)


@dataclass(frozen=True)
class Tested:
    """What members say of one label from the tallies before t, and of a shift there."""

    innovations: Floats
    score: Floats
    spreads: Floats
    shift: Floats

    def said(self, relative: float) -> Floats:
        """Return the log-density that each member gave each tally, from those before it."""
        spreads = np.where(np.isfinite(self.spreads), relative * self.spreads, 1.0)
        heard = np.isfinite(self.spreads)
        return np.where(heard, -0.5 * (self.innovations**2 / spreads + np.log(spreads)), 0.0)
