"""Errors about a file that cannot be used: which file, what is wrong, what to do."""

from __future__ import annotations

from pathlib import Path

from ldpstream.errors import Mistake, Problem


def bad_file(file: Path, what: str, fix: str) -> Mistake:
    return Mistake(Problem.DATA_FILE, file=file, what=what, fix=fix)


def unreadable(file: Path, error: OSError | UnicodeDecodeError, fix: str) -> Mistake:
    return bad_file(file, getattr(error, "strerror", None) or "not a text file", fix)
