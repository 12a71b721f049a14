"""Figures by public attributes on the page: groups are compared, and each is shown alone."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ldpstream.protocol.terms import Terms
from tests.page import pixels
from tests.page.conftest import Watched
from tests.page.pretended import Pretended, Told, figures
from tests.page.scene import Scene, stream_table
from tests.page.test_page import open_stream, serious_faults, wait_until_it_fits

ATTRIBUTES = [
    {"name": "country", "values": ["de", "fr", "it"]},
    {"name": "firmware", "values": [f"1.{minor}" for minor in range(10)]},
]
LABELS = ["connected", "standby", "error"]
COUNTRIES = {"de": 0.5, "fr": 0.3, "other": 0.2}
FLEET = [0.3, 0.6, 0.1]
PAST = 40
LAST_ALONE = 30
"""The last timestamp at which France is large enough to be shown by itself."""


def stream(name: str, **given: Any) -> Told:
    terms: dict[str, Any] = {"version": 3, "stream": name, "query": "histogram", "labels": LABELS}
    terms |= {"epsilon_nano": 10**9, "window": 20, "interval_ms": 60_000, "oracle": "grr"}
    terms |= {"selection": "slots", "deadline_ms": 54_000, "attributes": ATTRIBUTES} | given
    start_ms = int(time.time() * 1000) - PAST * terms["interval_ms"]
    return Told(Terms.read(_fitting(terms) | {"start_ms": start_ms}))


def _fitting(terms: dict[str, Any]) -> dict[str, Any]:
    unfit = () if terms["query"] == "histogram" else ("labels",)
    return {name: value for name, value in terms.items() if name not in unfit}


def group(attribute: str, value: str, share: float, values: list[float]) -> dict[str, Any]:
    told = {
        "attribute": attribute,
        "value": value,
        "share": share,
        "devices": round(96_000 * share),
    }
    return told | figures(values, 0.02 / math.sqrt(share))


def countries(t: int) -> list[dict[str, Any]]:
    """Return what each country holds: Germany has more errors, and France soon too few devices."""
    held = {"de": [0.2, 0.5, 0.3], "fr": [0.4, 0.55, 0.05], "other": [0.35, 0.6, 0.05]}
    shown = [group("country", value, COUNTRIES[value], held[value]) for value in COUNTRIES]
    small = ["it"] if t <= LAST_ALONE else ["fr", "it"]
    shown[-1]["merged"] = [*small, "other"]
    return [one for one in shown if one["value"] not in small]


def _alert(label: str, above: float, group: str | None) -> dict[str, Any]:
    rule = {"above": above, "for": "0ms"} | ({"group": group} if group else {})
    told = {"id": f"{label} {group}", "name": f"Errors in {group}", "kind": "above", "rule": rule}
    known = {"value": None, "probability": None, "since_ms": None, "state": "inactive"}
    return told | known | {"label": label}


@pytest.fixture(scope="module")
def pretended() -> Iterator[Pretended]:
    meters = stream("meters")
    minor = [f"1.{minor}" for minor in range(10)] + ["other"]
    for t in range(1, PAST + 1):
        firmwares = [
            group("firmware", value, (11 - at) / 66, [0.02 * at, 1 - 0.03 * at, 0.01 * at])
            for at, value in enumerate(minor)
        ]
        meters.add(FLEET, groups=countries(t) + firmwares)
    numbers = {"low": "0", "high": "5", "oracle": "square_wave"}
    meters.alerts += [_alert("error", 0.28, "country:de"), _alert("error", 0.12, None)]
    latency = stream("latency", query="distribution", bins=4, steps=255, **numbers)
    names = len(latency.terms.names) - 4
    parts = [group("country", "de", 1, [0.1, 0.2, 0.3, 0.4, *range(names)])]
    latency.add([0.4, 0.3, 0.2, 0.1, *([2.5] * names)], groups=parts)
    few = stream("few")
    few.add(FLEET, asked=40_000)
    with Pretended(meters, latency, few).serving() as serving:
        yield serving


def open_meters(page: Page, pretended: Pretended, name: str = "meters") -> None:
    page.goto(f"{pretended.url}/#/streams/{name}")
    page.wait_for_selector(".u-over")


def rows_of(page: Page) -> list[str]:
    """The rows of the table of groups, at one moment: a live page draws them anew."""
    texts = "row => [...row.children].map((cell) => cell.textContent).join(' ')"
    rows = page.locator(".groups tbody tr").evaluate_all(f"all => all.map({texts})")
    return [str(row) for row in rows]


def test_a_device_with_slots_reports_once_in_a_window_whatever_is_expected(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    """Not more often because a fleet that is followed has shrunk since."""
    open_meters(page, pretended, "few")
    expect(page.locator(".panel-privacy")).to_contain_text("about 72")  # 20 minutes each


def test_a_fleet_too_small_for_groups_is_told_so(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    open_meters(page, pretended, "few")
    expect(page.get_by_text("No group is large enough yet to have a figure.")).to_be_visible()
    open_meters(page, pretended)
    expect(page.get_by_text("No group is large enough yet")).to_have_count(0)


def test_groups_are_compared_in_lines_and_a_table(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    open_meters(page, pretended)
    expect(page.get_by_label("Figure of")).to_have_value("standby")  # the heaviest
    page.get_by_label("Figure of").select_option("error")
    expect(page.locator(".groups caption")).to_have_text(f"t {PAST}: error, by country")
    assert rows_of(page) == [
        "all devices 10.0 % 9.6 to 10.4 All 100.0 % 96,000",
        "de 30.0 % 27.2 to 32.8 Only 50.0 % 48,000",
        "other merged, too small alone: fr, it 5.0 % 0.5 to 9.5 Only 20.0 % 19,200",
    ]
    lines = page.locator(".panel-groups .chart")
    expect(lines).to_have_attribute(
        "aria-label", "Lines of the groups, timestamps 1 to 40. At the end: de 30.0 %, other 5.0 %"
    )
    page.locator(".panel-lines .chart").focus()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("+")
    page.keyboard.press("Home")
    expect(page.locator(".groups tbody")).to_contain_text("fr")
    assert [row.split()[0] for row in rows_of(page)] == ["all", "de", "fr", "other"]


def test_of_many_groups_the_largest_have_a_line(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    open_meters(page, pretended)
    page.get_by_label("Attribute").select_option("firmware")
    expect(page.locator(".groups tbody tr")).to_have_count(12)
    expect(page.locator(".panel-groups")).to_contain_text("The 8 largest groups have a line.")
    dots = page.locator(".groups .dot")
    coloured = dots.evaluate_all("all => all.filter((dot) => dot.style.background).length")
    assert coloured == 8
    for colours in ("light", "dark"):
        page.emulate_media(color_scheme=colours)
        assert serious_faults(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".panel-groups .chart")).to_be_visible()
    wait_until_it_fits(page)


@pytest.mark.parametrize("width", [1280, 360])
def test_no_figures_of_groups_touch(
    page: Page, watched: Watched, pretended: Pretended, width: int
) -> None:
    pixels.record_texts(page.context)
    open_meters(page, pretended)
    page.get_by_role("button", name="Show only country de on this page").click()
    expect(page.locator(".filter")).to_be_visible()
    pixels.assert_figures_do_not_touch(page, width)


def test_the_page_shows_one_group_until_all_are_asked_for(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    open_meters(page, pretended)
    now = page.locator(".bars tbody tr", has_text="error")
    expect(now).to_contain_text("10.0 %")
    threshold = now.locator(".limit")
    expect(threshold).to_have_attribute("title", "threshold 12.0 %")
    button = page.get_by_role("button", name="Show only country de on this page")
    button.focus()
    page.keyboard.press("Enter")
    expect(now).to_contain_text("30.0 %")
    expect(threshold).to_have_attribute("title", "threshold 28.0 %")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(button).to_be_focused()
    filtered = page.locator(".filter")
    expect(filtered).to_contain_text(
        "Only country de: 50.0 % of the reports, 48,000 devices heard."
    )
    expect(page.locator(".chip", has_text="error")).to_contain_text("30.0 %")
    assert "all devices 60.0 %" in rows_of(page)[0], "the groups stay"
    pretended.push("meters", FLEET, groups=[group("country", "de", 0.6, [0.25, 0.5, 0.25])])
    expect(now).to_contain_text("25.0 %")
    expect(filtered).to_contain_text("60.0 % of the reports")
    filtered.get_by_role("button", name="Show all devices").click()
    expect(now).to_contain_text("10.0 %")
    expect(filtered).to_be_hidden()


def test_a_group_that_became_too_small_leaves_a_gap(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    open_meters(page, pretended)
    page.locator(".panel-lines .chart").focus()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("+")
    page.keyboard.press("Home")
    page.get_by_role("button", name="Show only country fr on this page").click()
    expect(page.locator(".chip", has_text="error")).to_contain_text("5.0 %")
    page.keyboard.press("Escape")
    page.locator(".panel-lines .chart").focus()
    page.keyboard.press("Escape")
    expect(page.locator(".filter")).to_contain_text(
        'too small to be shown by itself at this time, and part of "other"'
    )
    expect(page.locator(".chip", has_text="error")).to_contain_text("–")


def test_the_distribution_is_that_of_the_group(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    open_meters(page, pretended, "latency")
    chart = page.locator(".distribution")
    bar = chart.locator(".bar").first
    whole = bar.bounding_box()
    page.get_by_role("button", name="Show only country de on this page").click()
    expect(chart).to_have_attribute("aria-label", re.compile("40.0 %"))
    part, frame = bar.bounding_box(), chart.bounding_box()
    assert whole is not None
    assert part is not None
    assert frame is not None
    assert part["height"] < whole["height"] / 2
    assert part["y"] + part["height"] == pytest.approx(frame["y"] + frame["height"], abs=1)


def test_participants_are_told_what_is_sent_beside_a_report(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    open_meters(page, pretended)
    privacy = page.locator(".panel-privacy")
    expect(privacy).to_contain_text(
        "Each report also states openly: country (de, fr, it, other); firmware (1.0,"
    )
    page.goto(f"{pretended.url}/privacy/meters")
    page.wait_for_selector("main[data-shown]")
    expect(page.locator("main")).to_contain_text("Every report says openly of its device: country")
    beside = page.locator("section", has=page.get_by_role("heading", name="What is sent beside it"))
    expect(beside).to_contain_text("de, fr, it")
    page.select_option("#attribute-country", "it")
    page.select_option("#attribute-firmware", "1.3")
    page.get_by_role("button", name="Draw a report").click()
    leaves = page.locator("section", has=page.get_by_role("heading", name="This is what leaves"))
    expect(leaves).to_contain_text("Its last byte states openly: country it, firmware 1.3.")
    tag = 2 * 11 + 3
    expect(leaves.locator(".report")).to_contain_text(f" {tag:02x}")
    assert serious_faults(page) == []


def test_a_browser_tells_its_attributes_and_its_number(
    page: Page, watched: Watched, tmp_path: Path
) -> None:
    table = stream_table(
        "pond",
        None,
        range=[0, 12],
        interval="500ms",
        window=2,
        mechanism="lpf",
        selection="slots",
        oracle="duchi",
        epsilon=20,
        public_enrolment=True,
    )
    scene = Scene(tmp_path, f'{table}[stream.attributes]\ncountry = ["de", "fr"]\n')
    with scene.collector:
        open_stream(page, scene, "pond")
        page.fill("#join-value", "12")
        page.select_option("#join-attribute-country", "fr")
        page.check("#join-first")
        page.get_by_role("button", name="Join").click()
        lines = page.locator(".log li.good")
        expect(lines.first).to_contain_text("sent 01 01 01 (3 bytes)")  # the number is the highest
        page.select_option("#join-attribute-country", "de")
        expect(lines.first).to_contain_text("sent 01 01 00 (3 bytes)")
        page.get_by_role("button", name="Stop").click()
