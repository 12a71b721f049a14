"""The claims of the paper's evaluation, each with a judge that reads the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ldpstream.lab.figures.charts import Chart
from ldpstream.lab.reproduction.analysis.exhibit import Analysis
from ldpstream.lab.reproduction.judges import analysis, communication, error, events
from ldpstream.lab.reproduction.judges.predicates import (
    BUDGET,
    POPULATION,
    ClaimVerdict,
    below,
    falls,
    on_real,
    on_synthetic,
    rises,
)
from ldpstream.lab.reproduction.studies import SEVEN
from ldpstream.lab.reproduction.table2 import Table2

Exhibit = Chart | Table2 | Analysis
"""What a claim rests on: a figure, the table, or the analysis beside simulations."""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and the judge of whether it holds."""

    words: str
    rests_on: str
    judge: Callable[[Any], ClaimVerdict]
    note: str = ""
    """What to bear in mind where it does not hold."""
    needs_real: bool = False
    """Whether it can only be judged if a real stream was run."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict."""

    claim: Claim
    verdict: ClaimVerdict

    def row(self) -> dict[str, object]:
        return {
            "claim": self.claim.words,
            "rests_on": self.claim.rests_on,
            "verdict": "holds" if self.verdict.holds else "does not hold here",
            "compared": self.verdict.compared,
            "note": "" if self.verdict.holds else self.claim.note,
        }


def judge(exhibits: Mapping[str, Exhibit]) -> list[JudgedClaim]:
    """Judge every claim that rests on one of the exhibits."""
    return [
        JudgedClaim(claim, claim.judge(exhibits[claim.rests_on]))
        for claim in CLAIMS
        if claim.rests_on in exhibits
        and not (claim.needs_real and _is_synthetic(exhibits[claim.rests_on]))
    ]


def _is_synthetic(exhibit: Exhibit) -> bool:
    return isinstance(exhibit, Chart) and not on_real(exhibit).panels


ONE_WALK = (
    "LNS is one random walk and the error is relative: it also depends on how near to 0 the walk "
    "comes, which the paper does not say of its own."
)
EVENTS = (
    "On slow streams a sample of all users is accurate and soon enough. For more than two labels "
    "the paper monitors the mean of the histogram, which is constant; here each label is monitored."
)

CLAIMS = (
    Claim(
        "On LNS, Sin and Log the error of every method falls as ε grows.",
        "fig-epsilon",
        lambda c: falls(on_synthetic(c), SEVEN),
    ),
    Claim(
        "On real streams the error of every method falls as ε grows.",
        "fig-epsilon",
        lambda c: falls(on_real(c), SEVEN),
        needs_real=True,
    ),
    Claim(
        "Population division errs less than budget division, at every ε and on every stream.",
        "fig-epsilon",
        lambda c: below(c, POPULATION, BUDGET),
    ),
    Claim("LBD and LBA generally err less than LBU.", "fig-epsilon", error.adaptive_beats_uniform),
    Claim(
        "LPD and LPA generally err less than LPU.",
        "fig-epsilon",
        error.adaptive_population_beats_uniform,
    ),
    Claim(
        "On slow streams LPA errs no more than LPD, and LPD less than LPU.",
        "fig-epsilon",
        error.slow_streams_are_ordered,
    ),
    Claim(
        "LSP errs even less than LPD and LPA on slow streams, but varies strongly across streams.",
        "fig-epsilon",
        error.sampling_is_best_when_slow_but_varies,
    ),
    Claim(
        "On LNS, Sin and Log the error of every method rises with w.",
        "fig-window",
        lambda c: rises(on_synthetic(c), SEVEN),
    ),
    Claim(
        "On real streams the error of every method rises with w.",
        "fig-window",
        lambda c: rises(on_real(c), SEVEN),
        "With few users and many labels the noise is larger than the movement of the stream. Then "
        "whoever publishes less, as LPD and LPA do at a larger w, errs less.",
        needs_real=True,
    ),
    Claim(
        "Population division errs less than budget division, at every w and on every stream.",
        "fig-window",
        lambda c: below(c, POPULATION, BUDGET),
    ),
    Claim(
        "With a large w LBD may err more than LBU.",
        "fig-window",
        error.distribution_can_lose_at_large_windows,
    ),
    Claim(
        "LBA avoids this: it errs less than LBU at the largest w.",
        "fig-window",
        error.absorption_never_loses_at_large_windows,
    ),
    Claim(
        "On slow streams LPD errs less than LPU, and LPA less than LPD, over all w.",
        "fig-window",
        error.slow_streams_are_ordered,
    ),
    Claim(
        "The advantage of LPD and LPA over LPU grows with w.",
        "fig-window",
        error.advantage_grows_with_the_window,
    ),
    Claim("The error of every method falls with N.", "fig-population", lambda c: falls(c, SEVEN)),
    Claim(
        "On LNS the error of every method rises with Q.",
        "fig-fluctuation",
        lambda c: rises(c, SEVEN, "LNS"),
        ONE_WALK,
    ),
    Claim(
        "Population division errs less than budget division, however the stream moves.",
        "fig-fluctuation",
        lambda c: below(c, POPULATION, BUDGET),
    ),
    Claim(
        "On LNS LSP has the smallest error while Q is small, and passes LPD and LPA as Q grows.",
        "fig-fluctuation",
        error.sampling_crosses_over,
        ONE_WALK,
    ),
    Claim(
        "LPD and LPA do slightly worse than LPU when Q is large.",
        "fig-fluctuation",
        error.adaptive_is_slightly_worse_when_wild,
        "Slightly means by less than half.",
    ),
    Claim(
        "On steady sines LPD and LPA err less than LPU.",
        "fig-fluctuation",
        error.adaptive_is_better_when_steady,
    ),
    Claim(
        "LSP is the best on the slowest sine; on the fastest it is worse than LPU, LPD and LPA.",
        "fig-fluctuation",
        error.sampling_is_best_slow_and_worst_fast,
    ),
    Claim(
        "Population division generally finds events better than LBA.",
        "fig-roc",
        events.population_finds_more_than_absorption,
    ),
    Claim(
        "LPD and LPA in general find events better than LBA, LSP and LPU.",
        "fig-roc",
        events.adaptive_population_finds_most,
        EVENTS,
    ),
    Claim("LSP generally finds events worst.", "fig-roc", events.sampling_finds_least, EVENTS),
    Claim(
        "With budget division each user sends 1 report a timestamp (LBU) or more (LBD, LBA).",
        "fig-communication",
        communication.budget_sends_at_least_one,
    ),
    Claim(
        "LSP and LPU send 1/w of a report a timestamp, LPD and LPA less.",
        "fig-communication",
        communication.one_report_a_window_or_less,
    ),
    Claim(
        "LPD and LPA send more as Q grows; LBD and LBA hardly, and the others not at all.",
        "fig-communication",
        communication.fluctuation_costs_population_only,
    ),
    Claim(
        "LPD and LPA send more as ε grows; budget division about the same.",
        "fig-communication",
        communication.budget_costs_population_only,
    ),
    Claim(
        "LBD and LBA send slightly less as w grows; population division less.",
        "fig-communication",
        communication.windows_save_reports,
    ),
    Claim(
        f"The figures of Table 2 for Sin and Log come out again, within {communication.NEAR:g} %.",
        "table2",
        communication.table2_is_near,
    ),
    Claim(
        "On every stream population division sends far less, LPD and LPA the least.",
        "table2",
        communication.population_sends_less,
    ),
    Claim(
        "Population division suits FAST, PeGaSus, RescueDP and SPAS too: each errs less under it.",
        "fig-remark3",
        error.population_suits_others,
    ),
    Claim(
        "The dissimilarity is an unbiased estimate (Theorem 2).",
        "analysis",
        analysis.dissimilarity_is_unbiased,
        "The proof counts the noise of reports. In population division, who is asked is drawn as "
        "well, and that variance is not taken off.",
    ),
    Claim(
        "With the variance of sampling taken off, as we do, it is unbiased in population division.",
        "analysis",
        analysis.corrected_dissimilarity_is_unbiased,
    ),
    Claim(
        "LPU has less noise than LBU, for every oracle, d, ε and w (Lemma 1).",
        "analysis",
        analysis.population_has_less_noise,
        "The proof is for GRR and OUE. BLH and Hadamard response tell one bit, however large ε is: "
        "at ε = 4 half of it tells nearly as much, and twice as many reports more.",
    ),
    Claim(
        "LPU errs less than LBU for every oracle, d, ε and w, if the error of sampling counts too.",
        "analysis",
        analysis.population_errs_less,
        "With w = 2 and ε = 4 noise is small, and asking half of the users costs more than half of "
        "ε does.",
    ),
    Claim(
        "The error in a window with m publications is that of sections 5.4 and 6.3.",
        "analysis",
        analysis.window_error_is_as_predicted,
        "The analysis recycles no budget from earlier windows, so that the m-th publication of LBD "
        "and LPD has a share of 2^-(m+1); in runs budget returns all the time. LBA and LPA do not "
        "publish at equal distances.",
    ),
    Claim(
        "It is what the publications' real shares of ε or of the users give.",
        "analysis",
        analysis.window_error_is_as_used,
        "It is less: a publication that has come out badly is noticed as dissimilar, and replaced "
        "sooner than a good one.",
    ),
    Claim(
        "Communication with m publications is 1 + m/w, 1/w - 1/(w 2^(m+1)), or "
        "1/(2w) + (w+m)/(4w²).",
        "analysis",
        analysis.communication_is_as_predicted,
    ),
)
