"""The city of the demonstration."""

from __future__ import annotations

import pytest

from ldpstream.fleet.city import CROWD, DAY, KICK_OFF, MATCH, REGIONS, city


@pytest.mark.parametrize("people", [1, 2, 3, 10, 2000])
def test_everyone_is_somewhere(people: int) -> None:
    assert city(people).users == people  # the stream itself refuses counts below 0


def test_the_regions_take_turns_and_the_match_is_the_event() -> None:
    shares = city(100_000).table / 100_000
    stadium = shares[:, REGIONS.index("Stadium")]
    during = slice(KICK_OFF + 3, KICK_OFF + MATCH)
    assert stadium[during] == pytest.approx(CROWD, abs=1e-3)
    assert stadium[:KICK_OFF].max() < 0.05
    assert stadium[KICK_OFF + MATCH + 3 :].max() < 0.05
    first_day = shares[DAY : 2 * DAY, :-1]  # the one without a match
    assert len(set(first_day.argmax(axis=1))) >= 3
