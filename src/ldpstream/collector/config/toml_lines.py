"""The line number of a key in a TOML file, which the standard library's parser does not give."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Keys from the root; an array of tables is followed by the position in it."""

_HEADER = re.compile(r"\s*\[(\[?)\s*([^\[\]]+?)\s*\]?\]\s*(#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_\-]+|\"[^\"]*\"|'[^']*')\s*(?:=|\.)")


def line_of(text: str, path: Path) -> int:
    r"""Return the line, from 1, of what `path` names, or of the nearest table around it.

    It scans for headers and keys and knows no more of the syntax: good enough to point at a line.

    >>> line_of('[[stream]]\nname = "a"\n\n[[stream]]\nname = "b"\n', ("stream", 1, "name"))
    5
    """
    found = _lines_of_keys(text)
    while path not in found:
        path = path[:-1]
    return found[path]


@lru_cache(maxsize=1)  # of a file with many streams, all keys are looked up
def _lines_of_keys(text: str) -> dict[Path, int]:
    """Return the line of every table and key."""
    found: dict[Path, int] = {(): 1}
    table: Path = ()
    seen: dict[Path, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _table(header, seen)
            for end in range(1, len(table) + 1):
                found.setdefault(table[:end], number)
        elif key := _KEY.match(line):
            found.setdefault((*table, key[1].strip("\"'")), number)
            for inline in re.findall(r"([A-Za-z0-9_\-]+)\s*=", line[key.end() :]):
                found.setdefault((*table, key[1].strip("\"'"), inline), number)
    return found


def _table(header: re.Match[str], seen: dict[Path, int]) -> Path:
    """The path that a header opens; [stream.x] belongs to the last of [[stream]]."""
    path: Path = ()
    parts = [part.strip().strip("\"'") for part in header[2].split(".")]
    for position, part in enumerate(parts):
        path = (*path, part)
        if header[1] and position == len(parts) - 1:
            seen[path] = seen.get(path, -1) + 1
        if path in seen:
            path = (*path, seen[path])
    return path
