"""Levels of privacy in the browser, and new terms under a device that runs there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import Watched
from tests.page.scene import Scene, stream_table
from tests.page.test_page import open_stream
from tests.serving import HEAD

USUAL: dict[str, Any] = {
    "interval": "1s",
    "window": 3,
    "epsilon": 1,
    "population": 6,
    "mechanism": "lpu",
    "selection": "slots",
    "public_enrolment": True,
}
CAREFUL = {"name": "careful", "epsilon": 0.5, "window": 5}


def wait_for_report(page: Page, watched: Watched, ending: str) -> None:
    """Wait until the browser has sent a report to a round whose name ends so."""
    for _ in range(600):
        if sent(watched, ending):
            return
        page.wait_for_timeout(100)
    raise AssertionError(watched.urls)


def sent(watched: Watched, ending: str) -> bool:
    return any(url.endswith(f"{ending}/reports") for url in watched.urls)


@pytest.mark.parametrize("level", ["careful", ""])
def test_a_person_chooses_a_level_and_moves_to_another(
    level: str, page: Page, watched: Watched, tmp_path: Path
) -> None:
    other = "" if level else "careful"
    scene = Scene(tmp_path, stream_table("pond", ["yes", "no"], level=[CAREFUL], **USUAL))
    rounds = {"": "-publication", "careful": "-publication-careful"}
    with scene.collector:
        open_stream(page, scene, "pond")
        expect(page.locator(".promise + .note + .note")).to_contain_text(
            "careful (epsilon 0.5 in any 5 seconds: odds change by at most 1.65)"
        )
        choice = page.locator("#join-level")
        expect(choice.locator("option")).to_have_text(
            [
                "standard: epsilon 1 in any 3 seconds: odds change by at most 2.72",
                "careful: epsilon 0.5 in any 5 seconds: odds change by at most 1.65",
            ]
        )
        choice.select_option(level)
        page.select_option("#join-value", label="yes")
        page.check("#join-first")
        page.press(".join button[type=submit]", "Enter")
        wait_for_report(page, watched, rounds[level])
        assert not sent(watched, rounds[other])
        choice.select_option(other)
        wait_for_report(page, watched, rounds[other])
        expect(page.locator(".log .bad")).to_have_count(0)


def test_a_browser_goes_over_to_new_terms_with_its_ledger(
    page: Page, watched: Watched, tmp_path: Path
) -> None:
    old = stream_table("pond", ["yes", "no"], **USUAL)
    successor = {"version": 2, "rename": {"no": "never"}, "overlap": "1h"}
    new = stream_table("pond", ["yes", "never", "perhaps"], successor=successor, **USUAL)
    scene = Scene(tmp_path, old)
    with scene.collector:
        open_stream(page, scene, "pond")
        page.select_option("#join-value", label="no")
        page.check("#join-first")
        page.press(".join button[type=submit]", "Enter")
        wait_for_report(page, watched, "-publication")
    scene.collector.file.write_text(HEAD + new)
    watched.urls.clear()
    with scene.collector:
        open_stream(page, scene, "pond")
        page.reload()
        page.click("text=Continue as the previous device")
        page.select_option("#join-value", label="never")
        wait_for_report(page, watched, "-publication-v2")
    names = page.evaluate("indexedDB.databases().then((all) => all.map(({ name }) => name))")
    assert len([name for name in names if name.startswith("ldpstream pond ")]) == 1
