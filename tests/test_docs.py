"""The pages of docs/: their links lead somewhere, and their code is code of this version.

`make verify` builds the site of them and runs the commands of the tutorial.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer

import ldpstream
import ldpstream.device
from ldpstream.cli.app import app
from tests.verify.pages import read_blocks

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "examples" / "README.md"]
GENERATED = ROOT / "docs" / "generated"
CODE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
NAMED_PAGE = re.compile(r"\bdocs/[a-z-]+\.md\b")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def anchors(page: Path) -> set[str]:
    """Return the names that links may have after #, as GitHub and MyST make them."""
    headings = HEADING.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", one) for one in headings)
    return {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in plain}


@each_page
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        parts = urlsplit(link)
        target = (page.parent / parts.path).resolve() if parts.path else page
        if parts.scheme or target.is_relative_to(GENERATED):  # made by the build, which checks it
            continue
        found = target.exists() and (not parts.fragment or parts.fragment in anchors(target))
        broken += [] if found else [link]
    assert broken == []


def test_pages_that_the_code_names_exist() -> None:
    files = [one for part in ("src", "tests", "benchmarks") for one in (ROOT / part).rglob("*.py")]
    named = {name for file in files for name in NAMED_PAGE.findall(file.read_text("utf-8"))}
    assert {name for name in named if not (ROOT / name).exists()} == set()


@each_page
def test_blocks_of_code_can_be_read(page: Path) -> None:
    for block in read_blocks(page):
        if block.language == "python" and ">>>" not in block.text:
            ast.parse(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)


def command_lines(page: Path) -> Iterator[list[str]]:
    """Yield the words of each `ldpstream` command of the shell blocks of a page."""
    for block in read_blocks(page):
        for line in block.text.replace("\\\n", " ").splitlines():
            command = line.removeprefix("$ ")
            if command.startswith("ldpstream ") and not command.startswith("ldpstream device"):
                yield shlex.split(command, comments=True)[1:]


@cache
def commands() -> Any:
    return typer.main.get_command(app)


def unknown_options(words: list[str]) -> list[str]:
    """Return what a command line says that no command knows."""
    command = commands()
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    given = (word.partition("=")[0] for word in words)
    return [word for word in given if word.startswith("--") and word not in known]


@each_page
def test_commands_have_the_options_that_a_page_gives_them(page: Path) -> None:
    assert [words for words in command_lines(page) if unknown_options(words)] == []


def test_commands_and_code_are_found() -> None:
    assert sum(1 for page in PAGES for _ in command_lines(page)) > 30
    assert sum(block.language == "python" for page in PAGES for block in read_blocks(page)) > 10


@pytest.mark.parametrize("module", [ldpstream, ldpstream.device], ids=lambda one: one.__name__)
def test_every_public_name_has_an_example(module: Any) -> None:
    def has_example(name: str) -> bool:
        found = getattr(module, name)
        members = vars(found).values() if inspect.isclass(found) else ()
        return any(">>>" in (inspect.getdoc(one) or "") for one in (found, *members))

    assert [name for name in module.__all__ if not has_example(name)] == []
