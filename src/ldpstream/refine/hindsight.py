"""The members of the smoother: what a stream may have been, seen from its end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ldpstream.refine.linear import SLOPE_VARIANCE, TREND_NOISES, Model, trend
from ldpstream.refine.seasons import Season, seasons

LEVEL_NOISES = (0.0, *np.logspace(-6, 3, 19).tolist())
"""Closer together than the filter's: in hindsight half a decade makes a difference."""
CURVE_NOISES = tuple(np.logspace(-11, -7, 9).tolist())
"""Variances of a curvature's change in one timestamp, in units of a tally's variance."""
CURVE_VARIANCE = 1e-6
"""Prior variance of a curvature, in the same units."""
STIFF = 1e-6
"""Noise of a season's shape that stays: only in hindsight can it be told from one that changes."""
STILL, LEVELS, TRENDS, CURVES = 0.12, 0.28, 0.2, 0.4
"""Prior weights: of a level that stands still, of others, of trends and of curves."""
SMOOTH = 0.75
"""The share of its variance that a trend or a curve has as an error.

The variance of a spline counts a bias that the truth would have if it were as rough as the member
allows; truths that trends and curves follow are smoother (Nychka 1988)."""


@dataclass(frozen=True)
class Member:
    """A model with its prior weight."""

    model: Model
    prior: float
    error: float = 1.0
    """The share of the model's variance that is error."""
    is_season: bool = False


def members(first: float | None, second: float | None) -> list[Member]:
    """Return all members for a stream with these periods."""
    found = [Member(level(0.0), STILL)]
    found += _family([level(noise) for noise in LEVEL_NOISES[1:]], LEVELS)
    found += _family([trend(noise) for noise in TREND_NOISES], TRENDS, error=SMOOTH)
    found += _family([curve(noise) for noise in CURVE_NOISES], CURVES, error=SMOOTH)
    for kind in seasons(first, second) if first is not None else ():
        found += _family(_shapes(kind), kind.prior, is_season=True)
    return found


def _family(
    models: list[Model], prior: float, *, error: float = 1.0, is_season: bool = False
) -> list[Member]:
    return [Member(model, prior / len(models), error, is_season) for model in models]


def _shapes(kind: Season) -> list[Model]:
    """Return a season with a shape that stays, and with one that changes."""
    models = kind.models()
    return [_stiff(model) for model in models[:2]] + models[1::2]


def _stiff(model: Model) -> Model:
    shape = np.arange(1, len(model.noise))
    noise = model.noise.copy()
    noise[shape, shape] = STIFF
    return replace(model, noise=noise)


def level(noise: float) -> Model:
    """A random walk."""
    return Model(np.eye(1), np.array([[noise]]), np.ones(1), np.empty(0))


def curve(noise: float) -> Model:
    """A level with a slope, whose own slope wanders: smoother than a trend."""
    return Model(
        transition=np.eye(3) + np.diag(np.ones(2), 1),
        noise=np.diag([0.0, 0.0, noise]),
        observation=np.array([1.0, 0.0, 0.0]),
        prior=np.array([SLOPE_VARIANCE, CURVE_VARIANCE]),
    )
