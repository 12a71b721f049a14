"""Levels of privacy: a round of each, counted by its own terms, and one figure for the fleet."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from ldpstream.collector.config import parse
from ldpstream.collector.rounds.listener import Listener
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.terms import Terms
from tests.collector.helpers import SECRETS
from tests.collector.strata import CAREFUL, Fleet, StrataWorld

GIVEN: dict[str, object] = {"mechanism": "lpf", "epsilon": 2, "level": [CAREFUL]}


class CountingListener(Listener):
    def __init__(self) -> None:
        self.reports: Counter[str] = Counter()

    def counted(self, stratum: Terms, reports: int) -> None:
        self.reports[stratum.level] += reports


def test_each_level_has_a_round_with_its_own_epsilon_window_and_oracle(tmp_path: Path) -> None:
    level = CAREFUL | {"epsilon": 4, "oracle": "olh"}
    world = StrataWorld(tmp_path, Fleet(40), {"level": [level], "epsilon": 1})
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        coordinator = world.live(store, 2)
        own, careful = store.rounds("a", 1)
    assert (own.name, careful.name) == ("2-publication", "2-publication-careful")
    assert (own.epsilon_nano, careful.epsilon_nano) == (10**9, 4 * 10**9)
    assert (own.rate, careful.rate) == ((1, 4), (1, 8))
    assert own.report_bytes != careful.report_bytes
    assert own.deadline_ms == careful.deadline_ms
    (stored,) = coordinator.terms.levels
    assert (stored.name, stored.oracle) == ("careful", "olh")


def test_the_figure_is_that_of_the_whole_fleet(tmp_path: Path) -> None:
    """A third of the people is careful, and holds something else."""
    fleet = Fleet(3000, "x", level_of=lambda number: "careful" if number % 3 == 0 else "")
    usual = fleet._report
    fleet._report = lambda asking, number: (  # type: ignore[method-assign]
        Fleet(1, "y")._report(asking, number) if number % 3 == 0 else usual(asking, number)
    )
    listener = CountingListener()
    world = StrataWorld(tmp_path, fleet, GIVEN)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 48, listener)
        released = store.releases("a", 0, 100)
        assert world.miscounted(store) == []
    assert [one.t for one in released] == [*range(1, 49)]
    last = released[-1].content
    assert last["values"] == pytest.approx([2 / 3, 1 / 3, 0], abs=0.08)
    for place, truth in enumerate([2 / 3, 1 / 3, 0]):
        assert last["low"][place] <= truth <= last["high"][place]
    assert last["devices"]["heard"] == pytest.approx(3000, rel=0.01)
    heard = sum(len(who) for who in fleet.told.values())
    assert sum(listener.reports.values()) == heard
    assert listener.reports["careful"] == pytest.approx(heard / 5, rel=0.01)


def test_what_is_known_of_levels_outlives_a_restart(tmp_path: Path) -> None:
    def lived(folder: Path, *stops: int) -> object:
        folder.mkdir()
        level = ["", "careful"].__getitem__
        world = StrataWorld(folder, Fleet(80, level_of=lambda number: level(number % 2)), GIVEN)
        with closing(SqliteStore(folder / "c.sqlite", SECRETS.master)) as store:
            for stop in stops:
                world.live(store, stop)
            return [one.content for one in store.releases("a", 0, 100)]

    assert lived(tmp_path / "whole", 12) == lived(tmp_path / "parts", 3, 4, 9, 12)


def test_as_many_reports_are_planned_as_devices_of_all_levels_have_their_turn(
    tmp_path: Path,
) -> None:
    """Of 300 devices 70 % report once in 4 timestamps, and 30 % once in 8: 52.5 and 11.25."""
    fleet = Fleet(300, level_of=lambda number: "careful" if number % 10 < 3 else "")
    world = StrataWorld(tmp_path, fleet, GIVEN)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 20)
        world.live(store, 32)
        own, careful = store.rounds("a", 31)[:2]
        released = store.releases("a", 16, 16)
        fleet.size = 0
        world.live(store, 60, population=300)
        silent = store.releases("a", 59, 1)[0]
    assert own.users == pytest.approx(52, abs=3)
    assert careful.users == pytest.approx(11, abs=3)
    asked, received = (
        sum(getattr(one, name) for one in released) for name in ("asked", "received")
    )
    assert asked == pytest.approx(received, rel=0.05)
    assert silent.received == 0
    assert silent.asked == pytest.approx(64, abs=5)


FILE = """
[[stream]]
name = "a"
labels = ["x", "y"]
epsilon = 1
window = 4
interval = "10s"
population = 100
{more}
[[stream.level]]
name = "{name}"
epsilon = {epsilon}
window = {window}
"""


@pytest.mark.parametrize(
    ("given", "line", "told"),
    [
        ({"name": "v2"}, 11, "name is 'v2'"),
        ({"name": "standard"}, 11, "what the stream's own epsilon and window are called"),
        ({"epsilon": 0}, 12, "epsilon is 0"),
        ({"window": 200}, 13, "100 users are too few for a window of 200"),
        ({"more": 'selection = "open"'}, 10, "levels need slots, and selection is open"),
        ({"more": 'selection = "roster"'}, 10, "levels need slots"),
    ],
)
def test_a_level_that_cannot_be_is_refused_with_its_line(
    given: dict[str, object], line: int, told: str, tmp_path: Path
) -> None:
    usual: dict[str, object] = {"name": "careful", "epsilon": 0.5, "window": 8, "more": ""}
    with pytest.raises(Mistake) as refused:
        parse(FILE.format(**usual | given), tmp_path / "c.toml")
    assert refused.value.problem is Problem.CONFIG_FILE
    assert f"line {line}: " in str(refused.value)
    assert told in str(refused.value)


def test_two_levels_of_one_name_are_refused(tmp_path: Path) -> None:
    text = FILE.format(name="careful", epsilon=0.5, window=8, more="")
    text += '[[stream.level]]\nname = "careful"\nepsilon = 2\nwindow = 4\n'
    with pytest.raises(Mistake, match="level 'careful' appears twice"):
        parse(text, tmp_path / "c.toml")
