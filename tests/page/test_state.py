"""The state of a stream on the page: the collector's word, and no figures where there are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.collector.operating import Admin
from tests.page.conftest import Watched
from tests.page.scene import ADMIN, Scene, stream_table
from tests.page.test_page import open_stream, wait_until


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A stream in which nobody takes part."""
    made = Scene(Path(tmp_path_factory.mktemp("state")), stream_table("regions", ["yes", "no"]))
    with made.collector:
        yield made


def test_a_stream_that_never_had_a_report_is_not_live_and_has_no_figures(
    page: Page, watched: Watched, scene: Scene
) -> None:
    open_stream(page, scene)
    wait_until(page, "Number(document.querySelector('main').dataset.lastT) >= 2")
    expect(page.locator(".pill").first).to_have_text("waiting")
    expect(page.locator(".bars caption")).to_contain_text("no report yet")
    assert "50.0" not in page.locator(".bars").inner_text()
    page.goto(scene.collector.url)
    card = page.locator(".stream-card")
    expect(card.locator(".pill").last).to_have_text("waiting")
    expect(card.locator("li").first).to_contain_text("–")
    assert "50.0" not in card.inner_text()


def test_what_an_administrator_does_is_on_the_page(
    page: Page, watched: Watched, scene: Scene
) -> None:
    open_stream(page, scene)
    admin = Admin(scene.collector.url, ADMIN)
    admin.call("POST", "admin/streams/regions/pause")
    expect(page.locator(".pill").first).to_have_text("paused")
    admin.call("POST", "admin/streams/regions/resume")
    expect(page.locator(".pill").first).to_have_text("waiting")
