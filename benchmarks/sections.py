"""Pages whose sections are written by commands, and tables for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ldpstream.lab.files import write_whole

TRUST = Path(__file__).parents[1] / "docs" / "trust.md"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table with figures aligned to the right."""
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines)


def write_section(path: Path, name: str, text: str) -> Path:
    """Put `text` between the markers of one section of a page; the rest stays as it is."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    page = path.read_text()
    before, opening, rest = page.partition(begin)
    _, closing, after = rest.partition(end)
    if not opening or not closing:
        raise ValueError(f"{path} has no section between {begin} and {end}")
    return write_whole(path, f"{before}{begin}\n{text}\n{end}{after}")


def sections_of(page: Path, name: str) -> str:
    """Return the sections of a page whose names begin so, with their markers."""
    marked = rf"<!-- ({name}[\w-]*): begin -->.*?<!-- \1: end -->"
    return "\n\n".join(found[0] for found in re.finditer(marked, page.read_text(), re.DOTALL))
