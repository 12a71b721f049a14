"""The queries of a stream: a histogram of labels, the mean of a number, or its distribution.

A mechanism does not know which. It sees bins in [0, 1] (`Noise`); a query says how to fill them and
how to show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ldpstream.arrays import Counts, Floats
from ldpstream.domain import Domain
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.distribution_noise import DistributionNoise, merged
from ldpstream.mechanisms.mean_noise import MeanNoise
from ldpstream.mechanisms.messages import Release
from ldpstream.mechanisms.noise import Noise, NoiseModel
from ldpstream.numeric import BinnedRange, Numeric, Range, choose_mean
from ldpstream.numeric.range import QUANTILES, cells_of
from ldpstream.numeric.square_wave.device import best_width
from ldpstream.oracles import Oracle, choose
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.refine.consistency import Consistency
from ldpstream.refine.intervals import normal_variance
from ldpstream.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ldpstream.mechanisms.settings import Settings


class Query(Protocol):
    """A query of a stream whose users hold one of `labels` values.

    Tables of results tell queries apart by their text, `str(query)`.
    """

    @property
    def unit(self) -> float:
        """The greatest possible difference between two answers."""
        ...

    @property
    def shares(self) -> slice:
        """The parts of an answer whose error counts: all, unless some are of another kind."""
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

    @property
    def shares(self) -> slice:
        return slice(None)

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

    @property
    def shares(self) -> slice:
        return slice(None)

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
    """The distribution of a number from `low` to `high`; the stream's labels are its levels.

    An answer has the shares of `bins` equal parts of the range, some quantiles, and the mean; the
    last two are in the unit of the range. What is shown is a density that is fitted to what the
    mechanism released (`refine/density.py`), and intervals are those of its posterior.

    >>> DistributionQuery(0, 10, bins=2).truth(np.array([1, 0, 3, 4]))[:2].tolist()
    [0.125, 0.875]
    """

    low: float
    high: float
    bins: int = 32

    def __post_init__(self) -> None:
        BinnedRange.of(self.low, self.high, self.bins)

    def __str__(self) -> str:
        return f"distribution of {float(self.low)} to {float(self.high)} in {self.bins} bins"

    @property
    def unit(self) -> float:
        return 1.0

    @property
    def shares(self) -> slice:
        """The bins; the rest of an answer is numbers in the unit of the range."""
        return slice(0, self.bins)

    @property
    def quantiles(self) -> slice:
        return slice(self.bins, self.bins + len(QUANTILES))

    def place(self, figure: str) -> int:
        """Return where a figure such as p50 is in an answer."""
        return self.names(()).index(figure)

    def length(self, labels: int) -> int:
        return self.bins + len(QUANTILES) + 1

    def names(self, labels: Sequence[str]) -> tuple[str, ...]:
        return BinnedRange.of(self.low, self.high, self.bins).names

    def oracle(self, name: str) -> Numeric:
        if name.lower() != Numeric.SQUARE_WAVE:
            raise Mistake(Problem.ORACLE_UNKNOWN, given=name, known=Numeric.SQUARE_WAVE)
        return Numeric.SQUARE_WAVE

    def noise(self, settings: Settings, share: Epsilon) -> Noise:
        oracle = self.oracle(settings.oracle or Numeric.SQUARE_WAVE)
        cells = self.cells(settings.labels)
        width = best_width(cells, share)
        return DistributionNoise(oracle, settings.labels, cells, width, share, settings.users)

    def cells(self, labels: int) -> int:
        """Return the number of inputs of the square wave."""
        if labels < self.bins:
            raise Mistake(
                Problem.OPTION,
                option="the distribution",
                given=f"in {self.bins} bins of {labels} levels",
                expected="at most one bin per level",
            )
        return cells_of(self.bins, labels)

    def consistency(self, rule: Consistency) -> Consistency:
        """Leave readings raw: what is fitted to them is a distribution anyway."""
        return Consistency.NONE

    def truth(self, counts: Counts) -> Floats:
        shares = counts / counts.sum()
        below, edges = np.append(0.0, np.cumsum(shares)), np.linspace(0, 1, len(counts) + 1)
        quantiles = np.interp(list(QUANTILES.values()), below, edges)
        mean = shares @ (edges[1:] + edges[:-1]) / 2
        numbers = self._numbers(np.append(quantiles, mean), len(counts))
        return np.concatenate([merged(counts, self.bins) / counts.sum(), numbers])

    def shown(self, release: Release, noise: Noise) -> Release:
        assert isinstance(noise, DistributionNoise)
        density = noise.density(release, self.bins)
        bins, quantiles = density.bins(self.bins), density.quantiles(list(QUANTILES.values()))
        parts = zip(bins, quantiles, noise.mean(release), strict=True)
        values, low, high = (
            np.concatenate([share, self._numbers(np.append(quantile, mean), noise.levels)])
            for share, quantile, mean in parts
        )
        return replace(
            release, values=values, variance=normal_variance(low, high), bounds=(low, high)
        )

    def _numbers(self, fractions: Floats, levels: int) -> Floats:
        """Return the numbers at fractions of all levels, each of which is as long as a step."""
        steps = levels - 1
        units = np.clip(fractions * levels - 0.5, 0, steps) / steps
        return np.asarray(self.low + (self.high - self.low) * units)


HISTOGRAM = HistogramQuery()


def query_of(values: Domain | Range | Vocabulary) -> Query:
    """Return the query of a stream whose devices hold these values."""
    if isinstance(values, BinnedRange):
        return DistributionQuery(values.low, values.high, values.bins)
    return MeanQuery(values.low, values.high) if isinstance(values, Range) else HISTOGRAM
