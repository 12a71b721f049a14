"""What a report was made with: the version, the commit, and the code itself."""

from __future__ import annotations

import json
import subprocess  # nosec B404
from functools import cache
from importlib import metadata
from pathlib import Path

from ldpstream import __version__
from ldpstream.lab import fingerprint

PACKAGE = Path(__file__).parents[1]
SHORT = 12
"""Digits of a hash that is shown to people."""


def made_with() -> str:
    """Return what to write into a report, such as "ldpstream 0.3.0, commit 1a2b3c, code 4d5e6f".

    The last is a hash of all code that figures depend on, which is there without Git, too.
    """
    known = commit()
    parts = (f"ldpstream {__version__}", known and f"commit {known}", f"code {_code()}")
    return ", ".join(filter(None, parts))


@cache
def commit() -> str | None:
    """Return the commit that this package was installed from, or is run from; None if unknown."""
    return _installed_from() or _checked_out()


def _installed_from() -> str | None:
    """Return the commit that pip has noted (PEP 610), if it installed from a repository."""
    try:
        noted = metadata.distribution("ldpstream").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    told = json.loads(noted) if noted else {}
    found = told.get("vcs_info", {}).get("commit_id")
    return str(found)[:SHORT] if found else None


def _checked_out() -> str | None:
    """Return the commit of the working copy that holds this file, and whether it was changed."""
    if _git("ls-files", "--error-unmatch", Path(__file__).name, at=Path(__file__).parent) is None:
        return None  # not this package's repository, but one around its installation
    head = _git("rev-parse", f"--short={SHORT}", "HEAD", at=PACKAGE)
    changed = _git("status", "--porcelain", "--", ".", at=PACKAGE)
    return f"{head} with changes" if head and changed else head


def _git(*words: str, at: Path) -> str | None:
    command = ["git", "-C", str(at), *words]
    try:
        run = subprocess.run(  # nosec B603 # noqa: S603 - fixed words, no shell
            command, capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.strip() if run.returncode == 0 else None


def _code() -> str:
    return fingerprint.of_package()[:SHORT]
