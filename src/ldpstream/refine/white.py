"""White movement in hindsight: one variance for each label, from all of its residuals."""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.kin import SPREAD, relative
from ldpstream.refine.levels import log_density
from ldpstream.refine.movement import BOUND, KIN, WHITE, WHITE_PRIOR
from ldpstream.refine.weights import Classes, Weights

ROUNDS = 3
"""Times that labels learn from each other how much to move."""


def white_movement(
    measured: Floats, expected: Floats, spread: Floats, noise: Floats, classes: Classes
) -> Floats:
    """Return the variance of each label's white movement.

    Rows are timestamps with a tally: what was measured, what all other tallies say of it with
    variance `spread`, and the tally's own variance, `noise`.
    """
    scale, labels = float(noise.mean()), measured.shape[1]
    own = np.repeat(np.array(WHITE)[:, None] * scale, labels, axis=1)
    sizes = np.concatenate([own, np.outer(KIN, _lacking(measured, expected, spread, noise))])
    known = spread + noise
    weights = Weights(np.array(WHITE_PRIOR), labels)
    white: Floats = np.zeros(labels)
    for _ in range(ROUNDS):
        squares = np.minimum((measured - expected) ** 2, BOUND * (known + white))
        found = np.stack([log_density(squares, known + size).sum(axis=0) for size in sizes])
        weights.evidence = np.ones_like(sizes)
        weights.learn(found, classes)
        white = np.sum(weights.posterior * sizes, axis=0)
    return white


def _lacking(measured: Floats, expected: Floats, spread: Floats, noise: Floats) -> Floats:
    """Return the variance that the expectations lack, if labels move as the others do (`Kin`)."""
    usual = measured.mean(axis=0)
    size = relative(usual)
    if len(size) <= 2:
        return np.zeros_like(size)
    weights = (size / (noise.mean(axis=0) + SPREAD * size**2)) ** 2
    moved = np.mean((measured - usual) ** 2 - noise, axis=0)
    possible = float(np.sum(weights * size**2))
    alike = max(float(np.sum(weights * moved)) / possible, 0.0) if possible else 0.0
    followed = np.mean((expected - usual) ** 2 + spread, axis=0)
    lacking: Floats = np.maximum(alike * size**2 - followed, 0.0)
    return lacking
