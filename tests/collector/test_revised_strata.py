"""The revised history of a stream with levels of privacy, or whose terms have changed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.revised import RevisedHistory
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.protocol.history import TermsHistory
from tests.collector.helpers import SECRETS
from tests.collector.strata import Fleet, StrataWorld
from tests.collector.test_levels import GIVEN
from tests.collector.test_succession import AGAIN, RENAMED, history_of

TIMESTAMPS = 48


def test_a_revised_figure_is_that_of_all_levels(tmp_path: Path) -> None:
    """A third of the people is careful, and holds something else."""
    fleet = Fleet(3000, "x", level_of=lambda number: "careful" if number % 3 == 0 else "")
    usual = fleet._report
    fleet._report = lambda asking, number: (  # type: ignore[method-assign]
        Fleet(1, "y")._report(asking, number) if number % 3 == 0 else usual(asking, number)
    )
    world = StrataWorld(tmp_path, fleet, GIVEN)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, TIMESTAMPS)
        history = RevisedHistory(world.config(), store)
        revised = history.of(store.releases("a", 0, 100))
        late = history.of(store.releases("a", 30, 100))
    truth = [2 / 3, 1 / 3, 0]
    assert len(revised) == TIMESTAMPS
    for one in (*revised[8:], *late):
        assert one.content["revised"] == pytest.approx(truth, abs=0.08)
    last = late[-1].content
    for low, share, high in zip(last["revised_low"], truth, last["revised_high"], strict=True):
        assert low <= share <= high


def changed_twice(world: StrataWorld, store: SqliteStore, changes: list[int]) -> TermsHistory:
    """Live through two changes of labels; `changes` hears when they were."""
    world.live(store, 12)
    for changed in (RENAMED, AGAIN):
        succeeds = Coordinator(world.config(**changed), store, world.clock).history.latest.succeeds
        assert succeeds is not None
        changes.append(succeeds.from_t)
        world.live(store, succeeds.until_t + 12, **changed)
    return history_of(store)


def test_each_stretch_is_revised_under_its_own_labels(tmp_path: Path) -> None:
    """While some cannot tell a label that is new, nothing is revised; a merger needs no pause."""
    changes: list[int] = []

    def version(number: int, t: int) -> int:
        return 1 + sum(t >= from_t + number % 6 for from_t in changes)

    given = {"mechanism": "lpf", "epsilon": 4}
    world = StrataWorld(tmp_path, Fleet(800, "x", version), given)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        history = changed_twice(world, store, changes)
        revised = RevisedHistory(world.config(**AGAIN), store).of(store.releases("a", 0, 1000))
        begun = RevisedHistory(world.config(**AGAIN), store)
        pages = [begun.of(store.releases("a", t, 7)) for t in range(1, len(revised) + 1, 7)]
    second = history.versions[1].succeeds
    assert second is not None
    unsaid = range(second.from_t, second.until_t + 1)
    for one in (*revised, *(one for page in pages for one in page)):
        names = history.at(one.t).names
        if one.t in unsaid:
            assert one.content["revised"] is None
            assert one.content["revised_high"] is None
            continue
        figures: dict[str, dict[str, float]] = {
            part: dict(zip(names, one.content[part], strict=True))
            for part in ("revised", "revised_low", "revised_high")
        }
        assert figures["revised"]["x"] == pytest.approx(1, abs=0.1)
        assert figures["revised_high"]["x"] >= 0.97


def test_terms_that_change_no_label_are_no_border(tmp_path: Path) -> None:
    world = StrataWorld(tmp_path, Fleet(400, "x"), {"mechanism": "lpf", "epsilon": 4})
    stricter: dict[str, Any] = {"epsilon": 2, "successor": {"version": 2}}
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 6)
        before = RevisedHistory(world.config(), store).between(1, 1).shown[1]
        coordinator = world.live(store, 40, **stricter)
        assert coordinator.terms.version == 2
        revised = RevisedHistory(world.config(**stricter), store)
        after = revised.between(1, 1).shown[1]
        assert revised.between(1, 40).shown.keys() == {*range(1, 41)}
    widths = [sum(high) - sum(low) for _, low, high in (before, after)]
    assert widths[1] < 0.8 * widths[0]
