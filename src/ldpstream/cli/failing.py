"""The report of a failed command: one line, and an exit status."""

from __future__ import annotations

import sys

from ldpstream.protocol.names import in_one_line


def fail(line: str, status: int) -> int:
    """Print the reason on standard error, and return the exit status."""
    if line:  # it is empty if the help was shown
        print(f"ldpstream: {in_one_line(line)}", file=sys.stderr)
    return status


def is_callers(status: int) -> bool:
    """Return whether a collector answers so to what the user gave, such as a name or a token."""
    return 400 <= status < 500 and status != 429
