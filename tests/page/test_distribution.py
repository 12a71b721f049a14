"""A stream whose distribution is released, on the page: quantiles over time, and the bins now."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.mechanisms.registry import build
from ldpstream.numeric import Numeric
from ldpstream.protocol.terms import Terms
from tests.page.conftest import Watched
from tests.page.scene import MASTER, Scene
from tests.page.test_page import AXE, open_stream

STREAM = """
[[stream]]
name = "latency"
range = [0, 5]
query = "distribution"
bins = 10
epsilon = 1
window = 10
interval = "60s"
population = 1000
"""
SHARES = np.array([0.1, 0.3, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.03, 0.02])
NUMBERS = np.array([0.5, 1.25, 3.5, 4.75, 1.6])


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """An hour of the past."""
    made = Scene(Path(tmp_path_factory.mktemp("distribution")), STREAM)
    config = made.stream("latency")
    start = int(time.time() * 1000) - 60 * config.interval_ms - 1000
    given = (config.values, config.epsilon, config.window, config.interval_ms, start)
    terms = Terms("latency", *given, Numeric.SQUARE_WAVE)
    state = build(config.mechanism, config.settings).save()
    with closing(SqliteStore(made.store, MASTER.encode())) as store:
        store.create_stream("latency", terms.to_json())
        store.release("latency", [_release(t, start) for t in range(1, 61)], state, 0)
    with made.collector:
        yield made


def _release(t: int, start_ms: int) -> StoredRelease:
    values = np.concatenate([SHARES, NUMBERS])
    content = {
        "t": t,
        "values": values.tolist(),
        "variance": [1e-4] * len(values),
        "low": (0.9 * values).tolist(),
        "high": (1.1 * values).tolist(),
        "fresh": True,
    }
    return StoredRelease(t, start_ms + t * 60_000, content, asked=100, received=100, missed=False)


def test_quantiles_and_bins_are_shown_each_in_their_unit(
    page: Page, watched: Watched, scene: Scene
) -> None:
    open_stream(page, scene, "latency")
    expect(page.locator("main")).to_contain_text("distribution, 0 to 5")
    expect(page.get_by_role("heading", name="Quantiles")).to_be_visible()
    expect(page.get_by_role("heading", name="All labels")).to_have_count(0)
    expect(page.locator(".bars tbody tr")).to_have_count(5)
    expect(page.locator(".bars tbody")).to_contain_text("p99")
    expect(page.locator(".bars tbody")).to_contain_text("4.75")
    chart = page.locator(".distribution")
    expect(chart.locator("span")).to_have_count(10)
    expect(chart).to_have_attribute(
        "aria-label", re.compile(r"^Shares of 10 bins at t 60; the largest is \[0\.5, 1\), 30\.0")
    )
    expect(page.locator("#join-value")).to_have_attribute("type", "number")
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [one["id"] for one in found["violations"]] == []
