"""Intervals for figures that are shown because they were high."""

from __future__ import annotations

from math import erfc

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.intervals import LEVEL, Interval

HALVINGS = 50


def selected_interval(values: Floats, errors: Floats, least: Floats) -> Interval:
    """Return the interval of normal estimates, given that only those above `least` are shown.

    Of many texts those come to be shown whose noise was high, so the plain interval lies too high.
    This one has its level among the shown: its ends are the shares f at which an estimate this
    high, of those above `least`, has probability (1 - LEVEL) / 2 and (1 + LEVEL) / 2:

        Q((x - f) / s) / Q((c - f) / s),  Q(z) = Pr[a standard normal exceeds z].

    >>> low, high = selected_interval(np.array([0.5, 3.1]), np.ones(2), np.array([-9.0, 3.0]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.0, 0.0], [1.0, 1.0])
    >>> low, high = selected_interval(np.array([0.010]), np.array([0.001]), np.array([0.009]))
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0068], [0.0116])
    """
    tail = (1 - LEVEL) / 2
    return (
        _share_at(tail, values, errors, least),
        _share_at(1 - tail, values, errors, least),
    )


def shown_interval(values: Floats, errors: Floats, least: Floats) -> Interval:
    """Return the interval for readers: that of `selected_interval`, up to the figure itself.

    Of a figure within 0.07 standard errors above the level it lies below the figure altogether.

    >>> low, high = shown_interval(np.array([0.00902]), np.array([0.001]), np.array([0.009]))
    >>> low.round(4).tolist(), high.round(5).tolist()
    ([0.0], [0.00902])
    """
    low, high = selected_interval(values, errors, least)
    return np.minimum(low, values), np.maximum(high, values)


def selected_median(values: Floats, errors: Floats, least: Floats) -> Floats:
    """Return the shares that such estimates exceed as often as not, of those above `least`.

    >>> selected_median(np.array([0.010]), np.array([0.001]), np.array([0.009])).round(4).tolist()
    [0.0097]
    """
    return _share_at(0.5, values, errors, least)


def _share_at(probability: float, values: Floats, errors: Floats, least: Floats) -> Floats:
    """Return the shares in [0, 1] at which an estimate this high has this probability."""
    low, high = np.zeros(len(values)), np.ones(len(values))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        exceeded = _above((values - middle) / errors) / _above((least - middle) / errors)
        low = np.where(exceeded < probability, middle, low)
        high = np.where(exceeded < probability, high, middle)
    return high


def _above(scores: Floats) -> Floats:
    # Beyond 30 standard errors both tails would be 0, and their ratio nothing.
    return np.array([erfc(min(score, 30.0) / 2**0.5) / 2 for score in scores])
