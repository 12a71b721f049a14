"""The state of a stream on the page: the collector's word, and no figures where there are none."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.collector.operating import Admin
from tests.page.conftest import Watched
from tests.page.scene import ADMIN, ENROLMENT, Crowd, Scene, stream_table
from tests.page.test_page import open_stream, wait_until


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Streams in which nobody takes part, at first."""
    streams = stream_table("regions", ["yes", "no"])
    streams += stream_table("village", ["a", "b", "c"], population=20, mechanism="lpu", window=3)
    streams += stream_table("thermometers", None, range=[0, 40], population=20, window=3)
    streams += stream_table("left", ["yes", "no"], mechanism="lpu")
    streams += stream_table("stopped", ["yes", "no"], paused=True)
    streams += stream_table("ended", ["yes", "no"], retired=True)
    streams += stream_table("latency", None, range=[0, 5], query="distribution", bins=8)
    made = Scene(Path(tmp_path_factory.mktemp("state")), streams)
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
    card = page.locator(".stream-card").filter(has_text="regions")
    expect(card.locator(".pill").last).to_have_text("waiting")
    expect(card.locator("li").first).to_contain_text("–")
    assert "50.0" not in card.inner_text()


def test_a_distribution_has_no_figures_before_the_first_report(
    page: Page, watched: Watched, scene: Scene
) -> None:
    open_stream(page, scene, "latency")
    expect(page.locator(".ends")).to_contain_text("no report yet")
    expect(page.locator(".distribution")).to_be_hidden()


def test_a_stream_that_the_file_pauses_says_that_the_file_resumes_it(
    page: Page, watched: Watched, scene: Scene
) -> None:
    open_stream(page, scene, "stopped")
    expect(page.locator(".next")).to_contain_text("If the file pauses the stream, remove")
    expect(page.locator(".next")).not_to_contain_text("t=0")


def test_a_stream_that_has_ended_invites_nobody(page: Page, watched: Watched, scene: Scene) -> None:
    open_stream(page, scene, "ended")
    expect(page.locator(".next")).to_contain_text("No device reports any more")
    expect(page.locator(".next")).not_to_contain_text("t=0")
    expect(page.locator(".panel-round")).to_contain_text("No round is open")
    expect(page.locator(".panel-round")).not_to_contain_text("next")
    expect(page.locator(".panel-join")).to_be_hidden()
    page.goto(f"{scene.url}/privacy/ended")
    expect(page.locator("main")).to_contain_text("This stream has ended")
    page.goto(f"{scene.url}/privacy/stopped")
    expect(page.locator("main[data-shown]")).not_to_contain_text("has ended")


def test_what_an_administrator_does_is_on_the_page(
    page: Page, watched: Watched, scene: Scene
) -> None:
    open_stream(page, scene)
    admin = Admin(scene.collector.url, ADMIN)
    admin.call("POST", "admin/streams/regions/pause")
    expect(page.locator(".pill").first).to_have_text("paused")
    admin.call("POST", "admin/streams/regions/resume")
    expect(page.locator(".pill").first).to_have_text("waiting")


@pytest.mark.parametrize("stream", ["village", "thermometers"])
def test_an_empty_stream_names_the_command_that_adds_devices(
    page: Page, watched: Watched, scene: Scene, tmp_path: Path, stream: str
) -> None:
    """It is run as it stands there, and then there are figures."""
    open_stream(page, scene, stream)
    _, command = page.locator(".next pre").inner_text().split("\n", 1)
    program, *arguments = shlex.split(command.replace("\\\n", ""))
    assert program == "ldpstream"
    environment = os.environ | {"LDPSTREAM_ENROLMENT_TOKEN": ENROLMENT}
    fleet = subprocess.Popen(
        [sys.executable, "-m", program, *arguments], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        expect(page.locator(".bars tbody tr").first).to_contain_text(" to ", timeout=60_000)
        expect(page.locator(".pill").first).not_to_have_text("waiting")
        expect(page.locator(".next pre", has_text="ldpstream fleet")).to_have_count(0)
    finally:
        fleet.terminate()
        fleet.wait(60)


def test_a_stream_whose_fleet_has_gone_is_silent(
    page: Page, watched: Watched, scene: Scene
) -> None:
    open_stream(page, scene, "left")
    with Crowd(scene, "left").reporting():
        expect(page.locator(".pill").first).to_have_text("live")
        expect(page.locator(".next")).to_be_hidden()
    expect(page.locator(".pill").first).to_have_text("silent")
    expect(page.locator(".next")).to_contain_text("no report has come for")
    expect(page.locator(".next")).to_contain_text("Check whether devices are running")
