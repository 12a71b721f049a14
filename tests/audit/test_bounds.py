"""The arithmetic of lower bounds: against SciPy, and by its own promise."""

from __future__ import annotations

import math

import pytest
from scipy.stats import beta, binom

from ldpstream.audit.bounds import Score, epsilon_of, score, share_at_least


@pytest.mark.parametrize("guesses", [1, 2, 10, 137, 2000, 100_000])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.731, 0.99, 1.0])
@pytest.mark.parametrize("error", [0.05, 1e-3, 7.7e-8])
def test_the_interval_is_that_of_clopper_and_pearson(
    guesses: int, share: float, error: float
) -> None:
    right = math.ceil(share * guesses)
    expected = beta.ppf(error, right, guesses - right + 1)
    assert share_at_least(right, guesses, error) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("guesses", [5, 60, 400])
def test_a_kept_promise_is_accused_no_more_often_than_stated(epsilon: float, guesses: int) -> None:
    """Summed over all outcomes, for the best attacker that epsilon allows."""
    share, error = math.exp(epsilon) / (1 + math.exp(epsilon)), 0.01
    accused = [
        right
        for right in range(guesses + 1)
        if Score(right, guesses, guesses).lower_bound(error) > epsilon
    ]
    assert sum(binom.pmf(accused, guesses, share)) <= error * (1 + 1e-9)


def test_no_guesses_prove_nothing() -> None:
    assert score([], [], 0.01) == Score(0, 0, 0)
    assert score([0.0, 0.0], [True, False], 0.01) == Score(0, 0, 2)
    assert Score(0, 0, 2).lower_bound(0.01) == 0.0
    assert Score(300, 1000, 1000).lower_bound(0.01) == 0.0
    assert epsilon_of(0.5) == 0.0


def test_weak_evidence_is_left_out_where_it_would_lower_the_bound() -> None:
    strong, weak = [2.0, -2.0] * 100, [0.01, -0.01] * 100
    truth = [True, False] * 200
    assert score(strong + weak, truth, 0.01) == Score(200, 200, 400)


def test_what_is_guessed_does_not_depend_on_the_truth() -> None:
    evidence = [0.3 * (place % 7) - 0.9 for place in range(200)]
    made = {
        score(evidence, [bool(place % step == 0) for place in range(200)], 0.01).guesses
        for step in range(1, 9)
    }
    assert len(made) == 1
