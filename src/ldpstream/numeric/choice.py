"""The choice of the best randomiser for a mean."""

from __future__ import annotations

from fractions import Fraction

from ldpstream.numeric.registry import Numeric
from ldpstream.privacy.epsilon import Epsilon

TIE = Fraction(1, 10**9)
"""The relative difference of variance up to which they tie: far below what can be observed."""


def choose_mean(levels: int, epsilon: Epsilon) -> Numeric:
    """Return the randomiser with the least worst-case variance; among ties, the smallest report.

    That is Duchi's bit up to epsilon 0.61, and the hybrid above. The worst case counts because
    nothing is known of the stream beforehand; where values are known to stay in the middle of the
    range, piecewise has up to a third less variance there. Devices and collectors make the same
    choice, since it depends on exact fractions only.

    >>> choose_mean(1025, Epsilon.of("0.5")).value, choose_mean(1025, Epsilon.of(1)).value
    ('duchi', 'hybrid')
    """
    devices = {numeric: numeric.device(levels, epsilon) for numeric in Numeric}
    least = min(device.worst_noise for device in devices.values())
    best = [one for one in Numeric if devices[one].worst_noise <= least * (1 + TIE)]
    return min(best, key=lambda one: devices[one].report_bytes)
