"""What one release says about a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpstream.collector.store.contract import Release
from ldpstream.refine.sureness import Belief


@dataclass(frozen=True)
class Evidence:
    """A release, as all rules of its stream look at it."""

    release: Release

    @cached_property
    def _belief(self) -> Belief:
        content = self.release.content
        parts = (np.array(content[part], np.float64) for part in ("values", "low", "high"))
        return Belief.of(*parts)

    def value(self, place: int) -> float:
        return float(self.release.content["values"][place])

    def interval(self, place: int) -> tuple[float, float]:
        content = self.release.content
        return float(content["low"][place]), float(content["high"][place])

    def probability_above(self, place: int, threshold: float) -> float:
        """The probability that the truth is above the threshold, with a normal error."""
        errors = float(self._belief.above(threshold)[place])
        return math.erfc(-errors / math.sqrt(2)) / 2
