"""Files that are written whole or not at all, whenever the process or the power ends."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

OWNER_ONLY = 0o600


def write_whole(path: Path, content: bytes, mode: int = OWNER_ONLY) -> None:
    """Write a file atomically and durably: a crash leaves the old file, none, or the new one.

    It is written under another name, synced, and renamed; a rename is durable once its folder is
    synced.

    >>> path = Path(tempfile.mkdtemp()) / "file"
    >>> write_whole(path, b"x")
    >>> path.read_bytes(), oct(path.stat().st_mode)
    (b'x', '0o100600')
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.chmod(name, mode)
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
