"""The evidence that one release gives to the rules of its stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpstream.collector.store.contract import StoredRelease
from ldpstream.refine.sureness import Belief


@dataclass(frozen=True)
class LabelFigure:
    """What a release says of one label."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class LevelChange:
    """A change of one label's level at once, as readers see it."""

    t: int
    """The first timestamp after it, and the first and the last that may be (90 %)."""
    first_t: int
    last_t: int
    label: str
    size: float
    low: float
    high: float


@dataclass(frozen=True)
class AlertEvidence:
    """A release, as all rules of its stream look at it: by the names of its labels.

    Terms may change, and with them the labels and their order. A release has its own.
    """

    release: StoredRelease
    names: Sequence[str]
    """The names of its figures, in order."""
    silent_ms: int = 0
    """How long nobody had reported by then, though the collector was there to hear it."""
    changes: Sequence[LevelChange] | None = None
    """The recent changes, as they are known by then, or None if nobody has looked."""

    @property
    def is_heard(self) -> bool:
        """Whether reports stand behind the release: otherwise its figures are carried on.

        A mechanism may carry a release over because reports have shown that it still holds. If
        those are suspect they may have been discarded, and show nothing.
        """
        if self.release.missed:
            return False
        content = self.release.content
        confirmed = self.release.received > 0 and not content.get("suspect")
        return bool(content["fresh"]) or confirmed

    @property
    def without_figure(self) -> bool | None:
        """The verdict of a rule about a label that the release does not have: false.

        None for a text while nobody reports: intervals widen until no text is listed.
        """
        is_text = "labels" in self.release.content
        return None if is_text and not self.is_heard else False

    @property
    def is_hidden(self) -> bool:
        """Whether it is about a group of devices of which the release has no figures."""
        return self.release.content["values"] is None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _belief(self) -> Belief:
        content = self.release.content
        parts = (np.array(content[part], np.float64) for part in ("values", "low", "high"))
        return Belief.of(*parts)

    def figure(self, label: str) -> LabelFigure | None:
        """Return the figure of a label; None if the release has no such label."""
        place, content = self._places.get(label), self.release.content
        if place is None or self.is_hidden:
            return None
        return LabelFigure(*(float(content[part][place]) for part in ("values", "low", "high")))

    def probability_above(self, label: str, threshold: float) -> float:
        """The probability that the truth is above the threshold, with a normal error."""
        return normal_probability(float(self._belief.above(threshold)[self._places[label]]))


def normal_probability(errors: float) -> float:
    """Return the probability that a normal variable is below so many standard errors.

    >>> round(normal_probability(1.645), 3)
    0.95
    """
    return math.erfc(-errors / math.sqrt(2)) / 2
