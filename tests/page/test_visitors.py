"""Visitors without any token: they join a public stream, and `ldpstream demo` shows them one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.page.conftest import Watched
from tests.page.scene import Scene, stream_table
from tests.page.test_page import open_stream


def test_a_visitor_joins_reports_and_is_refused_when_its_budget_is_spent(
    page: Page, watched: Watched, tmp_path: Path
) -> None:
    pond = stream_table(
        "pond",
        ["yes", "no"],
        interval="1s",
        window=2,
        population=2,
        mechanism="lpu",
        public=True,
    )
    scene = Scene(tmp_path, pond)
    with scene.collector:
        open_stream(page, scene, "pond")
        expect(page.locator("#join-token")).to_have_count(0)
        page.select_option("#join-value", "0")
        page.check("#join-first")
        page.press(".join button[type=submit]", "Enter")  # a live page moves under the mouse
        log = page.locator(".log")
        expect(log).to_contain_text("(2 bytes), spent ε 2")
        expect(log).to_contain_text("Refused: round")
        expect(page.locator(".budget")).to_contain_text("of 2")
        assert sum(one["received"] for one in scene.releases("pond")) >= 1


def test_a_visitor_reports_unasked_leaves_and_joins_again(
    page: Page, watched: Watched, tmp_path: Path
) -> None:
    pond = stream_table(
        "pond",
        ["yes", "no"],
        interval="1s",
        window=3,
        population=3,
        mechanism="lpu",
        selection="slots",
        public=True,
    )
    scene = Scene(tmp_path, pond)
    with scene.collector:
        open_stream(page, scene, "pond")
        page.select_option("#join-value", "0")
        page.check("#join-first")
        page.press(".join button[type=submit]", "Enter")
        log, panel = page.locator(".log"), page.locator(".panel-join")
        expect(log.locator("li.good")).to_have_count(2)
        expect(panel).to_contain_text("and reports next in")
        assert not [url for url in watched.urls if "/rounds?" in url], "nobody asks"
        page.press('button:text-is("Leave")', "Enter")
        expect(panel).to_contain_text("Left. What was spent counts for another 3 seconds.")
        page.press(".join button[type=submit]", "Enter")
        expect(log.locator("li.good")).to_have_count(3)
        expect(panel).not_to_contain_text("Refused")
        assert page.evaluate("Object.keys(localStorage)") == []


def test_the_demo_prints_an_address_that_has_data_within_ten_seconds(
    page: Page, watched: Watched
) -> None:
    command = [sys.executable, "-m", "ldpstream", "demo", "--seconds", "25", "--devices", "300"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert demo.stdout is not None
    try:
        found = re.search(r"http://\S+", demo.stdout.readline())
        assert found is not None
        began = time.monotonic()
        page.goto(found[0])
        page.wait_for_selector(".bars tbody tr")
        took = time.monotonic() - began
        print(f"data on the page {took:.1f} s after its address")
        expect(page.locator(".alert")).to_contain_text("Stadium above 20.0 %")
        expect(page.locator("#join-token")).to_have_count(0)
        expect(page.locator(".legend")).to_contain_text("the truth")
        assert took < 10
    finally:
        demo.terminate()
        assert demo.wait(20) == 0, "it stops in good order, and its collector with it"
        demo.stdout.close()
