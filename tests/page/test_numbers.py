"""A stream of numbers on the page: one line, in the unit of its range."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ldpstream.collector.store.contract import Release
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.mechanisms.registry import build
from ldpstream.protocol.terms import Terms
from tests.page.conftest import Watched
from tests.page.scene import MASTER, Scene
from tests.page.test_page import AXE, open_stream

STREAM = """
[[stream]]
name = "celsius"
range = [-20, 60]
epsilon = 1
window = 10
interval = "60s"
population = 1000
thresholds = { mean = 15 }
"""
LAST = -3.25


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """An hour of the past, at whose end the mean is below zero."""
    made = Scene(Path(tmp_path_factory.mktemp("numbers")), STREAM)
    config = made.stream("celsius")
    start = int(time.time() * 1000) - 60 * config.interval_ms - 1000
    oracle = build(config.mechanism, config.settings).noise.oracle
    terms = Terms(
        "celsius", config.values, config.epsilon, config.window, config.interval_ms, start, oracle
    )
    means = [10 * math.sin(t / 9) for t in range(1, 60)] + [LAST]
    releases = [_release(t, start, mean) for t, mean in enumerate(means, start=1)]
    state = build(config.mechanism, config.settings).save()
    with closing(SqliteStore(made.store, MASTER.encode())) as store:
        store.create_stream("celsius", terms.to_json())
        store.release("celsius", releases, state, 0)
    with made.collector:
        yield made


def _release(t: int, start_ms: int, mean: float) -> Release:
    content = {
        "t": t,
        "values": [mean],
        "variance": [1.0],
        "low": [mean - 1.6],
        "high": [mean + 1.6],
        "fresh": True,
    }
    return Release(t, start_ms + t * 60_000, content, asked=100, received=100, missed=False)


def test_a_mean_is_shown_in_the_unit_of_its_range(
    page: Page, watched: Watched, scene: Scene
) -> None:
    page.goto(f"{scene.url}/#/")
    expect(page.locator(".top-labels")).to_contain_text("mean-3.25")
    open_stream(page, scene, "celsius")
    expect(page.locator("main")).to_contain_text("mean, -20 to 60")
    expect(page.locator(".bars tbody tr")).to_have_count(1)
    expect(page.locator(".bars tbody")).to_contain_text("-4.85 to -1.65")
    expect(page.get_by_role("heading", name="Mean")).to_be_visible()
    expect(page.get_by_role("heading", name="All labels")).to_have_count(0)
    expect(page.locator("#join-value")).to_have_attribute("type", "number")
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [one for one in found["violations"] if one["impact"] in ("serious", "critical")] == []
    assert watched.complaints == []
