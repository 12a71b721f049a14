"""Numbers as people read them."""

from __future__ import annotations


def readable(number: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits; from 1,000 on, whole, in groups of three.

    >>> readable(2160.4), readable(87.214), readable(0.0075132), readable(1e5)
    ('2,160', '87.2', '0.00751', '100,000')
    """
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.{digits}g}"
