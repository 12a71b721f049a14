"""Notes about a file that could be read, and that its owner should know of."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

Tell = Callable[[str], None]
"""Called with a note, in one line."""


class DataWarning(UserWarning):
    """Something in the data was mended, left out or guessed."""


def warn(note: str) -> None:
    """Issue a note as a Python warning, at the line that called this package."""
    level, ours = 1, __name__.partition(".")[0]
    while sys._getframe(level).f_globals.get("__name__", "").partition(".")[0] == ours:
        level += 1
    warnings.warn(note, DataWarning, stacklevel=level + 1)
