"""What passes between a mechanism and its driver: asks out, tallies in, a release at the end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from ldpstream.oracles.collector_half import CollectorHalf, Floats, Support
from ldpstream.privacy.epsilon import Epsilon


class Purpose(StrEnum):
    """Why users are asked: sub-mechanism M_{t,1} or M_{t,2} of the paper."""

    DISSIMILARITY = "dissimilarity"
    PUBLICATION = "publication"


@dataclass(frozen=True)
class Ask:
    """Let `users` users report their value of this timestamp, each with `epsilon`."""

    users: int
    epsilon: Epsilon
    purpose: Purpose


@dataclass(frozen=True)
class Tally:
    """What came back of an ask: unbiased frequencies and their variance, bin by bin."""

    estimate: Floats
    variance: Floats
    reports: int

    @classmethod
    def of(cls, collector: CollectorHalf, support: Support, population: int) -> Tally:
        """The tally of counted reports; zero reports are a tally too.

        The variance is that of noise and of sampling from `population`, at the estimated
        frequencies.
        """
        if support.reports == 0:
            return cls.empty(collector.labels)
        estimate = collector.estimate(support)
        frequencies = np.clip(estimate, 0.0, 1.0)
        variance = collector.variance(support.reports, frequencies, population)
        return cls(estimate, variance, support.reports)

    @classmethod
    def empty(cls, bins: int) -> Tally:
        return cls(np.zeros(bins), np.ones(bins), 0)

    def __bool__(self) -> bool:
        """Whether anybody answered."""
        return self.reports > 0


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

    @classmethod
    def unknown(cls, bins: int) -> Release:
        """r_0 of the algorithms: zeros, before anything was published."""
        return cls(0, np.zeros(bins), np.ones(bins), fresh=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "t": self.t,
            "values": self.values.tolist(),
            "variance": self.variance.tolist(),
            "fresh": self.fresh,
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Release:
        return cls(
            saved["t"], np.array(saved["values"]), np.array(saved["variance"]), saved["fresh"]
        )
