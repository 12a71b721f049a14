"""User-level privacy over a finite horizon, for users who change at most k times.

Erlingsson et al., "Amplification by shuffling", SODA 2019, section 5. Each user draws one level h
and one of its k changes. At each multiple of 2^h it says, with randomised response at epsilon/2,
which way that change went if it lies in the last 2^h timestamps, and a fair coin else. All reports
of a user cost epsilon together. What is held at t is the sum over the dyadic cover of 1 .. t.
"""

from __future__ import annotations

from math import exp

import numpy as np

from ldpstream.arrays import Counts, Floats
from tests.lab.promises.persistent_ranking import PersistentRanking


def dyadic_releases(
    users: PersistentRanking, epsilon: float, changes: int, rng: np.random.Generator
) -> Floats:
    """Return the estimated share of label 1 at each timestamp; the horizon is the stream's end."""
    levels = users.timestamps.bit_length()  # of blocks of 1, 2, 4, ... that fit into the horizon
    level = rng.integers(levels, size=users.users)
    when, sign = _kept_changes(users, rng.integers(1, changes + 1, size=users.users))
    truthful = exp(epsilon / 2) / (1 + exp(epsilon / 2))
    scale = changes * levels / (2 * truthful - 1) / users.users
    blocks: dict[tuple[int, int], float] = {}
    for height in range(levels):
        length = 1 << height
        own = level == height
        for end in range(length, users.timestamps + 1, length):
            said = _said(when[own], sign[own], end - length, end, truthful, rng)
            blocks[height, end] = scale * said
    return np.array([_sum_up(blocks, t) for t in range(1, users.timestamps + 1)])


def _kept_changes(users: PersistentRanking, chosen: Counts) -> tuple[Floats, Floats]:
    """Return when the chosen change of each user happens, 0 if it never does, and its sign."""
    number, when, sign = (np.zeros(users.users) for _ in range(3))
    for t in range(1, users.timestamps + 1):
        step = users.holds(t).astype(np.float64) - users.holds(t - 1)
        number += step != 0
        kept = (step != 0) & (number == chosen)
        when[kept], sign[kept] = t, step[kept]
    return when, sign


def _said(
    when: Floats, sign: Floats, begin: int, end: int, truthful: float, rng: np.random.Generator
) -> float:
    """Return the sum of the reports of one block."""
    inside = (begin < when) & (when <= end)
    honest = np.where(rng.random(inside.sum()) < truthful, 1.0, -1.0)
    coins = int((~inside).sum())
    return float((sign[inside] * honest).sum() + 2 * rng.binomial(coins, 0.5) - coins)


def _sum_up(blocks: dict[tuple[int, int], float], t: int) -> float:
    total = 0.0
    while t:
        height = (t & -t).bit_length() - 1
        total += blocks[height, t]
        t -= 1 << height
    return total
