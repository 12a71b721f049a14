"""Where prepared streams live, and how a folder comes into being whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def home() -> Path:
    """`$LDPSTREAM_HOME`, or `ldpstream` in the user's cache folder."""
    if given := os.environ.get("LDPSTREAM_HOME"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ldpstream"


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into, which takes the name `folder` when the block ends without an error.

    Whatever had that name before is replaced. It is readable by its owner only: it is about people.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield fresh
        if folder.exists():
            folder.rename(fresh.with_name(f"{fresh.name}.old"))
        fresh.rename(folder)
    finally:
        for leftover in (fresh, fresh.with_name(f"{fresh.name}.old")):
            shutil.rmtree(leftover, ignore_errors=True)


def fingerprint(files: Iterable[Path], *facts: object) -> str:
    """A key of what the files hold and of how they are read: not of their names or dates."""
    digest = hashlib.blake2b(repr(facts).encode(), digest_size=16)
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()
