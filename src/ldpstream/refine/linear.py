"""Linear models with more than a level: trends and seasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Flags, Floats
from ldpstream.refine.levels import log_density
from ldpstream.refine.newcomers import Newcomers
from ldpstream.refine.packing import rounded
from ldpstream.refine.relabelling import Relabelling

TREND_NOISES = (1e-6, 3.2e-6, 1e-5, 3.2e-5, 1e-4, 1e-3, 1e-2, 1e-1)
"""Variance of a slope's change in one timestamp, in units of a tally's variance.

Where noise dominates, half a decade makes a difference. Stiffer slopes do harm: they fit best for
as long as a curve is nearly straight, and then lag."""
SLOPE_VARIANCE = 3e-3
"""Prior variance of a slope, in the same units: a tally's standard error in some 20 timestamps."""
SEASON_NOISES = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0)
"""Process noises of the level that a season rides on."""
HARMONICS = 4
HARMONIC_NOISE = 1e-4
"""A season's shape changes slowly, and a few waves describe it only roughly."""
SHAPE_TO_LEVEL = 1 / 30
"""Where the level moves fast, so does the shape, if less: a stiff shape on a level that wanders
absorbs the wandering, and its variance is too small."""
HARMONIC_VARIANCE = 10.0


@dataclass(frozen=True)
class Model:
    """x' = F x + N(0, Q), y = H x + noise; Q and the prior variances in units of a tally's."""

    transition: Floats
    noise: Floats
    observation: Floats
    prior: Floats
    """Prior variances of the components after the level, which the filter knows better."""


def trend(slope_noise: float) -> Model:
    """A level with a slope that wanders: integrated white noise (Harvey 1989, section 4.5)."""
    return Model(
        transition=np.array([[1.0, 1.0], [0.0, 1.0]]),
        noise=slope_noise * np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]]),
        observation=np.array([1.0, 0.0]),
        prior=np.array([SLOPE_VARIANCE]),
    )


def season(level_noise: float, *cycles: tuple[float, int]) -> Model:
    """A level plus the waves of cycles: a period, in timestamps, and its number of harmonics
    (Harvey 1989, section 2.3.4).
    """
    waves = [(wave, 2 * np.pi * wave / period) for period, count in cycles for wave in _to(count)]
    size = 1 + 2 * len(waves)
    shape_noise = max(HARMONIC_NOISE, level_noise * SHAPE_TO_LEVEL)
    transition, noise, observation = np.eye(size), np.eye(size) * shape_noise, np.zeros(size)
    noise[0, 0] = level_noise
    observation[0] = 1.0
    prior = np.empty(size - 1)
    for place, (wave, angle) in enumerate(waves):
        rotation = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
        here = 2 * place + 1
        transition[here : here + 2, here : here + 2] = rotation
        observation[here] = 1.0
        prior[here - 1 : here + 1] = HARMONIC_VARIANCE / wave
    return Model(transition, noise, observation, prior)


def _to(count: int) -> range:
    return range(1, count + 1)


class LinearBank:
    """Kalman filters of several models of one size, for all labels at once.

    All labels are measured at the same times with nearly the same variance, so they share the
    covariances of a model: a label costs its mean vector only. Labels that came later have a
    variance of their own beside them, which fades (`Newcomers`).
    """

    def __init__(
        self, models: Sequence[Model], start: Floats, start_variance: float, scale: float
    ) -> None:
        self.set_models(models)
        size = self._observations.shape[1]
        self._states = np.zeros((len(models), size, len(start)))
        self._states[:, 0] = start
        self._covariances = np.zeros((len(models), size, size))
        self._covariances[:, 0, 0] = start_variance
        rest = np.arange(1, size)
        self._covariances[:, rest, rest] = [model.prior * scale for model in models]
        self._newcomers: Newcomers | None = None

    def set_models(self, models: Sequence[Model]) -> None:
        """Continue with other models of the same size from the same states."""
        self._transitions = np.stack([model.transition for model in models])
        self._noises = np.stack([model.noise for model in models])
        self._observations = np.stack([model.observation for model in models])
        one, other = np.arange(1, self._transitions.shape[1], 2), slice(2, None, 2)
        self._cosines = self._transitions[:, one, one, None]
        self._sines = self._transitions[:, 1::2, other].diagonal(axis1=1, axis2=2)[..., None]

    @property
    def means(self) -> Floats:
        means: Floats = np.einsum("mk,mkd->md", self._observations, self._states)
        return means

    @property
    def variances(self) -> Floats:
        shared = np.repeat(self._observed[:, None], self._states.shape[2], axis=1)
        if self._newcomers is None:
            return shared
        return shared + self._newcomers.variances(self._observations)

    @property
    def _observed(self) -> Floats:
        """The variance of each model's prediction, for labels that were there from the start."""
        observed: Floats = np.einsum(
            "mk,mkl,ml->m", self._observations, self._covariances, self._observations
        )
        return observed

    def predict(self, scale: float, timestamps: int = 1) -> None:
        if timestamps > 1:
            self._leap(scale, timestamps)
            return
        self._states = self._moved()
        turned = self._transitions @ self._covariances @ self._transitions.transpose(0, 2, 1)
        self._covariances = turned + self._noises * scale
        if self._newcomers is not None:
            self._newcomers.predict(self._transitions)

    def _leap(self, scale: float, timestamps: int) -> None:
        """Let many timestamps pass, by models of 1, 2, 4, ... of them."""
        turns, noises = self._transitions, self._noises * scale
        while timestamps:
            back = turns.transpose(0, 2, 1)
            if timestamps % 2:
                self._states = turns @ self._states
                self._covariances = turns @ self._covariances @ back + noises
                if self._newcomers is not None:
                    self._newcomers.predict(turns)
            turns, noises = turns @ turns, turns @ noises @ back + noises
            timestamps //= 2

    def _moved(self) -> Floats:
        """Return the states of the next timestamp.

        Waves turn two by two, which costs far less than a product with all of the transitions.
        """
        if self._states.shape[1] == 2:
            return self._transitions @ self._states
        one, other = self._states[:, 1::2], self._states[:, 2::2]
        moved = np.empty_like(self._states)
        moved[:, 0] = self._states[:, 0]
        moved[:, 1::2] = self._cosines * one + self._sines * other
        moved[:, 2::2] = self._cosines * other - self._sines * one
        return moved

    def update(self, measured: Floats, variance: Floats) -> Floats:
        error = measured - self.means
        direction = np.einsum("mkl,ml->mk", self._covariances, self._observations)
        certainty = np.einsum("mk,mk->m", direction, self._observations)
        gain = direction / (certainty + variance.mean())[:, None]
        spread, rest = certainty[:, None] + variance, error
        if self._newcomers is not None:
            late = self._newcomers.variances(self._observations)
            self._newcomers.update(gain, self._observations)
            rest = self._begin_where(late > spread, error, variance, self._newcomers)
            spread = spread + late
        self._states = rounded(self._states + gain[:, :, None] * rest[:, None, :])
        self._covariances = self._covariances - gain[:, :, None] * direction[:, None, :]
        if self._newcomers is not None and self._newcomers.forgotten(self._observed):
            self._newcomers = None
        return log_density(error**2, spread)

    def _begin_where(
        self, unknown: Flags, error: Floats, variance: Floats, newcomers: Newcomers
    ) -> Floats:
        """Set the levels of labels of which nothing is known to a tally; return other errors."""
        self._states[:, 0] += np.where(unknown, error, 0.0)
        newcomers.begin(unknown, variance, self._observations)
        return np.where(unknown, 0.0, error)

    def state(self) -> dict[str, Floats]:
        known = {"states": self._states, "covariances": self._covariances}
        if self._newcomers is None:
            return known
        return known | {"sizes": self._newcomers.sizes, "fading": self._newcomers.fading}

    def restore(self, state: dict[str, Floats]) -> None:
        self._states, self._covariances = state["states"], state["covariances"]
        self._newcomers = Newcomers(state["sizes"], state["fading"]) if "sizes" in state else None

    def relabel(self, move: Relabelling, start: float, start_variance: float) -> None:
        """Go on with other labels; a new one begins at `start`."""
        own = self.variances - self._observed[:, None]
        merged = np.maximum(move.parts - 1, 0) * self._observed[:, None]
        self._states = move.summed(self._states)
        self._states[:, 0, move.new] = start
        sizes = move.summed(own, start_variance) + merged
        self._newcomers = Newcomers.of(sizes, self._states.shape[1])
