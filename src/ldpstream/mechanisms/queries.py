"""The queries of a stream: a histogram of labels, the mean of a number, or its distribution.

A mechanism does not know which. It sees bins in [0, 1] (`Noise`); a query says how to fill them and
how to show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ldpstream.arrays import Counts, Floats
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.cover_noise import CoverNoise, merged
from ldpstream.mechanisms.mean_noise import MeanNoise
from ldpstream.mechanisms.messages import Release
from ldpstream.mechanisms.noise import Noise, NoiseModel
from ldpstream.numeric import Numeric, Range, choose_mean
from ldpstream.numeric.square_wave.device import best_width
from ldpstream.oracles import Oracle, choose
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.refine.consistency import Consistency

if TYPE_CHECKING:
    from ldpstream.mechanisms.settings import Settings

FINEST = 256
"""Cells that a distribution is reconstructed in, or a few more: smoothing blurs cells, not bins."""


class Query(Protocol):
    """A query of a stream whose users hold one of `labels` values.

    Tables of results tell queries apart by their text, `str(query)`.
    """

    @property
    def unit(self) -> float:
        """The greatest possible difference between two answers."""
        ...

    def length(self, labels: int) -> int:
        """Return the length of an answer."""
        ...

    def names(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the parts of an answer, for tables and figures."""
        ...

    def oracle(self, name: str) -> Oracle | Numeric:
        """Return the randomiser of that name, if it can serve this query."""
        ...

    def noise(self, settings: Settings, share: Epsilon) -> Noise:
        """Return how reports are made and read; `share` is their epsilon under an even division.

        One randomiser serves the whole stream, since devices pin it: the best for that share.
        """
        ...

    def consistency(self, rule: Consistency) -> Consistency:
        """Translate a rule for histograms into one for the bins that a mechanism sees."""
        ...

    def truth(self, counts: Counts) -> Floats:
        """Return the true answer, given how many users hold each value."""
        ...

    def shown(self, release: Release, noise: Noise) -> Release:
        """Return a raw release as an answer."""
        ...


@dataclass(frozen=True)
class HistogramQuery:
    """The share of users that hold each label."""

    def __str__(self) -> str:
        return "histogram"

    @property
    def unit(self) -> float:
        return 1.0

    def length(self, labels: int) -> int:
        return labels

    def names(self, labels: Sequence[str]) -> tuple[str, ...]:
        return tuple(labels)

    def oracle(self, name: str) -> Oracle:
        return Oracle.named(name)

    def noise(self, settings: Settings, share: Epsilon) -> Noise:
        oracle = self.oracle(settings.oracle or choose(settings.labels, share))
        return NoiseModel(oracle, settings.labels, settings.users, settings.variance)

    def consistency(self, rule: Consistency) -> Consistency:
        return rule

    def truth(self, counts: Counts) -> Floats:
        return np.asarray(counts / counts.sum())

    def shown(self, release: Release, noise: Noise) -> Release:
        return release


@dataclass(frozen=True)
class MeanQuery:
    """The mean of a number from `low` to `high`; the stream's labels are its levels, in order.

    >>> MeanQuery(-20, 60).truth(np.array([1, 0, 3])).tolist()
    [40.0]
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        Range(self.low, self.high)

    def __str__(self) -> str:
        return f"mean of {float(self.low)} to {float(self.high)}"

    @property
    def unit(self) -> float:
        return self.high - self.low

    def length(self, labels: int) -> int:
        return 1

    def names(self, labels: Sequence[str]) -> tuple[str, ...]:
        return ("mean",)

    def oracle(self, name: str) -> Numeric:
        return Numeric.named(name)

    def noise(self, settings: Settings, share: Epsilon) -> Noise:
        oracle = self.oracle(settings.oracle or choose_mean(settings.labels, share))
        return MeanNoise(oracle, settings.labels, settings.users, settings.variance)

    def consistency(self, rule: Consistency) -> Consistency:
        """Clip the mean to the range, or leave it raw."""
        return Consistency.NONE if rule is Consistency.NONE else Consistency.CLIP

    def truth(self, counts: Counts) -> Floats:
        levels = Range(self.low, self.high, len(counts) - 1)
        return np.array([levels.value(float(counts @ np.arange(len(counts)) / counts.sum()))])

    def shown(self, release: Release, noise: Noise) -> Release:
        return replace(
            release,
            values=self._scaled(release.values),
            variance=self.unit**2 * release.variance,
            bounds=release.bounds
            and (self._scaled(release.bounds[0]), self._scaled(release.bounds[1])),
        )

    def _scaled(self, shares: Floats) -> Floats:
        return self.low + self.unit * shares


@dataclass(frozen=True)
class DistributionQuery:
    """The shares of `bins` equal parts of a number's range; the labels are its levels, in order.

    What is shown is reconstructed by EM with smoothing. It has no variance that could be stated
    honestly, so it states none (NaN).

    >>> DistributionQuery(0, 10, bins=2).truth(np.array([1, 0, 3, 4])).tolist()
    [0.125, 0.875]
    """

    low: float
    high: float
    bins: int = 32

    def __post_init__(self) -> None:
        Range(self.low, self.high)
        if not 2 <= self.bins <= FINEST:
            self._refuse(f"in {self.bins} bins", f"2 to {FINEST}")

    def __str__(self) -> str:
        return f"distribution of {float(self.low)} to {float(self.high)} in {self.bins} bins"

    def _refuse(self, given: str, expected: str) -> None:
        raise Mistake(Problem.OPTION, option="the distribution", given=given, expected=expected)

    @property
    def unit(self) -> float:
        return 1.0

    def length(self, labels: int) -> int:
        return self.bins

    def names(self, labels: Sequence[str]) -> tuple[str, ...]:
        edges = np.linspace(self.low, self.high, self.bins + 1).tolist()
        return tuple(f"[{low:g}, {high:g})" for low, high in pairwise(edges))

    def oracle(self, name: str) -> Numeric:
        if name.lower() != Numeric.SQUARE_WAVE:
            raise Mistake(Problem.ORACLE_UNKNOWN, given=name, known=Numeric.SQUARE_WAVE)
        return Numeric.SQUARE_WAVE

    def noise(self, settings: Settings, share: Epsilon) -> Noise:
        oracle = self.oracle(settings.oracle or Numeric.SQUARE_WAVE)
        cells = self._cells(settings.labels)
        width = best_width(cells, share)
        return CoverNoise(oracle, cells, width, share, settings.users, settings.variance)

    def _cells(self, labels: int) -> int:
        """Return the number of inputs of the square wave, equally many for each bin."""
        if labels < self.bins:
            self._refuse(f"in {self.bins} bins of {labels} levels", "at most one bin per level")
        return self.bins * min(-(-FINEST // self.bins), labels // self.bins)

    def consistency(self, rule: Consistency) -> Consistency:
        """Leave covers raw: what is reconstructed from them is a distribution anyway."""
        return Consistency.NONE

    def truth(self, counts: Counts) -> Floats:
        return np.asarray(merged(counts, self.bins) / counts.sum())

    def shown(self, release: Release, noise: Noise) -> Release:
        assert isinstance(noise, CoverNoise)
        shares = noise.distribution(release.values, self.bins)
        return replace(release, values=shares, variance=np.full(self.bins, np.nan), bounds=None)


HISTOGRAM = HistogramQuery()
