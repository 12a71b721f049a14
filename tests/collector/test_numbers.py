"""Streams of numbers: the same rounds, rules and mechanisms, with a mean released."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.reports.halves import half_of
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.mechanisms.mechanism import drive
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.registry import PAPER, build
from ldpstream.numeric import Numeric, Range
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import Terms
from tests.collector.driving import World, miscounted, most_spent
from tests.collector.helpers import SECRETS, START_MS, stream_config

TIMESTAMPS = 12


def world_of(folder: Path, mechanism: str = "lpf", **given: object) -> World:
    config = stream_config(
        folder, mechanism=mechanism, labels=None, range=[-20, 60], oracle="auto", **given
    )
    world = World(config, folder / "c.sqlite")
    world.enrol_everyone()
    return world


def lived(world: World) -> list[StoredRelease]:
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        world.live(store, TIMESTAMPS)
        assert [*miscounted(store, world)] == []
        return store.releases("a", 0, 100)


@pytest.mark.parametrize("mechanism", [*PAPER, "lpf"])
def test_releases_are_means_in_the_unit_of_the_range(mechanism: str, tmp_path: Path) -> None:
    world = world_of(tmp_path, mechanism, selection="roster")
    released = lived(world)
    assert [release.t for release in released] == [*range(1, TIMESTAMPS + 1)]
    assert most_spent(world) <= 10**9
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        rounds = {(one.t, one.purpose): one for one in store.rounds("a", 0)}
    again = build(mechanism, world.config.settings)
    for release in released:

        def answer(ask: Ask, t: int = release.t) -> Tally:
            support = rounds[t, ask.purpose].support
            assert support is not None
            return again.noise.tally(ask.epsilon, support)

        expected = world.config.query.shown(drive(again.step(release.t), answer), again.noise)
        heard_t = max(t for t, _ in rounds if t <= release.t)  # everyone who is asked reports
        known = {"devices": release.content["devices"], "heard_t": heard_t}
        assert release.content == expected.to_json() | known


def test_a_mean_is_unbiased(tmp_path: Path) -> None:
    """LPU over many devices: within 5 standard errors of the truth, failing below 1e-6."""
    world = world_of(tmp_path, "lpu", population=2000, selection="open")
    (release, *_) = lived(world)
    levels = world.config.settings.labels
    held = [number % levels for number in world.devices]
    truth = world.config.query.truth(np.bincount(held, minlength=levels))
    (value,), (variance,) = release.content["values"], release.content["variance"]
    assert abs(value - truth[0]) < 5 * variance**0.5
    assert variance < 80**2 / 100  # that of about 500 reports, not of none


@pytest.mark.parametrize("mechanism", ["lpu", "lpa", "lpf"])
def test_releases_of_a_distribution_have_bins_quantiles_and_the_mean(
    mechanism: str, tmp_path: Path
) -> None:
    """As a mechanism in the laboratory would release, from the same counts."""
    world = world_of(tmp_path, mechanism, query="distribution", bins=8, selection="open")
    released = lived(world)
    assert [release.t for release in released] == [*range(1, TIMESTAMPS + 1)]
    assert most_spent(world) <= 10**9
    names = world.config.labels
    assert names == ("[-20, -10)", *names[1:8], "p10", "p50", "p90", "p99", "mean")
    last = released[-1].content
    low, values, high = (np.array(last[part]) for part in ("low", "values", "high"))
    assert len(values) == len(names)
    assert (low <= values).all()
    assert (values <= high).all()
    assert values[:8].sum() == pytest.approx(1)
    assert (np.diff(values[8:12]) > 0).all()
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        assert Coordinator(world.config, store, world.clock).last_t == TIMESTAMPS


class GoneFrom7(World):
    """Devices that report until t = 6, and then no more."""

    def answering(self, asking: OpenRound) -> list[int]:
        return super().answering(asking) if asking.stored.t < 7 else []


def test_a_distribution_keeps_its_figures_while_nobody_reports(tmp_path: Path) -> None:
    """Only its intervals widen: errors that grow would make the fitted density flatter."""
    common = world_of(tmp_path, query="distribution", bins=8, selection="open", population=500)
    released = lived(GoneFrom7(common.config, common.file))
    last, *silent = (one.content for one in released[5:])
    assert [last["fresh"], *(one["fresh"] for one in silent)] == [True] + [False] * len(silent)
    assert [one["values"] for one in silent] == [last["values"]] * len(silent)
    widths = [np.subtract(one["high"], one["low"]) for one in (last, *silent)]
    assert all((later > before - 0.5).all() for before, later in pairwise(widths))
    assert widths[-1][8:].sum() > 1.2 * widths[0][8:].sum()


def test_terms_are_read_as_they_were_written() -> None:
    terms = Terms("load", Range(-0.5, 1e3, 512), Epsilon.of("0.5"), 20, 1000, 0, Numeric.DUCHI)
    agreed = Terms.read(terms.to_json())
    assert (agreed, agreed.pin) == (terms, terms.pin)
    assert agreed.randomiser(terms.epsilon) is half_of(terms, terms.epsilon).device


def test_ends_of_a_range_that_no_float_is_are_those_that_its_terms_have(tmp_path: Path) -> None:
    ends = [-(10**17) + 1, 10**17 - 1]
    stream = stream_config(tmp_path, labels=None, range=ends, oracle="auto", mechanism="lpf")
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        for _ in range(2):
            assert Coordinator(stream, store, ManualClock(START_MS)).last_t == 0


def test_a_restart_takes_up_the_stream_and_another_range_is_refused(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    lived(world)
    other = stream_config(tmp_path, labels=None, range=[0, 60], oracle="auto", mechanism="lpf")
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        assert Coordinator(world.config, store, world.clock).last_t == TIMESTAMPS
        with pytest.raises(Exception, match="values"):
            Coordinator(other, store, world.clock)
