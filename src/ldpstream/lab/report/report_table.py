from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportTable:
    """A table, in whatever form it is written down."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
