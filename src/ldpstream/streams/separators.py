"""The character between the cells of a text file, as its first line tells."""

from __future__ import annotations

import gzip
from pathlib import Path

FIRST_LINE = 1 << 16
"""The bytes of a file in which its first line is looked for."""


def separator_of(line: str) -> str:
    r"""Return the tab if there is one; otherwise the semicolon, unless there are commas.

    >>> separator_of("a\tb, c"), separator_of("a;b"), separator_of("a;b,c")
    ('\t', ';', ',')
    """
    if "\t" in line:
        return "\t"
    return ";" if ";" in line and "," not in line else ","


def separator_in(path: Path) -> str:
    """Return the separator of a file, which may be compressed."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            first = file.read(FIRST_LINE).partition(b"\n")[0]
    except (OSError, EOFError):
        return ","  # whoever reads the file says what is wrong with it
    return separator_of(first.decode(errors="replace"))
