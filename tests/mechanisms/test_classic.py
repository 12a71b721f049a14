"""FAST, PeGaSus, RescueDP and SPAS: what each of them decides, and their parameters."""

from __future__ import annotations

import numpy as np
import pytest

from ldpstream.errors import Mistake
from ldpstream.mechanisms.mechanism import Mechanism, drive
from ldpstream.mechanisms.messages import Ask, Purpose, Tally
from ldpstream.mechanisms.parameters import split_names
from ldpstream.mechanisms.registry import build, recipe
from ldpstream.mechanisms.settings import Settings
from ldpstream.privacy.epsilon import Epsilon

SETTINGS = Settings(labels=2, users=10_000, epsilon=Epsilon.of(1), window=20)


def told(share: float, variance: float = 1e-6) -> Tally:
    return Tally(np.array([1 - share, share]), np.full(2, variance), reports=100)


def run(mechanism: Mechanism, shares: list[float], variance: float = 1e-6) -> list[list[Ask]]:
    """Drive a mechanism with these tallies; return what it asked at each timestamp."""
    asked = []
    for t, share in enumerate(shares, 1):
        asks: list[Ask] = []

        def answer(ask: Ask, asks: list[Ask] = asks, share: float = share) -> Tally:
            asks.append(ask)
            return told(share, variance)

        drive(mechanism.step(t), answer)
        asked.append(asks)
    return asked


class TestParameters:
    def test_they_are_read_by_name(self) -> None:
        assert recipe("FAST(theta=2, xi = 0.5)").parameters.xi == 0.5
        assert recipe("fast").parameters.theta == 5.0
        built = build("pegasus(threshold=7)", SETTINGS)
        assert built.parameters.threshold == 7.0

    @pytest.mark.parametrize(
        "written",
        [
            "fast(speed=2)",
            "fast(theta=x)",
            "fast(theta=-1)",
            "fast(theta)",
            "lpa(theta=2)",
            "fast(theta=1, theta=2)",
            "fast(theta=nan)",
            "fast(theta=1",
            "fast()x",
            "",
        ],
    )
    def test_others_are_refused_in_one_line(self, written: str) -> None:
        with pytest.raises(Mistake) as raised:
            recipe(written)
        assert "\n" not in str(raised.value)

    def test_commas_inside_parentheses_separate_parameters(self) -> None:
        assert split_names("a,b(c=1,d=2) ,e") == ["a", "b(c=1,d=2)", "e"]


class TestFast:
    def test_it_samples_rarely_while_predictions_hold(self) -> None:
        asked = run(build("fast", SETTINGS), [0.3] * 100)
        assert sum(map(len, asked[50:])) < 10

    def test_it_samples_more_often_when_they_fail(self) -> None:
        moving = [0.3 + 0.4 * (t % 2) for t in range(100)]
        still = sum(map(len, run(build("fast", SETTINGS), [0.3] * 100)))
        assert sum(map(len, run(build("fast", SETTINGS), moving))) > 2 * still

    def test_no_more_samples_than_a_window_allows(self) -> None:
        asked = run(build("fast(theta=0)", SETTINGS), [0.3] * 100)
        times = [t for t, asks in enumerate(asked) if asks]
        assert max(sum(t <= one < t + 20 for one in times) for t in times) == 5


class TestPegasus:
    def test_a_group_lasts_while_nothing_changes_and_ends_at_a_jump(self) -> None:
        mechanism = build("pegasus", SETTINGS)
        run(mechanism, [0.3] * 8)
        assert mechanism.memory.length.tolist() == [8, 8]
        drive(mechanism.step(9), lambda ask: told(0.5))
        assert mechanism.memory.length.tolist() == [1, 1]
        assert mechanism.state.release.values.tolist() == [0.5, 0.5]

    def test_it_releases_the_median_of_the_group(self) -> None:
        mechanism = build("pegasus(threshold=1000)", SETTINGS)
        run(mechanism, [0.3, 0.1, 0.2])
        assert mechanism.state.release.values == pytest.approx([0.8, 0.2])

    def test_a_fifth_groups(self) -> None:
        (asks,) = run(build("pegasus", SETTINGS), [0.3])
        assert [ask.purpose for ask in asks] == [Purpose.DISSIMILARITY, Purpose.PUBLICATION]
        assert [ask.users for ask in asks] == [100, 400]


class TestRescueDp:
    def test_it_spends_at_most_a_fifth_of_the_window_at_once(self) -> None:
        asked = run(build("rescuedp", SETTINGS), [0.3 + 0.4 * (t % 2) for t in range(60)])
        assert max(ask.users for asks in asked for ask in asks) <= 2_000

    def test_it_samples_rarely_while_predictions_hold(self) -> None:
        asked = run(build("rescuedp", SETTINGS), [0.3] * 100)
        assert sum(map(len, asked[50:])) <= 5


class TestSpas:
    def test_larger_changes_mean_more_and_smaller_publications(self) -> None:
        def last_size(step: float) -> int:
            moving = [0.3 + step * (t // 5 % 2) for t in range(200)]
            asked = run(build("spas", SETTINGS), moving)
            made = [ask for asks in asked for ask in asks if ask.purpose is Purpose.PUBLICATION]
            return made[-1].users

        assert last_size(0.5) == 7_500 // 20
        assert last_size(0.05) > 7_500 // 5

    def test_a_quarter_watches(self) -> None:
        asked = run(build("spas", SETTINGS), [0.3] * 5)
        assert {asks[0].users for asks in asked} == {125}
