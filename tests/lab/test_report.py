"""Reports: one valid file with everything in it, and never half of one."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ldpstream.domain import Domain
from ldpstream.lab.comparison import Comparison
from ldpstream.lab.files import write_whole
from ldpstream.lab.recommendation import recommend
from ldpstream.lab.report.comparison import write_comparison
from ldpstream.lab.report.markdown import write_markdown
from ldpstream.lab.report.reproduction import write_exhibits, write_report
from ldpstream.lab.reproduction.run import NAMES, Reproduction, Timing
from ldpstream.streams.stream import CountsStream
from ldpstream.streams.synthetic import sin
from tests.lab.ideal import exhibits, turned_over
from tests.lab.reading_back import read_back

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Checks that tags nest, and collects ids, links and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href"):
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def result() -> Reproduction:
    timings = tuple(Timing(name, 10, 1.5, 3.0) for name in exhibits())
    return Reproduction(exhibits(), timings, (sin(users=100, timestamps=10),), repeats=3)


@pytest.fixture(scope="module")
def folder(result: Reproduction, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_exhibits(result, folder)
    write_report(result, folder, "ldpstream reproduce all --out <here>")
    return folder


def assert_self_contained(text: str) -> Page:
    page = Page(text)
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"https?:|//\w+\.|@import|<script|<link", text)
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links} <= set(page.ids)
    return page


def test_every_exhibit_has_its_three_files(result: Reproduction, folder: Path) -> None:
    for name in result.exhibits:
        for ending in ("csv", "png", "svg"):
            assert (folder / f"{name}.{ending}").stat().st_size > 100
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_the_report_is_one_valid_file(folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = assert_self_contained(text)
    assert page.text.count("does not hold here") == 0
    assert "reproduce all --out <here>" in page.text  # and so it was escaped
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert text.count("<svg") == len(NAMES)


def test_the_report_says_what_does_not_hold(result: Reproduction, tmp_path: Path) -> None:
    turned = {name: turned_over(exhibit) for name, exhibit in result.exhibits.items()}
    wrong = Reproduction({"fig-roc": turned["fig-roc"]}, (), result.streams, 3)
    write_exhibits(wrong, tmp_path)
    page = Page(write_report(wrong, tmp_path, "x").read_text(encoding="utf-8"))
    assert page.text.count("does not hold here") == 3
    assert "0 of 3 claims" in page.text


def test_equal_data_give_equal_files(result: Reproduction, folder: Path, tmp_path: Path) -> None:
    some = {name: result.exhibits[name] for name in ("table2", "fig-population")}
    write_exhibits(replace(result, exhibits=some), tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes()


def test_markdown_links_to_files_that_exist(result: Reproduction, folder: Path) -> None:
    page = folder.parent / "page.md"
    text = write_markdown(result, folder, "the command", page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) == 3 * len(result.exhibits)
    assert all((page.parent / link).is_file() for link in links)
    assert "```\nthe command\n```" in text


def test_a_comparison_is_one_valid_file(tmp_path: Path) -> None:
    table = sin(users=400, timestamps=30).table
    stream = CountsStream("<b>mine</b>", Domain.of(["<i>", "&"]), table)
    comparison = Comparison(stream, ("lpu", "lsp", "lba"), (1.0, 2.0), (5, 10), repeats=2)
    results = comparison.experiment().run()
    charts = comparison.charts(results.rows)
    advice = recommend(results.rows)
    path = write_comparison(stream, charts, results.summary(), advice, tmp_path, "compare")
    page = assert_self_contained(path.read_text(encoding="utf-8"))
    assert "Which mechanism for <b>mine</b>?" in page.text
    assert advice.sentences()[0] in page.text
    for chart in charts:
        text = (tmp_path / f"{chart.name}.csv").read_text()
        assert read_back(chart, text) == chart
    assert len((tmp_path / "comparison.csv").read_text().splitlines()) == 1 + 3 * 4


@pytest.mark.parametrize("moment", ["fdopen", "replace"])
@pytest.mark.parametrize("crash", [OSError, KeyboardInterrupt])
def test_a_crash_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, crash: type[BaseException]
) -> None:
    path = write_whole(tmp_path / "report.html", "old")

    def fall_over(*_: object) -> None:
        raise crash

    monkeypatch.setattr(os, moment, fall_over)
    with pytest.raises(crash):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
