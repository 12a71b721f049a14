from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.page.browser import browser, executable
from tests.page.scene import XSS, Crowd, Scene, stream_table
from tests.postgres import database, postgres_server

__all__ = ["database", "postgres_server"]

REGIONS = ["north", "south", XSS, "west", "centre", "east"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Not for the whole session: an event loop runs for as long as it is open, in this thread too,
    and the tests of other modules start loops of their own."""
    if executable() is None:
        pytest.skip("there is no chromium; run: tools/system.sh")
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Three streams: one with a crowd, one so small that everyone is asked, one that is private."""
    streams = stream_table("regions", REGIONS, thresholds={"south": 0.2})
    streams += stream_table(
        "pocket", ["yes", XSS], interval="1s", window=2, population=2, mechanism="lpu"
    )
    streams += stream_table("ward", ["calm", "busy"], public=False, mechanism="lpu")
    made = Scene(Path(tmp_path_factory.mktemp("scene")), streams)
    with made.collector, Crowd(made, "regions").reporting():
        yield made


class Watched:
    """What a page asked for and complained about."""

    def __init__(self, page: Page) -> None:
        self.urls: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.urls.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._on_console)

    def _on_console(self, message: object) -> None:
        text = str(getattr(message, "text", ""))
        # A refused request shows up here too; it is no fault of the page's.
        if getattr(message, "type", "") == "error" and "Failed to load resource" not in text:
            self.complaints.append(text)


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(15_000)
    opened = context.new_page()
    yield opened
    context.close()


@pytest.fixture
def watched(page: Page) -> Iterator[Watched]:
    """Fails the test if the page complained: of an error, or of its own security policy."""
    seen = Watched(page)
    yield seen
    assert seen.complaints == []
