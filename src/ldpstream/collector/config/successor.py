"""The [stream.successor] section: how the terms of the file follow those in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ldpstream.collector.config.table import ConfigTable
from ldpstream.collector.config.toml_lines import line_of
from ldpstream.errors import Mistake, Problem


@dataclass(frozen=True)
class SuccessorConfig:
    """How the newest terms of a stream follow the last ones."""

    version: int
    rename: Mapping[str, str]
    """The new names of earlier labels; a label that is not named keeps its name."""
    overlap_ms: int | None
    """How long reports under the last terms are counted, or None for some windows."""
    file: Path
    line: int

    def refuse(self, what: str, fix: str) -> NoReturn:
        raise Mistake(Problem.CONFIG_FILE, file=self.file, line=self.line, what=what, fix=fix)


def read_successor(stream: ConfigTable, labels: tuple[str, ...] | None) -> SuccessorConfig | None:
    """Read the section of a stream, if it has one; `labels` is None in a stream of numbers."""
    if "successor" not in stream:
        return None
    table = stream.table("successor")
    rename = table.table("rename")
    if labels is None and "rename" in table:
        table.refuse("rename", "a stream of numbers has no labels to rename", "leave it out")
    for old in rename:
        new = rename.text(old)
        if labels is not None and new not in labels:
            fix = f"use one of: {', '.join(labels[:8])}"
            rename.refuse(old, f"{old!r} is renamed to {new!r}, which is not a label", fix)
        if labels is not None and old in labels:
            fix = "take it out of labels, or out of rename"
            rename.refuse(old, f"{old!r} is renamed, and still a label", fix)
    return SuccessorConfig(
        table.whole("version", least=2),
        {old: rename.text(old) for old in rename},
        table.duration("overlap") if "overlap" in table else None,
        table.file,
        line_of(table.text_of_file, table.place),
    )
