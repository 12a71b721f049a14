"""A stream whose terms have changed, and one with levels of privacy, on the page."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import StreamConfig, load
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.loading import mechanism_of
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.mechanisms.messages import Ask, Purpose
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import Terms
from tests.page.conftest import Watched
from tests.page.scene import MASTER, Scene, stream_table
from tests.page.test_page import open_stream, wait_until
from tests.serving import HEAD

PAST = 90
INTERVAL_MS = 500
SHARES = {
    "north": 0.4,
    "south": 0.25,
    "southwest": 0.25,
    "east": 0.15,
    "west": 0.2,
    "harbour": 0.15,
}
USUAL: dict[str, Any] = {"mechanism": "lpf", "selection": "slots", "interval": "500ms"}
OLD = stream_table("towns", ["north", "south", "east", "west"], **USUAL)
NEW = stream_table(
    "towns",
    ["north", "west", "southwest", "harbour"],
    **USUAL,
    successor={"version": 2, "rename": {"south": "southwest", "east": "west"}, "overlap": "2s"},
)
LEVELS = stream_table(
    "choices",
    ["yes", "no"],
    **USUAL,
    level=[{"name": "careful", "epsilon": 0.5, "window": 12}],
)


def content(t: int, names: tuple[str, ...], version: int) -> dict[str, Any]:
    """Return what was released at t: shares that wander a little."""
    shares = SHARES | ({"west": 0.25, "harbour": 0.1} if version > 1 else {})
    wobble = [0.01 * ((t * (at + 3)) % 5 - 2) for at in range(len(names))]
    values = [shares.get(name, 0.5) + off for name, off in zip(names, wobble, strict=True)]
    told = {
        "t": t,
        "values": values,
        "variance": [1e-4] * len(values),
        "low": [value - 0.02 for value in values],
        "high": [value + 0.02 for value in values],
        "fresh": True,
    }
    return told | ({"terms_version": version} if version > 1 else {})


def lived(store: SqliteStore, *files: StreamConfig, **devices: Any) -> TermsHistory:
    """Give a stream a past, in which each of these files was served after the one before."""
    start = int(time.time() * 1000) - PAST * INTERVAL_MS
    for at, config in enumerate(files):
        Coordinator(config, store, ManualClock(start + at * 30 * INTERVAL_MS))
    name = files[0].name
    history = TermsHistory.read(store.versions(name))
    releases = []
    for t in range(1, PAST + 1):
        terms = history.at(t)
        told = content(t, terms.names, terms.version)
        told |= {"devices": {"heard": 400, "expected": 600, **devices}}
        releases.append(StoredRelease(t, start + t * INTERVAL_MS, told, 100, 95, missed=False))
    store.release(name, releases, mechanism_of(files[-1], history.latest).save(), PAST - 20)
    return history


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, int]]:
    """The scene, and the first timestamp of the second version."""
    folder = Path(tmp_path_factory.mktemp("versions"))
    first = Scene(folder, OLD + LEVELS)
    towns, choices = load(first.collector.file).streams
    scene = Scene(folder, NEW + LEVELS)
    with closing(SqliteStore(scene.store, MASTER.encode())) as store:
        history = lived(store, towns, scene.stream("towns"))
        lived(store, choices, levels={"standard": 300, "careful": 100})
    succeeds = history.latest.succeeds
    assert succeeds is not None
    scene.count("towns", counted(history.at(1), range(1, 11)))
    with scene.collector:
        yield scene, succeeds.from_t


def counted(terms: Terms, timestamps: range) -> list[tuple[int, Ask, Support]]:
    """Return what many users of some terms reported."""
    users, rng = 100_000, np.random.default_rng(1)
    ask = Ask(users, Epsilon(terms.epsilon_nano), Purpose.PUBLICATION)
    lab = Oracle(terms.oracle).lab(len(terms.names), ask.epsilon)
    held = np.array([round(users * SHARES[name]) for name in terms.names])
    return [(t, ask, lab.sample_support(held, rng)) for t in timestamps]


def go_to_the_start(page: Page) -> None:
    """Show the first few timestamps."""
    page.locator(".chart").focus()
    for key in ("+", "+", "+", "+", "Home"):
        page.keyboard.press(key)
    wait_until(page, "document.querySelector('main').dataset.range.startsWith('1 ')")


def test_versions_are_joined_by_label_and_the_change_is_told(
    page: Page, watched: Watched, changed: tuple[Scene, int]
) -> None:
    scene, from_t = changed
    open_stream(page, scene, "towns")
    expect(page.locator(".changes li")).to_have_text(
        f"t {from_t}, terms 2: south is called southwest now; east joined west; new: harbour"
    )
    expect(page.locator(".legend")).to_contain_text("terms changed")
    names = page.locator(".bars tbody th")
    expect(names).to_have_count(4)
    assert sorted(names.all_text_contents()) == ["harbour", "north", "southwest", "west"]
    go_to_the_start(page)
    expect(page.locator(".bars tbody th", has_text="east")).to_be_visible()
    assert sorted(names.all_text_contents()) == ["east", "north", "south", "west"]


def test_the_past_of_a_label_that_stays_is_there_and_of_others_is_empty(
    page: Page, watched: Watched, changed: tuple[Scene, int]
) -> None:
    scene, _ = changed
    open_stream(page, scene, "towns")
    wait_until(page, "Number(document.querySelector('main').dataset.firstT) === 1")
    page.get_by_label("Add a label to the lines").fill("south")
    page.keyboard.press("Enter")
    page.click("text=The same as a table")
    go_to_the_start(page)
    row = page.locator(".panel-lines .plain tbody tr").first
    heads = page.locator(".panel-lines .plain thead th").all_text_contents()
    cells = dict(zip(heads[1:], row.locator("td").all_text_contents(), strict=True))
    assert cells["south"].startswith("2")
    assert cells["southwest"] == "– (–)"
    assert cells["north"].startswith(("3", "4"))
    # In the heat map, labels of now come first; what is not there is not painted.
    painted = """(at) => {
        const canvas = document.querySelector('canvas.heat')
        const context = canvas.getContext('2d')
        const [x, label] = at
        const tall = canvas.height * (6 * 22) / (6 * 22 + 9)
        return context.getImageData(canvas.width * x, tall * (label + 0.5) / 6, 1, 1).data[3]
    }"""
    page.get_by_role("button", name="The last 300 timestamps").click()
    expect(page.locator(".summary")).to_contain_text("live")
    wait_until(page, "document.querySelector('.summary').textContent.startsWith('t 1 ')")
    early, late, harbour, south = 0.2, 0.98, 3, 4
    assert page.evaluate(painted, [early, harbour]) == 0
    assert page.evaluate(painted, [late, harbour]) == 255
    assert page.evaluate(painted, [early, south]) == 255
    assert page.evaluate(painted, [late, south]) == 0


def test_revised_figures_are_those_of_the_labels_of_their_version(
    page: Page, watched: Watched, changed: tuple[Scene, int]
) -> None:
    """The store has the first rounds of that past, of the first version."""
    scene, _ = changed
    open_stream(page, scene, "towns")
    page.get_by_label("Add a label to the lines").fill("south")
    page.keyboard.press("Enter")
    go_to_the_start(page)
    wait_until(page, "Number(document.querySelector('main').dataset.revised) > 0")
    box = page.locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 80)
    tip = page.locator(".tip:visible")
    expect(tip.get_by_text(re.compile(r"^south 2.*%, now 2[45]"))).to_be_visible()
    expect(tip.locator("span", has_text="southwest")).not_to_contain_text("now")
    page.get_by_role("button", name="The last 300 timestamps").click()
    expect(page.locator(".legend")).to_contain_text("terms changed")


def test_levels_are_shown_with_their_share(
    page: Page, watched: Watched, changed: tuple[Scene, int]
) -> None:
    scene, _ = changed
    open_stream(page, scene, "choices")
    go_to_the_start(page)
    rows = page.locator(".levels tbody tr")
    expect(rows).to_have_text(
        ["standardε 2 in 3 seconds75 % (300)", "carefulε 0.5 in 6 seconds25 % (100)"]
    )
    open_stream(page, scene, "towns")
    expect(page.locator(".levels")).to_have_count(0)


def test_the_overview_shows_streams_whose_terms_changed(
    page: Page, watched: Watched, changed: tuple[Scene, int]
) -> None:
    scene, _ = changed
    page.goto(scene.url)
    card = page.locator(".stream-card", has_text="towns")
    expect(card.locator(".top-labels li")).to_have_count(3)
    expect(card.locator(".top-labels")).to_contain_text("north")


def test_a_page_that_is_open_when_the_terms_change_goes_over(
    page: Page, watched: Watched, tmp_path: Path
) -> None:
    old = stream_table("towns", ["north", "south"], **USUAL, window=2)
    scene = Scene(tmp_path, old)
    changed = {"version": 2, "rename": {"south": "coast"}}
    new = stream_table("towns", ["north", "coast"], **USUAL, window=2, successor=changed)
    with scene.collector:
        open_stream(page, scene, "towns")
        wait_until(page, "Number(document.querySelector('main').dataset.lastT) >= 2")
        scene.collector.stop()
        scene.collector.file.write_text(HEAD + new)
        scene.collector.start()
        expect(page.locator(".changes")).to_contain_text("south is called coast now")
        expect(page.locator(".bars tbody th", has_text="coast")).to_be_visible()
        expect(page.locator("#join-value option", has_text="coast")).to_have_count(1)
