"""Parameters that cannot work are refused, in one line that says what to change."""

from __future__ import annotations

import pytest

from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.division import PopulationDivision
from ldpstream.mechanisms.registry import build, names, register, unregister
from ldpstream.mechanisms.settings import Settings
from ldpstream.mechanisms.uniform import Uniform
from ldpstream.privacy.epsilon import Epsilon
from tests.mechanisms.driving import Case

WINDOW = 20


@pytest.mark.parametrize(("name", "fewest"), [("lpu", 20), ("lpd", 40), ("lpa", 40), ("lsp", 1)])
def test_population_division_needs_a_user_for_each_slot(name: str, fewest: int) -> None:
    """docs/paper-corrections.md, 7: N < 2w leaves the adaptive ones without users."""
    mechanism = Case(name, users=fewest, window=WINDOW).build()
    assert next(mechanism.step(1)).users >= 1
    if fewest > 1:
        with pytest.raises(Mistake) as refusal:
            Case(name, users=fewest - 1, window=WINDOW).build()
        assert refusal.value.problem is Problem.TOO_FEW_USERS
        assert str(refusal.value) == (
            f"{fewest - 1} users are too few for a window of 20: a timestamp would be left without"
            f" any; give at least {fewest} users, or a shorter window"
        )


@pytest.mark.parametrize(("name", "least"), [("lbu", 20), ("lbd", 40), ("lba", 40)])
def test_budget_division_needs_a_nano_epsilon_for_each_slot(name: str, least: int) -> None:
    mechanism = Case(name, nano=least, window=WINDOW).build()
    assert next(mechanism.step(1)).epsilon.nano == 1
    with pytest.raises(Mistake) as refusal:
        Case(name, nano=least - 1, window=WINDOW).build()
    assert refusal.value.problem is Problem.BUDGET_TOO_SMALL
    assert str(refusal.value) == (
        f"epsilon 0.0000000{least - 1} over a window of 20 leaves less than 1e-9 for each"
        " timestamp; give a larger epsilon, or a shorter window"
    )


@pytest.mark.parametrize("name", ["lbu", "lbd", "lba", "lsp"])
def test_one_user_is_enough_where_everyone_reports(name: str) -> None:
    assert next(Case(name, users=1).build().step(1)).users == 1


@pytest.mark.parametrize(
    ("labels", "users", "window", "line"),
    [
        (2, 100, 0, "window is 0; give a whole number of timestamps, 1 or more"),
        (2, 0, 5, "0 users are too few for a window of 5"),
        (1, 100, 5, "the domain has 1 labels; give 2 to 65536"),
    ],
)
def test_settings_are_checked_once_at_the_edge(
    labels: int, users: int, window: int, line: str
) -> None:
    with pytest.raises(Mistake) as refusal:
        Settings(labels=labels, users=users, epsilon=Epsilon.of(1), window=window)
    assert str(refusal.value).startswith(line)
    assert "\n" not in str(refusal.value)


def test_an_unknown_mechanism_is_answered_with_the_known_ones() -> None:
    with pytest.raises(Mistake) as refusal:
        Case("lpx").build()
    assert str(refusal.value) == (f"there is no mechanism 'lpx'; use one of: {', '.join(names())}")


def test_names_are_read_in_any_case_of_letters() -> None:
    assert type(Case("LPA").build()) is type(Case("lpa").build())
    register("Mine", Uniform, PopulationDivision)
    try:
        assert isinstance(build("mine", Case("mine").settings), Uniform)
    finally:
        unregister("Mine")
