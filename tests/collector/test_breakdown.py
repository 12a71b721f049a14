"""Breakdowns: figures of groups of devices beside those of the whole fleet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ldpstream.collector.config import parse
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.errors import Mistake, Problem
from ldpstream.numeric import Range
from tests.collector.driving import Crash, DyingStore
from tests.collector.helpers import SECRETS, source_of
from tests.collector.strata import CAREFUL, Fleet, StrataWorld

COUNTRIES = {"country": ["de", "fr"]}
GIVEN: dict[str, object] = {
    "mechanism": "lpf",
    "epsilon": 3,
    "attributes": COUNTRIES,
    "least_group": 1,
}
INTERVAL_MS = 10_000
Content = Mapping[str, Any]


@dataclass
class PartedFleet(Fleet):
    """Devices that say what they are; those of one country all hold the same label."""

    described: Callable[[int], dict[str, object]] = lambda number: {}
    holds: Callable[[int], int] = lambda number: 0

    def _report(self, asking: OpenRound, number: int) -> bytes:
        seen = asking.terms.seen_by(bytes(32), self.described(number))
        device = seen.randomiser(asking.collector.device.epsilon)
        held = self.holds(number) % len(asking.terms.values)
        return device.encode(device.perturb(held, source_of(f"{asking.name} {number}")))


def country_of(number: int) -> dict[str, object]:
    """Half of the devices are in Germany, three tenths in France and the rest elsewhere."""
    return {"country": (["de"] * 5 + ["fr"] * 3 + ["us", "it"])[number // 4 % 10]}


def label_of(number: int) -> int:
    return {"de": 0, "fr": 1}.get(str(country_of(number)["country"]), 2)


TRUTH = {"de": [1, 0, 0], "fr": [0, 1, 0], "other": [0, 0, 1]}
SHARES = {"de": 0.5, "fr": 0.3, "other": 0.2}


def parted(size: int = 2000, **given: Any) -> PartedFleet:
    return PartedFleet(size, described=country_of, holds=label_of, **given)


def lived(
    folder: Path, fleet: Fleet, stops: tuple[int, ...], given: dict[str, object]
) -> list[Content]:
    folder.mkdir(exist_ok=True)
    world = StrataWorld(folder, fleet, given)
    with closing(SqliteStore(folder / "c.sqlite", SECRETS.master)) as store:
        for stop in stops:
            world.live(store, stop)
        assert world.miscounted(store) == []
        return [one.content for one in store.releases("a", 0, 1000)]


def of_group(content: Content, value: str) -> Content:
    return next(one for one in content["groups"] if one["value"] == value)


def without_groups(content: Content) -> Content:
    return {key: part for key, part in content.items() if key != "groups"}


def assert_adds_up(content: Content) -> None:
    groups = content["groups"]
    assert sum(one["share"] for one in groups) == pytest.approx(1)
    for place, total in enumerate(content["values"]):
        parts = sum(one["share"] * one["values"][place] for one in groups)
        assert parts == pytest.approx(min(max(total, 0), 1), abs=1e-9)
    for one in groups:
        for low, value, high in zip(one["low"], one["values"], one["high"], strict=True):
            assert 0 <= low <= value <= high <= 1


@pytest.mark.parametrize("mechanism", ["lpf", "lpu"])
def test_the_total_is_what_it_would_be_without_attributes(mechanism: str, tmp_path: Path) -> None:
    given = GIVEN | {"mechanism": mechanism}
    plain = {key: given[key] for key in ("mechanism", "epsilon")}
    parts = lived(tmp_path / "parts", parted(200), (12,), given)
    whole = lived(tmp_path / "whole", parted(200), (12,), plain)
    assert [without_groups(one) for one in parts] == whole


def test_each_group_has_figures_of_its_own_that_add_up_to_the_total(tmp_path: Path) -> None:
    contents = lived(tmp_path, parted(), (40,), GIVEN)
    for content in contents[3:]:
        assert_adds_up(content)
    last = contents[-1]
    assert [one["value"] for one in last["groups"]] == ["de", "fr", "other"]
    for value, truth in TRUTH.items():
        group = of_group(last, value)
        assert group["attribute"] == "country"
        assert group["share"] == pytest.approx(SHARES[value], abs=1e-9)
        assert group["devices"] == round(2000 * SHARES[value])
        assert group["values"] == pytest.approx(truth, abs=0.1)


def test_small_groups_are_merged_into_the_others(tmp_path: Path) -> None:
    last = lived(tmp_path, parted(), (20,), GIVEN | {"least_group": 700})[-1]
    assert [one["value"] for one in last["groups"]] == ["de", "other"]
    others = of_group(last, "other")
    assert (others["merged"], others["devices"]) == (["fr", "other"], 1000)
    assert others["values"] == pytest.approx([0, 0.6, 0.4], abs=0.1)
    assert_adds_up(last)


def test_an_attribute_of_which_nothing_can_be_told_apart_says_nothing(tmp_path: Path) -> None:
    assert lived(tmp_path, parted(200), (5,), GIVEN | {"least_group": 500})[-1]["groups"] == []


def test_a_group_without_devices_says_nothing(tmp_path: Path) -> None:
    fleet = PartedFleet(100, described=lambda number: {"country": "fr"})
    (group,) = lived(tmp_path, fleet, (9,), GIVEN)[-1]["groups"]
    assert (group["value"], group["share"], group["devices"]) == ("fr", 1.0, 100)


def test_several_attributes_each_add_up(tmp_path: Path) -> None:
    def described(number: int) -> dict[str, object]:
        return country_of(number) | {"model": "a" if number % 2 else "b"}

    fleet = PartedFleet(2000, described=described, holds=label_of)
    given = GIVEN | {"attributes": COUNTRIES | {"model": ["a"]}}
    last = lived(tmp_path, fleet, (20,), given)[-1]
    for name in ("country", "model"):
        groups = [one for one in last["groups"] if one["attribute"] == name]
        assert_adds_up({**last, "groups": groups})
    assert [one["share"] for one in last["groups"]] == pytest.approx([0.5, 0.3, 0.2, 0.5, 0.5])


@pytest.mark.parametrize("level", [None, CAREFUL])
def test_what_is_known_of_groups_outlives_restarts(
    level: dict[str, object] | None, tmp_path: Path
) -> None:
    given = GIVEN | ({} if level is None else {"level": [level]})

    def fleet() -> PartedFleet:
        return parted(240, level_of=lambda number: "careful" if level and number % 3 == 0 else "")

    whole = lived(tmp_path / "whole", fleet(), (13,), given)
    assert lived(tmp_path / "parts", fleet(), (1, 3, 4, 9, 13), given) == whole
    assert {one["value"] for one in whole[-1]["groups"]} == set(TRUTH)
    assert_adds_up(whole[-1])


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_step_changes_nothing(after: bool, tmp_path: Path) -> None:
    def crashed(folder: Path, die_at: int | None) -> tuple[list[Content], int]:
        folder.mkdir()
        world = StrataWorld(folder, parted(60), GIVEN)
        with closing(SqliteStore(folder / "c.sqlite", SECRETS.master)) as store:
            dying = DyingStore(store, die_at, after=after)
            with suppress(Crash):
                world.live(dying, 5)
            world.live(store, 5)
            return [one.content for one in store.releases("a", 0, 5)], dying.changes

    usual, changes = crashed(tmp_path / "usual", None)
    for step in range(changes):
        again, _ = crashed(tmp_path / str(step), step)
        assert again == usual


def test_groups_go_on_through_silence_a_pause_and_missed_timestamps(tmp_path: Path) -> None:
    fleet = parted(400)
    world = StrataWorld(tmp_path, fleet, GIVEN | {"population": 400})
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 12)
        fleet.size = 0
        world.live(store, 14)
        fleet.size = 400
        paused = Coordinator(world.config(paused=True), store, world.clock)
        world.clock.advance(5 * INTERVAL_MS)
        paused.advance()
        assert paused.last_t == 14
        world.live(store, 26)
        found = {one.t: one for one in store.releases("a", 0, 100)}
    silent, missed = found[14], found[18]
    assert (silent.received, silent.content["fresh"], missed.missed) == (0, False, True)
    assert [one["devices"] for one in silent.content["groups"]] == [100, 60, 40]
    assert missed.content["groups"] == silent.content["groups"]
    for t in (13, 14, 18, 19, 26):
        assert_adds_up(found[t].content)
    for value, truth in TRUTH.items():
        assert of_group(found[26].content, value)["values"] == pytest.approx(truth, abs=0.2)


def test_a_fleet_that_is_gone_has_no_groups(tmp_path: Path) -> None:
    fleet = parted(400)
    world = StrataWorld(tmp_path, fleet, GIVEN | {"population": 400})
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 12)
        fleet.size = 0
        world.live(store, 17)
        assert store.releases("a", 17, 1)[0].content["groups"] == []


def test_suspect_reports_count_in_no_group(tmp_path: Path) -> None:
    """All reports of one round support the same labels, which is no honest devices' work."""
    fleet = parted(2000)
    honest = fleet._report

    def sent(asking: OpenRound, number: int) -> bytes:
        own = honest(asking, number)
        return own if asking.stored.t != 8 else own[:1] + bytes(len(own) - 2) + own[-1:]

    fleet._report = sent  # type: ignore[method-assign]
    given = GIVEN | {"oracle": "oue", "suspicion": {"discard": True, "false_alarm": 1e-6}}
    contents = lived(tmp_path, fleet, (8,), given)
    assert contents[-1]["suspect"] == ["8-publication"]
    assert [one["devices"] for one in contents[-1]["groups"]] == [750, 450, 300]


@pytest.mark.parametrize(
    ("now", "values"),
    [
        ({"country": ["de"]}, ["de", "other"]),
        ({"country": ["de", "fr"]}, ["de", "fr", "other"]),
        (None, []),
    ],
)
def test_a_successor_may_tell_less(
    now: dict[str, object] | None, values: list[str], tmp_path: Path
) -> None:
    """Devices go over one by one, so that rounds under both terms are one sample."""
    fleet = parted(2000, version_of=lambda number, t: 2 if t > 22 + number % 12 else 1)
    world = StrataWorld(tmp_path, fleet, GIVEN)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 20)
        changed: dict[str, Any] = {"attributes": now, "successor": {"version": 2}, "epsilon": 2.5}
        world.live(store, 50, **changed)
        assert world.miscounted(store) == []
        found = {one.t: one.content for one in store.releases("a", 0, 100)}
    last = found[50]
    assert last["terms_version"] == 2
    assert [one["value"] for one in last.get("groups", [])] == values
    for t in range(25, 51):
        if values:
            assert_adds_up(found[t])
        for one in found[t].get("groups", []):
            whole = 0.5 if len(values) == 2 else SHARES[one["value"]]
            assert one["share"] == pytest.approx(whole, abs=0.005)
    for one in last.get("groups", []):
        truth = TRUTH[one["value"]] if len(values) != 2 or one["value"] == "de" else [0, 0.6, 0.4]
        assert one["values"] == pytest.approx(truth, abs=0.12)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({"country": ["de", "fr", "it"]}, "the value 'it' of the attribute country is new"),
        (COUNTRIES | {"model": ["a"]}, "the attribute model is new"),
    ],
)
def test_a_successor_cannot_tell_more(now: dict[str, object], told: str, tmp_path: Path) -> None:
    world = StrataWorld(tmp_path, parted(40), GIVEN)
    with closing(SqliteStore(tmp_path / "c.sqlite", SECRETS.master)) as store:
        world.live(store, 2)
        with pytest.raises(Mistake, match=told):
            world.live(store, 4, attributes=now, successor={"version": 2})


@pytest.mark.parametrize("query", ["mean", "distribution"])
def test_groups_of_numbers(query: str, tmp_path: Path) -> None:
    fleet = PartedFleet(2000, described=country_of, holds=lambda number: 40 * label_of(number))
    numbers = {"labels": None, "range": [0, 100], "query": query, "oracle": None}
    contents = lived(
        tmp_path, fleet, (30,), GIVEN | numbers | {"bins": 8 if query != "mean" else None}
    )
    last = contents[-1]
    place = -1  # the mean is the last figure of a distribution, and the only one of a mean
    values = StrataWorld(tmp_path, fleet, GIVEN | numbers).config().values
    assert isinstance(values, Range)
    steps = 100 * 40 / values.steps
    for value, truth in {"de": 0.0, "fr": steps, "other": 2 * steps}.items():
        group = of_group(last, value)
        assert group["values"][place] == pytest.approx(truth, abs=12)
        assert group["low"][place] <= group["values"][place] <= group["high"][place]
    if query == "mean":
        for content in contents:
            parts = sum(one["share"] * one["values"][0] for one in content["groups"])
            assert parts == pytest.approx(content["values"][0])


FILE = """
[[stream]]
name = "a"
epsilon = 1
window = 4
interval = "10s"
population = 100
{more}
[stream.attributes]
{attributes}
"""


@pytest.mark.parametrize(
    ("attributes", "more", "told"),
    [
        ('country = ["de"]', 'selection = "open"', "attributes need slots, and selection is open"),
        ('country = ["other"]', "", "a value of country is not"),
        ("country = []", "", "country needs values"),
        ('Country = ["de"]', "", "the name 'Country' is not"),
        (f"n = {[str(n) for n in range(32)]}", "", "33 values with the others, of at most 32"),
        ('country = "de"', "", "country is 'de'"),
        (
            'country = ["de", "fr"]',
            f"labels = {[str(n) for n in range(60_000)]}",
            "3 groups of 60000 values each are more than 16,384 numbers",
        ),
        (
            "\n".join(f'a{n} = ["1", "2", "3"]' for n in range(4)),
            f"labels = {[str(n) for n in range(5000)]}",
            "256 combinations of 5000 values each are more than 1,048,576 numbers",
        ),
        ('country = ["de"]', "least_group = 0", "least_group is 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    attributes: str, more: str, told: str, tmp_path: Path
) -> None:
    usual = "" if more.startswith("labels") else 'labels = ["x", "y"]'
    text = FILE.format(attributes=attributes, more=f"{usual}\n{more}")
    with pytest.raises(Mistake, match=told) as refused:
        parse(text, tmp_path / "c.toml")
    assert refused.value.problem is Problem.CONFIG_FILE
