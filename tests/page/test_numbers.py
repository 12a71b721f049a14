"""A stream of numbers on the page: one line, in the unit of its range."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import Watched
from tests.page.scene import Scene
from tests.page.test_page import open_stream, serious_faults

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
    means = [10 * math.sin(t / 9) for t in range(1, 60)] + [LAST]
    made.hold("celsius", [_content(mean) for mean in means])
    with made.collector:
        yield made


def _content(mean: float) -> dict[str, object]:
    ends = {"low": [mean - 1.6], "high": [mean + 1.6]}
    return {"values": [mean], "variance": [1.0], "fresh": True} | ends


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
    assert serious_faults(page) == []
    assert watched.complaints == []
