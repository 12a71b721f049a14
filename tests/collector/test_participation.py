"""How many devices were heard: a bound that holds whatever the mechanism spends when."""

from __future__ import annotations

import pytest

from ldpstream.collector.rounds.participation import Participation
from ldpstream.collector.store.contract import NewRound


def round_at(t: int, nano: int, name: str = "publication") -> NewRound:
    return NewRound(t, f"{t}-{name}", name, nano, 100, (1, 1), 2, 0, 1000, 0, None)


@pytest.mark.parametrize(
    ("nano", "heard"),
    [
        pytest.param(12, 300, id="a whole epsilon each: nobody reports twice in a window"),
        pytest.param(4, 100, id="a third each: the same devices may report three times"),
        pytest.param(6, 150, id="a half each"),
        pytest.param(1, 100, id="a round alone shows that there are as many"),
    ],
)
def test_reports_of_a_window_come_from_at_least_so_many_devices(nano: int, heard: int) -> None:
    participation = Participation()
    for t in range(1, 6):
        participation.add(round_at(t, nano), 100, epsilon_nano=12, window=3)
    assert participation.at(5) == heard


def test_who_was_heard_before_the_window_is_missing_now() -> None:
    participation = Participation()
    participation.add(round_at(1, 12), 70, epsilon_nano=12, window=3)
    assert [participation.at(t) for t in (1, 3, 4)] == [70, 70, 0]


def test_a_round_that_is_counted_again_after_a_crash_counts_once() -> None:
    participation = Participation()
    for _ in range(2):
        participation.add(round_at(1, 6, "dissimilarity"), 10, epsilon_nano=12, window=3)
        participation.add(round_at(1, 6), 10, epsilon_nano=12, window=3)
    assert participation.at(1) == 10
