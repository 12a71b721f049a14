"""The central promise behind a shuffler, against another computation and a published bound."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from scipy.stats import binom

from ldpstream.lab.planning.shuffling import central_epsilon, closed_form


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
