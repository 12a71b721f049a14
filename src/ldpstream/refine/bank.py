"""A bank of members that has seen all tallies of a stretch of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpstream.arrays import Flags, Floats
from ldpstream.refine.disturbances import Gains, Means, Sparse
from ldpstream.refine.hindsight import Member


@dataclass(frozen=True)
class Stretch:
    """Tallies of some labels over some timestamps, T x d."""

    measured: Floats
    """0 where nothing was measured."""
    variance: Floats
    heard: Flags

    @cached_property
    def shared(self) -> Floats:
        """The variance of a tally at each timestamp, of the mean label."""
        return self.variance.mean(axis=1)

    @cached_property
    def scale(self) -> float:
        """The unit of all process noises."""
        return float(self.shared[self.heard].mean())

    @cached_property
    def relative(self) -> Floats:
        """The variance of each label's tallies, in units of the mean label's."""
        return self.variance[self.heard].mean(axis=0) / self.scale

    def part(self, rows: slice, columns: slice) -> Stretch:
        """Return a part that keeps the variance that all labels share."""
        part = Stretch(
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

    def over(self, stretch: Stretch, shifts: Floats) -> list[Seen]:
        """Run all members over a stretch; return what they have seen of each label.

        `shifts` are variances that the level has in addition, T.
        """
        shared = stretch.shared
        gains = [Gains.of(model, shared, stretch.heard, shifts) for model in self.models]
        pairs = zip(self.models, gains, strict=True)
        means = [Means.of(model, gain, self.start, stretch.measured) for model, gain in pairs]
        common = {
            name: np.stack([getattr(gain, name) for gain in gains], axis=1)
            for name in ("spreads", "certainty", "shift", "apart")
        }
        return [
            Seen(
                *(
                    np.stack([getattr(mean, name)[:, label] for mean in means], axis=1)
                    for name in ("innovations", "apart", "score")
                ),
                **{f"{name}_shared" if name == "apart" else name: x for name, x in common.items()},
            )
            for label in range(stretch.measured.shape[1])
        ]


@dataclass(frozen=True)
class Seen:
    """What members make of one label, T x members; variances are those of the mean label."""

    innovations: Floats
    apart: Floats
    """Means of the label's share at t, from all tallies but that of t."""
    score: Floats
    spreads: Floats
    certainty: Floats
    shift: Floats
    apart_shared: Floats
    """Variances of these means."""

    def said_before(self, relative: float) -> Floats:
        """Return the log-density that each member gave each tally, from those before it."""
        spreads = np.where(np.isfinite(self.spreads), relative * self.spreads, 1.0)
        heard = np.isfinite(self.spreads)
        return np.where(heard, -0.5 * (self.innovations**2 / spreads + np.log(spreads)), 0.0)

    def said_between(self, measured: Floats, relative: float) -> Floats:
        """Return the log-density that each member gave each tally, from all others."""
        certainty = np.where(self.certainty > 0, self.certainty / relative, 1.0)
        squares = (measured[:, None] - self.apart) ** 2
        said = -0.5 * (squares * certainty - np.log(certainty))
        return np.where(self.certainty > 0, said, 0.0)
