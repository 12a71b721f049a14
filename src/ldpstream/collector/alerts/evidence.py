"""What one release says about a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpstream.collector.store.contract import Release
from ldpstream.refine.sureness import Belief


@dataclass(frozen=True)
class Figure:
    """What a release says of one label."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Evidence:
    """A release, as all rules of its stream look at it: by the names of its labels.

    Terms may change, and with them the labels and their order. A release has its own.
    """

    release: Release
    names: Sequence[str]
    """The names of its figures, in order."""

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _belief(self) -> Belief:
        content = self.release.content
        parts = (np.array(content[part], np.float64) for part in ("values", "low", "high"))
        return Belief.of(*parts)

    def figure(self, label: str) -> Figure | None:
        """Return the figure of a label; None if the release has no such label."""
        place, content = self._places.get(label), self.release.content
        if place is None:
            return None
        return Figure(*(float(content[part][place]) for part in ("values", "low", "high")))

    def probability_above(self, label: str, threshold: float) -> float:
        """The probability that the truth is above the threshold, with a normal error."""
        errors = float(self._belief.above(threshold)[self._places[label]])
        return math.erfc(-errors / math.sqrt(2)) / 2
