from __future__ import annotations

from ldpstream.oracles.unary_lab import UnaryLab


class Lab(UnaryLab):
    """Draws 64 bits of a report at a time."""
