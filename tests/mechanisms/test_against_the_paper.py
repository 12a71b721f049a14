"""Ours and the paper's pseudocode, fed the same estimates, ask and release the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.mechanisms.messages import Ask, Purpose, Tally
from ldpstream.privacy.epsilon import NANO
from tests.mechanisms import paper_algorithms as paper
from tests.mechanisms.driving import Answer, Case, Moment, live, steady
from tests.mechanisms.paper_algorithms import FO, Line

ALGORITHMS: dict[str, Callable[..., Iterator[Line]]] = {
    "lbd": paper.lbd,
    "lba": paper.lba,
    "lpd": paper.lpd,
    "lpa": paper.lpa,
}
IN_NANO = Fraction(1, NANO)
IN_REAL_NUMBERS = Fraction(0)


def estimates(case: Case, seed: int, scale: float = 1.0) -> FO:
    """Estimates with the noise that they would have, of a truth that moves by `scale` at times."""

    def fo(t: int, sub: int, users: int, eps: Fraction) -> list[float]:
        level = np.random.default_rng([seed, t // 5]).normal(0, scale, case.labels)
        noise = np.random.default_rng([seed, t, sub]).normal(0, 1, case.labels)
        return [float(x) for x in level + noise * paper.var(eps, users, case.labels) ** 0.5]

    return fo


def ours(case: Case, timestamps: int, fo: FO) -> list[Moment]:
    def at(t: int) -> Answer:
        def answer(ask: Ask) -> Tally:
            sub = 1 if ask.purpose is Purpose.DISSIMILARITY else 2
            estimate = fo(t, sub, ask.users, Fraction(ask.epsilon.nano, NANO))
            return Tally(np.array(estimate), np.ones(case.labels), ask.users)

        return answer

    return live(case, steady(timestamps), at)


def theirs(case: Case, timestamps: int, fo: FO, grain: Fraction) -> list[Line]:
    options = {} if case.name in ("lpd", "lpa") else {"grain": grain}
    eps = Fraction(case.nano, NANO)
    algorithm = ALGORITHMS[case.name]
    return list(algorithm(fo, timestamps, case.users, case.labels, eps, case.window, **options))


def assert_alike(case: Case, timestamps: int, fo: FO, grain: Fraction = IN_NANO) -> list[Line]:
    expected = theirs(case, timestamps, fo, grain)
    for moment, line in zip(ours(case, timestamps, fo), expected, strict=True):
        asked = [
            (1 + (a.purpose is Purpose.PUBLICATION), a.users, Fraction(a.epsilon.nano, NANO))
            for a in moment.asks
        ]
        assert asked == line.reports, f"t={line.t}"
        assert moment.release is not None
        assert moment.release.values.tolist() == line.r, f"t={line.t}"
        assert moment.release.fresh == (len(line.reports) == 2)
    return expected


@pytest.mark.parametrize("name", ALGORITHMS)
@settings(max_examples=60)
@given(
    labels=st.integers(2, 6),
    window=st.integers(1, 9),
    users=st.integers(18, 200),
    nano=st.integers(18, 1000) | st.integers(10**6, 8 * NANO),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_ask_and_release_is_that_of_the_algorithm(
    name: str, labels: int, window: int, users: int, nano: int, seed: int
) -> None:
    case = Case(name, labels, users, nano, window)
    assert_alike(case, 5 * window, estimates(case, seed))


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("seed", range(5))
def test_both_strategies_are_compared_at_the_size_of_the_paper(name: str, seed: int) -> None:
    """On estimates that move as much as they are noisy, a run has many of each strategy."""
    case = Case(name, users=20_000, window=20)
    scale = paper.var(Fraction(1, 40), 20_000, 2) ** 0.5 if name in ("lbd", "lba") else 0.03
    lines = assert_alike(case, 200, estimates(case, seed, scale))
    publications = sum(len(line.reports) == 2 for line in lines)
    assert 10 <= publications <= 150


@pytest.mark.parametrize("name", ["lbd", "lba"])
@pytest.mark.parametrize("window", [1, 2, 4, 8, 16])
def test_budgets_are_the_real_numbers_of_the_paper_where_halving_is_exact(
    name: str, window: int
) -> None:
    """Epsilon = 2^34 nano can be halved exactly for as long as this runs: no rounding at all."""
    case = Case(name, users=100, nano=2**34, window=window)
    always_moving = estimates(case, seed=window, scale=1e6)
    assert_alike(case, 24, always_moving, IN_REAL_NUMBERS)
    assert_alike(case, 24, estimates(case, seed=window, scale=0.5), IN_REAL_NUMBERS)
