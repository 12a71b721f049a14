"""Pages whose sections are written by commands, and tables for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

TRUST = Path(__file__).parents[1] / "docs" / "trust.md"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table with figures aligned to the right."""
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines)


def sections_of(page: Path, name: str) -> str:
    """Return the sections of a page whose names begin so, with their markers."""
    marked = rf"<!-- ({name}[\w-]*): begin -->.*?<!-- \1: end -->"
    return "\n\n".join(found[0] for found in re.finditer(marked, page.read_text(), re.DOTALL))
