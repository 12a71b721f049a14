"""The messages between a mechanism and its driver: asks out, tallies in, a release at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.oracles.collector_half import Pure, Support, sampling
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.refine.intervals import hull, normal_interval
from ldpstream.refine.relabelling import Relabelling


class Purpose(StrEnum):
    """Why users are asked: sub-mechanism M_{t,1} or M_{t,2} of the paper."""

    DISSIMILARITY = "dissimilarity"
    PUBLICATION = "publication"


@dataclass(frozen=True)
class Ask:
    """A request that `users` users report their value of this timestamp, each with `epsilon`."""

    users: int
    epsilon: Epsilon
    purpose: Purpose


@dataclass(frozen=True)
class Tally:
    """The answer to an ask: unbiased frequencies and their variance, bin by bin."""

    estimate: Floats
    variance: Floats
    reports: int
    sampled: float | None = None
    """Of the variance at a frequency f, `sampled` f(1-f) is due to who was asked. It is set where a
    tally combines strata (`strata.py`), whose variance holds as it stands; None means that all
    reports are one sample of the fleet, of one epsilon."""
    lasting: Floats | float = 0.0
    """The part of the variance that the next tallies will share: no filter averages it out."""

    @classmethod
    def of(cls, collector: Pure, support: Support, population: int) -> Tally:
        """Return the tally of counted reports; zero reports make a tally too.

        The variance is that of noise and of sampling from `population`, at the estimated
        frequencies.
        """
        if support.reports == 0:
            return cls.empty(len(support.counts))
        estimate = collector.estimate(support)
        frequencies = np.clip(estimate, 0.0, 1.0)
        variance = collector.variance(support.reports, frequencies, population)
        return cls(estimate, variance, support.reports)

    @classmethod
    def empty(cls, bins: int) -> Tally:
        return cls(np.zeros(bins), np.ones(bins), 0)

    def sampled_from(self, population: int) -> float:
        """Return the factor of f(1-f) in the variance that is due to who was asked."""
        return sampling(self.reports, population) if self.sampled is None else self.sampled

    def __bool__(self) -> bool:
        """Return whether anybody answered."""
        return self.reports > 0


def pooled_tally(tallies: Sequence[Tally]) -> Tally:
    """Merge tallies of disjoint reports of one timestamp, each weighted by its precision.

    The weights are the same for all bins: a bin's own variance is known only through its estimate,
    and weighting by that would favour low estimates.
    """
    if len(tallies) == 1:
        return tallies[0]
    weights = np.array([1 / tally.variance.mean() for tally in tallies])
    weights /= weights.sum()
    parts = list(zip(weights, tallies, strict=True))
    lasting = np.sum([w * np.sqrt(one.lasting) for w, one in parts], axis=0) ** 2
    noise = np.sum([w**2 * (one.variance - one.lasting) for w, one in parts], axis=0)
    return Tally(
        np.sum([w * one.estimate for w, one in parts], axis=0),
        noise + lasting,
        sum(one.reports for one in tallies),
        lasting=lasting,
    )


@dataclass(frozen=True)
class Release:
    """The histogram published for t.

    `variance` is that of the publication it rests on, when that was made. A frequency lies in
    [0, 1], so a variance of 1 says that nothing is known yet.
    """

    t: int
    values: Floats
    variance: Floats
    fresh: bool
    bounds: tuple[Floats, Floats] | None = None
    """An interval from more than this release; None means the one of a normal estimate."""

    @property
    def interval(self) -> tuple[Floats, Floats]:
        """The ends, by bin, of the interval that contains the truth with probability 0.9."""
        return self.bounds or normal_interval(self.values, self.variance)

    def showing(self, values: Floats) -> Release:
        """Return the release with other values, which its interval contains if they can be."""
        possible = np.clip(values, 0.0, 1.0)
        bounds = self.bounds and hull(self.bounds, (possible, possible))
        return replace(self, values=values, bounds=bounds)

    @classmethod
    def unknown(cls, bins: int) -> Release:
        """Return r_0 of the algorithms: zeros, before anything was published."""
        return cls(0, np.zeros(bins), np.ones(bins), fresh=False)

    def relabelled(self, move: Relabelling) -> Release:
        """Return the release by other labels; of new ones it says that nothing is known."""
        bounds = self.bounds and (
            move.summed(self.bounds[0]),
            np.minimum(move.summed(self.bounds[1], 1.0), 1.0),
        )
        values, variance = move.summed(self.values), move.summed(self.variance, 1.0)
        return replace(self, values=values, variance=variance, bounds=bounds)

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval
        return {
            "t": self.t,
            "values": self.values.tolist(),
            "variance": self.variance.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
            "fresh": self.fresh,
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Release:
        return cls(
            saved["t"], np.array(saved["values"]), np.array(saved["variance"]), saved["fresh"]
        )
