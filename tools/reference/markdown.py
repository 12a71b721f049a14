"""Pieces of Markdown that the generated pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell(text: object) -> str:
    """Return a text as it can stand in a table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def code(text: object) -> str:
    """Return a text as code, or nothing for nothing."""
    return f"`{text}`" if str(text) else ""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a head."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell(one) for one in line)} |" for line in lines) + "\n"


def block(language: str, text: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"
