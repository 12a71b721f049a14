"""The folder of prepared streams, and the atomic creation of folders."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def home() -> Path:
    """Return `$LDPSTREAM_HOME`, or `ldpstream` in the user's cache folder."""
    if given := os.environ.get("LDPSTREAM_HOME"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ldpstream"


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder to write into, which is renamed to `folder` if the block ends without error.

    An existing one is replaced, and stays if that fails. Only the owner can read it, since it holds
    data about people.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield fresh
        _put_in_place(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _put_in_place(fresh: Path, folder: Path) -> None:
    if not folder.exists():
        fresh.rename(folder)
        return
    old = fresh.with_name(f"{fresh.name}.old")
    folder.rename(old)
    try:
        fresh.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def fingerprint(files: Iterable[Path], *facts: object) -> str:
    """Return a hash of the files' content and of how they are read, not of names or dates."""
    digest = hashlib.blake2b(repr(facts).encode(), digest_size=16)
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()
