"""The page for participants in a real browser, against a real collector."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from playwright.sync_api import Browser, Page, expect

import ldpstream.collector.page
from ldpstream.collector.reports.verdicts import Verdict
from ldpstream.device import Device
from ldpstream.errors import Problem
from ldpstream.oracles import Oracle
from ldpstream.protocol.terms import Terms
from tests.page.conftest import Watched
from tests.page.scene import ADMIN, ENROLMENT, XSS, Scene, stream_table
from tests.page.test_page import AXE

PAGE = Path(*ldpstream.collector.page.__path__)
NOTICE = {
    "who": XSS,
    "why": "To see how full the quays are",
    "contact": "harbour@example.org",
    "retention": "Reports for a day, figures for good.",
}
LEVEL = '[[stream.level]]\nname = "careful"\nepsilon = 0.5\nwindow = 12\n'
SLOTS = {"mechanism": "lpu", "selection": "slots"}
LABELS = ["north", XSS, "west"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    streams = stream_table("quays", LABELS, notice=NOTICE, **SLOTS) + LEVEL
    for oracle in Oracle:
        streams += stream_table(f"of-{oracle}", LABELS, oracle=oracle.value, epsilon=8, **SLOTS)
    numbers = stream_table("depth", [], range=[0, 12], **SLOTS)
    streams += numbers.replace("labels = []\n", "")
    streams += stream_table("ward", ["calm", "busy"], public=False, **SLOTS)
    made = Scene(Path(tmp_path_factory.mktemp("privacy")), streams)
    with made.collector:
        yield made


def open_notice(page: Page, scene: Scene, stream: str) -> None:
    page.goto(f"{scene.url}/privacy/{stream}")
    page.wait_for_selector("main[data-shown]")


def test_it_tells_a_participant_everything(page: Page, watched: Watched, scene: Scene) -> None:
    open_notice(page, scene, "quays")
    main = page.locator("main")
    told = httpx.get(f"{scene.url}/privacy/quays").json()
    for text in (*NOTICE.values(), *LABELS, told["question"], told["leaving"], told["pin"]):
        expect(main).to_contain_text(text)
    for promise, report in zip(told["promises"], told["reports"], strict=True):
        expect(main).to_contain_text(promise["sentence"])
        expect(main).to_contain_text(report["how_often"])
    assert page.evaluate("window.pwned") is None
    headings = page.get_by_role("heading", level=2).all_text_contents()
    assert "This is what leaves" in headings
    assert len(headings) == 8


def test_the_card_of_the_dashboard_has_the_same_words_and_the_link(
    page: Page, watched: Watched, scene: Scene
) -> None:
    told = httpx.get(f"{scene.url}/privacy/quays").json()
    page.goto(f"{scene.url}/#/streams/quays")
    card = page.locator("section", has=page.get_by_role("heading", name="Privacy", exact=True))
    expect(card).to_contain_text(told["promises"][0]["sentence"])
    expect(card).to_contain_text(told["promises"][1]["summary"])
    page.get_by_role("link", name=re.compile("For participants")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text('Taking part in "quays"')


def test_the_card_has_words_for_every_reason_why_a_report_is_refused() -> None:
    script = (PAGE / "app" / "privacy.js").read_text()
    reasons = {verdict.refusal for verdict in Verdict} - {None}
    for reason in reasons | {Problem.UNAVAILABLE, Problem.TERMS_ENDED, Problem.ROUND_EARLY}:
        assert reason is not None
        assert re.search(rf'^  "?{reason.code}"?: "', script, re.MULTILINE), reason.code


@pytest.mark.parametrize("oracle", [*Oracle])
def test_what_leaves_is_a_report_that_the_collector_would_count_so(
    oracle: Oracle, page: Page, watched: Watched, scene: Scene
) -> None:
    stream = f"of-{oracle}"
    open_notice(page, scene, stream)
    terms = Terms.read(httpx.get(f"{scene.url}/privacy/{stream}").json()["terms"])
    collector = oracle.collector(len(LABELS), terms.epsilon)
    page.get_by_label("A value").select_option("west")
    for _ in range(8):
        page.get_by_role("button", name="Draw a report").click()
        wire = bytes.fromhex(page.locator("code.report").text_content() or "")
        support = collector.support(collector.decode([wire]))
        counted = [label for label, one in zip(LABELS, support.counts, strict=True) if one]
        said = ", ".join(counted) or "none of them"
        expect(page.locator("main")).to_contain_text(f"It speaks for {said}, of 3 values.")
        expect(page.locator("#announcer")).to_contain_text("This is what leaves")


def test_a_level_changes_what_leaves(page: Page, watched: Watched, scene: Scene) -> None:
    open_notice(page, scene, "quays")
    expect(page.locator("main")).to_contain_text("for ε 2.")
    page.get_by_label("Level of privacy").select_option("careful")
    page.get_by_role("button", name="Draw a report").click()
    expect(page.locator("main")).to_contain_text("for ε 0.5.")


def test_numbers_are_drawn_too(page: Page, watched: Watched, scene: Scene) -> None:
    open_notice(page, scene, "depth")
    page.get_by_label("A value").fill("3.5")
    page.get_by_role("button", name="Draw a report").click()
    size = httpx.get(f"{scene.url}/privacy/depth").json()["reports"][0]["bytes"]
    expect(page.locator("main")).to_contain_text(f"{size} bytes, for ε 2.")
    wire = bytes.fromhex(page.locator("code.report").text_content() or "")
    assert len(wire) == size


def test_a_private_stream_asks_for_its_token(page: Page, watched: Watched, scene: Scene) -> None:
    open_notice(page, scene, "ward")
    expect(page.locator("main")).not_to_contain_text("calm")
    page.get_by_label("Token", exact=True).fill(ADMIN)
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", level=1)).to_have_text('Taking part in "ward"')


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(scheme: str, chromium: Browser, scene: Scene) -> None:
    context = chromium.new_context(color_scheme=scheme, bypass_csp=True)  # type: ignore[arg-type]
    page = context.new_page()
    findings = []
    for stream in ("quays", "depth", "ward"):
        open_notice(page, scene, stream)
        page.evaluate(AXE.read_text())
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        findings += [f"{one['id']} ({one['impact']})" for one in found["violations"]]
    context.close()
    assert findings == []


def test_a_person_sees_what_their_own_device_gives_away(
    page: Page, scene: Scene, tmp_path: Path
) -> None:
    file = tmp_path / "device.ldp"
    with Device.create(file, first_install=True) as device:
        device.enrol(scene.url, "quays", ENROLMENT, level="careful")
        device.observe("north")
        while not device.poll(wait=5).delivered:
            pass

    def status(form: str) -> str:
        command = [sys.executable, "-m", "ldpstream.device", "status", str(file), form]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    said, entries = status("--html"), json.loads(status("--json"))["entries"]
    assert "http" not in said.replace(scene.url, ""), "it needs nothing from elsewhere"
    page.set_content(said)
    told = httpx.get(f"{scene.url}/privacy/quays").json()
    main = page.locator("main")
    for text in (told["promises"][1]["sentence"], told["pin"], "Epsilon 0 of 0.5 left", scene.url):
        expect(main).to_contain_text(text)
    expect(page.get_by_role("row")).to_have_count(1 + len(entries))
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [one["id"] for one in found["violations"]] == []
