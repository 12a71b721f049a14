"""The central promise behind a shuffler, against another computation and a published bound."""

from __future__ import annotations

from math import exp, inf, log, log1p, sqrt

import numpy as np
import pytest
from scipy.stats import binom

from ldpstream.lab.planning.shuffling import DELTA, central_epsilon, shown_epsilon


def exact_delta(local: float, reports: int, epsilon: float) -> float:
    """The divergence of theorem 3.2, summed over every number of clones."""
    odds = 1 / (1 + exp(-local))
    delta = 0.0
    for clones in range(reports):
        weight = binom.pmf(clones, reports - 1, exp(-local))
        heads = binom.pmf(np.arange(-1, clones + 2), clones, 0.5)
        more, same = heads[:-1], heads[1:]
        one, other = odds * more + (1 - odds) * same, (1 - odds) * more + odds * same
        delta += weight * np.maximum(one - exp(epsilon) * other, 0.0).sum()
    return float(delta)


def closed_form(local: float, reports: int, delta: float = DELTA) -> float:
    """The bound of theorem 3.1, from the paper that the tighter one is from."""
    if local > log(reports / (16 * log(4 / delta))):
        return inf
    root = 8 * sqrt(exp(local) * log(4 / delta) / reports)
    added = root + 8 * exp(local) / reports
    blurred = log1p(added)
    return log1p((1 - exp(-local)) / (1 + exp(-local - blurred)) * added)


@pytest.mark.parametrize("local", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("reports", [50, 400])
def test_it_is_an_upper_bound_of_the_exact_divergence(local: float, reports: int) -> None:
    assert exact_delta(local, reports, central_epsilon(local, reports, 1e-4)) <= 1e-4


@pytest.mark.parametrize("local", [0.5, 1.0, 2.0])
def test_it_is_no_looser_than_the_closed_form(local: float) -> None:
    for reports in (1_000, 100_000, 10_000_000):
        assert central_epsilon(local, reports) <= min(closed_form(local, reports), local)


def test_more_reports_hide_better() -> None:
    found = [central_epsilon(1.0, 10**power) for power in range(1, 8)]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("local", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("reports", [2, 50, 10_000])
def test_what_binary_reports_show_is_within_the_bound(local: float, reports: int) -> None:
    assert 0 < shown_epsilon(local, reports) <= central_epsilon(local, reports)


def test_one_report_alone_is_told_apart_as_its_randomiser_lets_it() -> None:
    assert shown_epsilon(1.0, 1, 1e-9) == pytest.approx(1.0, abs=1e-6)
