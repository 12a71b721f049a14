"""Atomic writes: a file is either complete or absent."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from ldpstream import whole_files

FOR_EVERYONE = 0o644


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file that everyone may read, atomically, and make its folder if there is none.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_whole(folder / "new" / "a.csv", "x").read_text()
    'x'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    whole_files.write_whole(path, data, FOR_EVERYONE)
    return path


def csv_text(columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    r"""Return a CSV whose numbers read back exactly.

    >>> csv_text(("x", "y"), [(0.1, None)])
    'x,y\n0.1,\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
