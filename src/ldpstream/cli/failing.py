"""How a command fails: in one line, with an exit status."""

from __future__ import annotations

import sys


def fail(line: str, status: int) -> int:
    """Print why on standard error, and return the exit status."""
    if line:  # nothing is left to say where the help was shown
        print(f"ldpstream: {line}", file=sys.stderr)
    return status
