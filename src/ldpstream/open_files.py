"""The limit on the files and connections that a process may have open."""

from __future__ import annotations

import resource

BESIDES = 200
"""Descriptors to allow beside the connections: files, pipes and what libraries open."""


def allow_connections(number: int) -> int:
    """Raise the limit of open files for that many; return for how many there is room.

    The usual limit of a shell is 1024.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = number + BESIDES
    if soft != resource.RLIM_INFINITY and soft < needed:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        return min(number, max(1, allowed - BESIDES))
    return number
