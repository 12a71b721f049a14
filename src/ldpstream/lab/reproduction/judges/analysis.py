"""Judges of the paper's analysis: how near its formulas come to simulations."""

from __future__ import annotations

from ldpstream.lab.figures.style import display_name
from ldpstream.lab.reproduction.analysis.exhibit import (
    Analysis,
    Formula,
    FormulaComparison,
    FormulaSummary,
)
from ldpstream.lab.reproduction.judges.predicates import ClaimVerdict

SURE = 5.0
"""Standard errors within which a mean counts as equal to its prediction."""
NEAR = 0.1
"""The share by which a measured figure may differ from the predicted one."""


def dissimilarity_is_unbiased(analysis: Analysis) -> ClaimVerdict:
    return _no_bias(analysis.of(Formula.DISSIMILARITY))


def corrected_dissimilarity_is_unbiased(analysis: Analysis) -> ClaimVerdict:
    return _no_bias(analysis.of(Formula.CORRECTED))


def _no_bias(comparisons: list[FormulaComparison]) -> ClaimVerdict:
    said = (
        f"{one.mechanism.upper()} at {one.stream}: {one.measured:+.3f} V ± {one.error:.3f}"
        for one in comparisons
    )
    fair = (abs(one.measured) <= SURE * (one.error or 0.0) for one in comparisons)
    return ClaimVerdict(all(fair), "bias of " + "; ".join(said))


def population_has_less_noise(analysis: Analysis) -> ClaimVerdict:
    return _above_one(analysis.of(Formula.UNIFORM))


def population_errs_less(analysis: Analysis) -> ClaimVerdict:
    return _above_one(analysis.of(Formula.UNIFORM_SAMPLED))


def _above_one(comparisons: list[FormulaComparison]) -> ClaimVerdict:
    said = (
        f"{one.stream.split(',')[0]} {one.measured:.3g} (ε = {one.epsilon:g}, w = {one.window})"
        for one in comparisons
    )
    holds = all(one.measured > 1 for one in comparisons)
    return ClaimVerdict(holds, "least ratio of the grid: " + ", ".join(said))


def window_error_is_as_predicted(analysis: Analysis) -> ClaimVerdict:
    return _ratios(analysis, Formula.WINDOW_MSE)


def window_error_is_as_used(analysis: Analysis) -> ClaimVerdict:
    return _ratios(analysis, Formula.WINDOW_MSE_AS_USED)


def communication_is_as_predicted(analysis: Analysis) -> ClaimVerdict:
    return _ratios(analysis, Formula.COMMUNICATION)


def _ratios(analysis: Analysis, formula: Formula) -> ClaimVerdict:
    """Judge whether each mechanism's median ratio of measured to predicted is near 1."""
    compared = analysis.of(formula)
    names = dict.fromkeys(one.mechanism for one in compared)
    found = [
        FormulaSummary.of([one for one in compared if one.mechanism == name]) for name in names
    ]
    said = (
        f"{display_name(one.mechanism)} {one.median:.3g} ({one.least:.3g} to {one.most:.3g})"
        for one in found
    )
    near = all(abs(one.median - 1) <= NEAR for one in found)
    return ClaimVerdict(near, "measured / predicted, median (range): " + ", ".join(said))
