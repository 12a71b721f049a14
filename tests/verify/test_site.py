"""The documentation site, as `make docs` builds it: complete, searchable offline, accessible."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import ldpstream
import ldpstream.device
from ldpstream.errors import Problem
from tests.page.browser import browser, executable
from tests.page.test_page import AXE
from tests.verify.environments import ROOT, run

BUILD = ROOT / "tools" / "docs.py"
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    run([sys.executable, str(BUILD), str(folder)], ROOT)
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if executable() is None:
        pytest.skip("there is no chromium; run: tools/system.sh")
    with browser() as opened:
        yield opened


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page of a browser that cannot reach any network."""
    context = chromium.new_context(offline=True)
    opened = context.new_page()
    yield opened
    context.close()


@pytest.mark.parametrize("part", ["tutorial", "howto", "reference", "explanation"])
def test_the_front_page_leads_to_each_part(part: str, page: Page, site: Path) -> None:
    page.goto((site / "index.html").as_uri())
    page.locator(f"article a[href='{part}.html']").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_the_reference_has_everything_that_is_public(site: Path) -> None:
    python = (site / "generated" / "python.html").read_text()
    for module in (ldpstream, ldpstream.device):
        assert [one for one in module.__all__ if f">{one}</span>" not in python] == []
    errors = (site / "generated" / "errors.html").read_text()
    assert [one.code for one in Problem if f">{one.code}<" not in errors] == []


def test_search_works_offline(page: Page, site: Path) -> None:
    page.goto((site / "search.html").as_uri() + "?q=absorption")
    expect(page.locator("#search-results li a").first).to_be_visible(timeout=30_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", "tutorial", "generated/python", "generated/errors"])
def test_axe_finds_nothing_serious(name: str, scheme: str, chromium: Browser, site: Path) -> None:
    context = chromium.new_context(color_scheme=scheme, offline=True)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto((site / f"{name}.html").as_uri())
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    context.close()
    assert [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in SERIOUS
    ] == []


def test_a_broken_link_fails_the_build(site: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<a href='gone.html'>x</a> <a href='#no'>y</a>")
    (tmp_path / "other.html").write_text("<a id='here'></a> <a href='other.html#here'>z</a>")
    program = "import sys, pathlib, docs; print(docs.broken_links(pathlib.Path(sys.argv[1])))"
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, cwd=BUILD.parent, capture_output=True, text=True, check=True)
    assert done.stdout == "['index.html: #no', 'index.html: gone.html']\n"
