"""The conditions of alert rules, one class for each kind.

A condition answers True or False, or None where a release is no evidence for either: then an alert
stays as it is. A figure that was carried on without a report is evidence of nothing but silence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from ldpstream.collector.alerts.evidence import (
    AlertEvidence,
    LabelFigure,
    LevelChange,
    normal_probability,
)
from ldpstream.durations import spelled
from ldpstream.refine.intervals import QUANTILE

PROBABILITY = 0.95
"""The default: the one-sided probability of each end of a released interval."""
RECENT = 60
"""The default: timestamps for which a change is recent."""
LEAST_ERROR = 1e-9
"""The least standard error, even for an interval without width."""


class ConditionKind(StrEnum):
    """The kinds of conditions."""

    THRESHOLD = "threshold"
    NO_REPORTS = "no_reports"
    FEW_REPORTS = "reports_below"
    WIDE = "wider_than"
    CHANGED = "changed_by"


class Comparand(StrEnum):
    """What is compared with a threshold."""

    ESTIMATE = "estimate"
    INTERVAL = "interval"


@dataclass(frozen=True)
class RequiredEvidence:
    """The evidence that a threshold demands: the estimate, or a probability for the truth."""

    on: Comparand = Comparand.ESTIMATE
    probability: float = PROBABILITY

    def is_met(self, estimate_is_beyond: bool, sure: float) -> bool:
        return sure >= self.probability if self.on is Comparand.INTERVAL else estimate_is_beyond

    def to_json(self) -> dict[str, Any]:
        sure = {"probability": self.probability} if self.on is Comparand.INTERVAL else {}
        return {"on": self.on.value, **sure}


ESTIMATE = RequiredEvidence()


class AlertCondition(ABC):
    """What a rule looks for in a release."""

    kind: ClassVar[ConditionKind]
    label: str | None
    """The label that it is about, or None if it is about the stream."""

    @abstractmethod
    def verdict(self, evidence: AlertEvidence) -> bool | None:
        """Return whether it holds, or None if the release is no evidence for either."""

    @abstractmethod
    def told(self, evidence: AlertEvidence) -> str:
        """Describe what the release says about it, for a message."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The condition in a few words, such as `x above 0.5`."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The condition with the keys of the configuration."""

    def sure(self, evidence: AlertEvidence) -> float | None:
        """Return the probability that it holds, or None if it is not known."""
        return None

    def figure(self, evidence: AlertEvidence) -> LabelFigure | None:
        """The figure that it looks at; None if the release has no such figure."""
        return None if self.label is None else evidence.figure(self.label)


@dataclass(frozen=True)
class Threshold(AlertCondition):
    """A condition: the share of a label is above, or below, a threshold."""

    label: str
    above: bool
    threshold: float
    demand: RequiredEvidence = ESTIMATE
    kind = ConditionKind.THRESHOLD

    def verdict(self, evidence: AlertEvidence) -> bool | None:
        figure = evidence.figure(self.label)
        if figure is None:
            return evidence.without_figure
        if not evidence.is_heard:
            return None
        beyond = figure.value > self.threshold if self.above else figure.value < self.threshold
        return self.demand.is_met(beyond, self.sure(evidence))

    def sure(self, evidence: AlertEvidence) -> float:
        """The probability that the truth is beyond the threshold; 0 for a label that is gone."""
        if evidence.figure(self.label) is None:
            return 0.0
        above = evidence.probability_above(self.label, self.threshold)
        return above if self.above else 1 - above

    def told(self, evidence: AlertEvidence) -> str:
        return _figure_told(self.label, evidence)

    @property
    def title(self) -> str:
        return f"{self.label} {'above' if self.above else 'below'} {self.threshold:g}"

    def to_json(self) -> dict[str, Any]:
        side = "above" if self.above else "below"
        return {"label": self.label, side: self.threshold, **self.demand.to_json()}


@dataclass(frozen=True)
class WideInterval(AlertCondition):
    """A condition: the interval of a label is too wide, so that too little is known of it.

    Silence widens an interval, and that is no guess about the truth: such a rule fires in silence,
    too. It is resolved by reports.
    """

    label: str
    width: float
    kind = ConditionKind.WIDE

    def verdict(self, evidence: AlertEvidence) -> bool | None:
        figure = evidence.figure(self.label)
        if figure is None:
            return evidence.without_figure
        if figure.high - figure.low > self.width:
            return True
        return False if evidence.is_heard else None

    def told(self, evidence: AlertEvidence) -> str:
        return _figure_told(self.label, evidence)

    @property
    def title(self) -> str:
        return f"{self.label} wider than {self.width:g}"

    def to_json(self) -> dict[str, Any]:
        return {"label": self.label, self.kind.value: self.width}


@dataclass(frozen=True)
class LevelChanged(AlertCondition):
    """A condition: a label changed its level at once, within the last timestamps."""

    label: str
    by: float
    within: int = RECENT
    demand: RequiredEvidence = ESTIMATE
    kind = ConditionKind.CHANGED

    def verdict(self, evidence: AlertEvidence) -> bool | None:
        if evidence.figure(self.label) is None:
            return False
        if evidence.changes is None or not evidence.is_heard:
            return None
        return any(
            self.demand.is_met(abs(one.size) > self.by, self._sure_of(one))
            for one in self._recent(evidence)
        )

    def sure(self, evidence: AlertEvidence) -> float | None:
        if evidence.changes is None:
            return None
        return max((self._sure_of(one) for one in self._recent(evidence)), default=0.0)

    def told(self, evidence: AlertEvidence) -> str:
        largest = max(self._recent(evidence), key=lambda one: abs(one.size), default=None)
        if largest is None or evidence.figure(self.label) is None:
            return _figure_told(self.label, evidence)
        return (
            f"{self.label} changed by {largest.size:+.4g}, {largest.low:+.4g} to"
            f" {largest.high:+.4g}, at t={largest.t}, {largest.first_t} to {largest.last_t}"
        )

    def _recent(self, evidence: AlertEvidence) -> list[LevelChange]:
        after = evidence.release.t - self.within
        return [one for one in evidence.changes or () if one.label == self.label and one.t > after]

    def _sure_of(self, change: LevelChange) -> float:
        """The probability that a change is larger than `by`, whatever its direction."""
        error = max((change.high - change.low) / (2 * QUANTILE), LEAST_ERROR)
        return normal_probability((abs(change.size) - self.by) / error)

    @property
    def title(self) -> str:
        return f"{self.label} changed by {self.by:g}"

    def to_json(self) -> dict[str, Any]:
        about = {"label": self.label, self.kind.value: self.by, "within": self.within}
        return about | self.demand.to_json()


@dataclass(frozen=True)
class NoReports(AlertCondition):
    """A condition: nobody has reported for some time, though devices were asked."""

    silent_ms: int
    kind = ConditionKind.NO_REPORTS
    label = None

    def verdict(self, evidence: AlertEvidence) -> bool | None:
        if evidence.release.received:
            return False
        if evidence.release.missed or not evidence.release.asked:
            return None
        return evidence.silent_ms >= self.silent_ms

    def told(self, evidence: AlertEvidence) -> str:
        return (
            f"nobody has reported for {spelled(evidence.silent_ms)}, at t={evidence.release.t}"
            if not evidence.release.received
            else f"{_came(evidence)}, at t={evidence.release.t}"
        )

    @property
    def title(self) -> str:
        return f"no reports for {spelled(self.silent_ms)}"

    def to_json(self) -> dict[str, Any]:
        return {self.kind.value: f"{self.silent_ms}ms"}


@dataclass(frozen=True)
class FewReports(AlertCondition):
    """A condition: fewer reports came than a share of those that were planned."""

    share: float
    demand: RequiredEvidence = ESTIMATE
    kind = ConditionKind.FEW_REPORTS
    label = None

    def verdict(self, evidence: AlertEvidence) -> bool | None:
        release = evidence.release
        if release.missed or not release.asked:
            return None
        few = release.received < self.share * release.asked
        return self.demand.is_met(few, self.sure(evidence))

    def sure(self, evidence: AlertEvidence) -> float:
        """Return the probability of more reports than came, at the expected share (Poisson)."""
        expected = self.share * evidence.release.asked
        return normal_probability((expected - evidence.release.received) / max(expected, 1) ** 0.5)

    def told(self, evidence: AlertEvidence) -> str:
        return f"{_came(evidence)}, at t={evidence.release.t}"

    def figure(self, evidence: AlertEvidence) -> LabelFigure | None:
        """The share of the planned reports that came."""
        asked = evidence.release.asked
        share = evidence.release.received / asked if asked else 0.0
        return LabelFigure(share, share, share) if asked else None

    @property
    def title(self) -> str:
        return f"reports below {self.share:g} of those planned"

    def to_json(self) -> dict[str, Any]:
        return {self.kind.value: self.share, **self.demand.to_json()}


def _figure_told(label: str, evidence: AlertEvidence) -> str:
    figure = evidence.figure(label)
    if evidence.is_hidden:
        return f"{label} is not known of this group, at t={evidence.release.t}"
    if figure is None:
        is_text = "labels" in evidence.release.content
        gone = "not listed" if is_text else "no label of this stream any more"
        return f"{label} is {gone}, at t={evidence.release.t}"
    return (
        f"{label} is {figure.value:.4g}, {figure.low:.4g} to {figure.high:.4g},"
        f" at t={evidence.release.t}"
    )


def _came(evidence: AlertEvidence) -> str:
    return f"{evidence.release.received} of {evidence.release.asked} planned reports came"
