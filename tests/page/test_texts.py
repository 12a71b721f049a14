"""A stream of texts on the page: each release has a list of its own, and a browser any text."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ldpstream.protocol.slots import group_of
from ldpstream.protocol.terms import Terms
from tests.page import pixels
from tests.page.conftest import Watched
from tests.page.pretended import KEY, Pretended, Told
from tests.page.scene import XSS
from tests.page.test_page import serious_faults, wait_until, wait_until_it_fits

PAST = 90
TURNED = "a\u202eb\nc"
LONG = "x" * 256


def texts(name: str, past: int, **given: Any) -> Told:
    """A stream that began so many timestamps ago."""
    terms: dict[str, Any] = {
        "version": 2,
        "stream": name,
        "query": "vocabulary",
        "salt": "0123456789abcdef",
    }
    terms |= {"bits": 20, "prefixes": [2, 4, 6], "epsilon_nano": 10**9, "window": 20}
    terms |= {"interval_ms": 60_000, "oracle": "hadamard", "selection": "slots"}
    terms |= {"deadline_ms": 54_000} | given
    start_ms = int(time.time() * 1000) - past * terms["interval_ms"]
    return Told(Terms.read(terms | {"start_ms": start_ms}))


def listing(told: Told, shares: dict[str, float]) -> None:
    left = 1 - sum(shares.values())
    rest = {"value": left, "low": left - 0.02, "high": left + 0.02}
    told.add(list(shares.values()), labels=list(shares), rest=rest)


@pytest.fixture(scope="module")
def pretended() -> Iterator[Pretended]:
    words, quiet = texts("words", PAST), texts("quiet", PAST)
    for t in range(1, PAST):
        shares = {"timeout": 0.2, XSS: 0.1, "E_CONN": 0.08, TURNED: 0.06, LONG: 0.05, "": 0.04}
        shares |= {f"error {n}": 0.01 - n / 10_000 for n in range(30)}
        if 30 <= t < 60:
            del shares["E_CONN"]
        listing(words, shares if t > 5 else {})
    listing(quiet, {})
    growing = texts("growing", 10)
    listing(growing, {"timeout": 0.2, "E_CONN": 0.1} | {f"error {n}": 0.01 for n in range(6)})
    soon = texts("soon", 10, interval_ms=500, deadline_ms=450, window=2)
    listing(soon, {"timeout": 0.2})
    with Pretended(words, quiet, growing, soon).serving() as serving:
        yield serving


def open_texts(page: Page, pretended: Pretended, name: str) -> None:
    page.goto(f"{pretended.url}/#/streams/{name}")
    page.wait_for_selector(".u-over")


def test_texts_are_listed_the_heaviest_first_and_then_the_rest(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    open_texts(page, pretended, "words")
    lines = page.locator(".bars tbody tr")
    expect(lines).to_have_count(24)
    names = page.locator(".bars tbody th").all_text_contents()
    assert names[:6] == ["timeout", XSS, "E_CONN", "a·b·c", LONG, "(no text)"]
    expect(lines.first).to_contain_text("20.0 %19.6 to 20.4")
    rest = page.locator(".bars tfoot")
    expect(rest).to_contain_text("all other texts")
    expect(rest).to_contain_text(re.compile(r"\d\d\.\d % *\d\d\.\d to \d\d\.\d"))
    expect(page.locator(".panel-now")).to_contain_text("and 12 more texts, in the API")
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img").count() == 0
    expect(page.get_by_role("heading", name="All labels")).to_have_count(0)
    for colours in ("light", "dark"):
        page.emulate_media(color_scheme=colours)
        assert serious_faults(page) == []
    wait_until_it_fits(page)


@pytest.mark.parametrize("width", [1280, 360])
def test_no_figures_of_texts_touch(
    page: Page, watched: Watched, pretended: Pretended, width: int
) -> None:
    pixels.record_texts(page.context)
    open_texts(page, pretended, "words")
    expect(page.locator(".bars tbody tr")).to_have_count(24)
    pixels.assert_figures_do_not_touch(page, width)


def test_a_text_has_a_gap_where_it_was_not_listed(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    open_texts(page, pretended, "words")
    expect(page.locator(".chip")).to_have_count(5)
    page.locator("summary").click()
    head = page.locator(".scroll thead th", has_text="E_CONN")
    column = 1 + int(head.evaluate("cell => cell.cellIndex"))
    cells = page.locator(f".scroll tbody td:nth-child({column})")
    expect(cells.first).to_contain_text("8.0 %")
    page.locator(".chart").focus()
    page.keyboard.press("Home")
    wait_until(page, "document.querySelector('main').dataset.range.startsWith('1 ')")
    for _ in range(3):  # from 300 timestamps to 40 or fewer
        page.keyboard.press("+")
    wait_until(page, "Number(document.querySelector('main').dataset.range.split(' ')[1]) < 60")
    expect(cells.first).to_contain_text("–")


def test_any_text_that_is_known_can_be_given_a_line(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    open_texts(page, pretended, "growing")
    box = page.get_by_label("Add a text to the lines")
    for name in ("error 5", "all other texts"):
        box.fill(name)
        box.press("Enter")
        expect(page.locator(".chip", has_text=name)).to_be_visible()
    pretended.push(
        "growing", [0.5], labels=["brand new"], rest={"value": 0.5, "low": 0.4, "high": 0.6}
    )
    expect(page.locator(".bars tbody tr")).to_have_count(1)
    expect(page.locator(".chip", has_text="error 5")).to_contain_text("–")
    expect(page.locator(".chip", has_text="all other texts")).to_contain_text("50.0 %")
    box.fill("brand new")
    box.press("Enter")
    expect(page.locator(".chip", has_text="brand new")).to_contain_text("50.0 %")


def test_without_a_text_it_says_how_texts_appear(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    open_texts(page, pretended, "quiet")
    now = page.locator(".panel-now")
    expect(now).to_contain_text("No text is listed yet")
    expect(now).to_contain_text("at most 8 bytes")
    expect(now).to_contain_text("all other texts")
    expect(page.locator(".chip")).to_have_count(0)
    page.goto(f"{pretended.url}/#/")
    card = page.locator(".stream-card", has_text="quiet")
    expect(card).to_contain_text("No text is listed yet.")
    expect(card).to_contain_text("any text")


def test_any_text_can_be_looked_up(page: Page, watched: Watched, pretended: Pretended) -> None:
    open_texts(page, pretended, "words")
    box = page.get_by_label("A text, whether or not it is listed")
    for text in ("a&b=c #?", XSS, LONG):
        box.fill(text)
        box.press("Enter")
        line = page.locator(".panel-lookup tbody tr").first
        expect(line.locator("th")).to_have_text(text)
        expect(line).to_contain_text("-0.1 %0.0 to 0.7")
    assert page.evaluate("window.pwned") is None

    wait_until_it_fits(page)
    assert serious_faults(page) == []


def test_a_browser_joins_with_a_text(page: Page, watched: Watched, pretended: Pretended) -> None:
    open_texts(page, pretended, "soon")
    field = page.locator("#join-value")
    expect(field).to_have_attribute("type", "text")
    field.fill("timeout")
    page.check("#join-first")
    page.get_by_role("button", name="Join").click()
    expect(page.locator(".log li.good").first).to_contain_text("(5 bytes)")
    told = pretended.streams["soon"]
    group = group_of(bytes.fromhex(KEY), told.terms.tags)
    assert {(len(one), one[-1]) for one in told.reports} == {(5, group)}
    page.get_by_role("button", name="Stop").click()


def test_participants_see_what_a_report_of_a_text_looks_like(
    page: Page, watched: Watched, pretended: Pretended
) -> None:
    page.goto(f"{pretended.url}/privacy/words")
    page.wait_for_selector("main[data-shown]")
    leaves = page.locator("section", has=page.get_by_role("heading", name="This is what leaves"))
    page.fill("#value", "Zürich")
    page.get_by_role("button", name="Draw a report").click()
    expect(leaves).to_contain_text(re.compile(r"5 bytes, for ε 1\. .* group .* of 8"))
    expect(leaves).to_contain_text("one of 1,048,575 buckets; yours became bucket")
    page.fill("#value", "")
    page.get_by_role("button", name="Draw a report").click()
    expect(leaves).to_contain_text("nothing became a bucket drawn at random")
    assert serious_faults(page) == []
