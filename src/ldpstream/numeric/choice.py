"""Which randomiser to use for a mean."""

from __future__ import annotations

from fractions import Fraction

from ldpstream.numeric.registry import Numeric
from ldpstream.privacy.epsilon import Epsilon

TIE = Fraction(1, 10**9)
"""Relative difference of variance that counts as none: far below anything that can be observed."""


def choose_mean(levels: int, epsilon: Epsilon) -> Numeric:
    """The one whose worst value errs least; of those that tie, the one with the smallest report.

    Duchi's bit up to epsilon 0.61, the hybrid above. By the worst value because nothing is known
    of the stream beforehand; where values are known to keep to the middle of the range, piecewise
    has up to a third less variance there. Device and collector come to the same answer, since it
    depends on exact fractions only.

    >>> choose_mean(1025, Epsilon.of("0.5")).value, choose_mean(1025, Epsilon.of(1)).value
    ('duchi', 'hybrid')
    """
    devices = {numeric: numeric.device(levels, epsilon) for numeric in Numeric}
    least = min(device.worst_noise for device in devices.values())
    best = [one for one in Numeric if devices[one].worst_noise <= least * (1 + TIE)]
    return min(best, key=lambda one: devices[one].report_bytes)
