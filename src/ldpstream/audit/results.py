"""The results of an audit, and their summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldpstream.audit.empirical import ERROR, Finding
from ldpstream.audit.exact import Exact
from ldpstream.audit.planted import BUGS
from ldpstream.audit.shuffled import CONDITION, shuffled_rounds
from ldpstream.privacy.epsilon import Epsilon

CONFIDENCE = f"{1 - ERROR:.4%}"


@dataclass(frozen=True)
class Audit:
    """Everything that was checked, and what was not finished in time."""

    exact: Sequence[Exact]
    findings: Sequence[Finding]
    unfinished: Sequence[str] = ()
    stopped: bool = False

    @property
    def honest(self) -> list[Finding]:
        """The findings about mechanisms without a bug."""
        return [one for one in self.findings if one.trial.bug is None]

    @property
    def planted(self) -> list[Finding]:
        return [one for one in self.findings if one.trial.bug is not None]

    @property
    def verdict_on_bugs(self) -> str:
        """How many of all planted bugs were found, and how many trials were not finished."""
        found = sum(one.exceeds for one in self.planted)
        bugs = {bug.name for bug in BUGS}
        missing = len(bugs.intersection(self.unfinished))
        open_ = f"; {missing} not finished" if missing else ""
        return f"found {found} of {len(self.planted) + missing}{open_}"

    @property
    def failures(self) -> list[str]:
        """A line for each check that failed."""
        wrong = [
            f"{one.oracle} with {one.labels} labels: exact epsilon {one.exact_epsilon}, and"
            f" {one.epsilon} is promised"
            for one in self.exact
            if not one.holds
        ]
        wrong += [
            f"a shuffled round of {one.reports} reports: epsilon is at least {one.at_least:.3g},"
            f" and {one.epsilon:.3g} is stated"
            for one in shuffled_rounds()
            if one.at_least > one.epsilon
        ]
        return wrong + [
            f"{one.trial.name}: {_what_failed(one)}"
            for one in self.findings
            if not one.as_it_should_be
        ]

    @property
    def complaints(self) -> list[str]:
        """The failures, and what was not finished in time."""
        missing = [f"not finished: {', '.join(self.unfinished)}"] if self.unfinished else []
        return self.failures + missing

    @property
    def passed(self) -> bool:
        return not self.complaints

    def to_json(self) -> dict[str, Any]:
        """Return the short form, for programs."""
        return {
            "exact": [
                {
                    "oracle": one.oracle,
                    "labels": one.labels,
                    "epsilon": float(one.epsilon),
                    "exact_epsilon": one.exact_epsilon,
                }
                for one in self.exact
            ],
            "empirical": [
                {
                    "mechanism": one.trial.name,
                    "epsilon": float(one.trial.epsilon),
                    "lower_bound": round(one.lower_bound, 4),
                }
                for one in self.honest
            ],
            "planted": [{"bug": one.trial.name, "found": one.exceeds} for one in self.planted],
            "shuffled": {
                "condition": CONDITION,
                "reports_are_linkable": True,
                "rounds": [
                    {"local_epsilon": one.local, **one.row(), "at_least": one.at_least}
                    for one in shuffled_rounds()
                ],
            },
        }

    def details(self) -> dict[str, Any]:
        """Return all details, for the file beside the report."""
        return {
            "passed": self.passed,
            "failures": self.failures,
            "unfinished": list(self.unfinished),
            "confidence": CONFIDENCE,
            "exact": [
                row | {"ratio": str(one.ratio), "margin": one.margin, "method": one.method}
                for row, one in zip(self.to_json()["exact"], self.exact, strict=True)
            ],
            "attacks": [
                {
                    "name": one.trial.name,
                    "mechanism": one.trial.mechanism,
                    "planted": one.trial.bug is not None,
                    "epsilon": float(one.trial.epsilon),
                    "lower_bound": one.lower_bound,
                    **vars(one.score),
                    "violations": list(one.violations),
                    "seconds": round(one.seconds, 1),
                    "as_it_should_be": one.as_it_should_be,
                }
                for one in self.findings
            ],
            "shuffled": self.to_json()["shuffled"],
        }


def _what_failed(one: Finding) -> str:
    if one.without_bug:
        return f"the same drill without the bug: {one.without_bug[0]}"
    if one.trial.bug is None and one.violations:
        return one.violations[0]
    if not one.trial.attacked:
        return "no violation: the bug is not found"
    more = "promised" if one.trial.bug is None else "not exceeded: the bug is not found"
    return f"epsilon is at least {one.lower_bound:.3f}, and {one.trial.epsilon} is {more}"


@dataclass(frozen=True)
class OracleSummary:
    """A summary of the checks of one oracle."""

    oracle: str
    checks: int
    methods: tuple[str, ...]
    least_margin: float
    """The least of epsilon minus exact epsilon over all checks."""
    example: Exact
    """A check at epsilon 1, if there is one, with the fewest labels."""
    holds: bool


def by_oracle(exact: Sequence[Exact]) -> list[OracleSummary]:
    """Return a summary for each oracle, in the order in which they were first checked."""
    names = dict.fromkeys(one.oracle for one in exact)
    summaries = []
    for name in names:
        ours = [one for one in exact if one.oracle == name]
        summaries.append(
            OracleSummary(
                name,
                len(ours),
                tuple(dict.fromkeys(one.method.value for one in ours)),
                min(one.margin for one in ours),
                min(ours, key=lambda one: (one.epsilon != Epsilon.of(1), one.labels)),
                all(one.holds for one in ours),
            )
        )
    return summaries
