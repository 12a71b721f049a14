"""The page docs/trust.md, whose sections are written by commands, and tables for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

TRUST = Path(__file__).parents[1] / "docs" / "trust.md"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table with figures aligned to the right."""
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines)
