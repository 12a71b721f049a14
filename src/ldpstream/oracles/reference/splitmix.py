from __future__ import annotations

from typing import Any

import numpy as np

from ldpstream.arrays import Words

GAMMA = np.uint64(0x9E3779B97F4A7C15)


def mix(state: Words) -> Words:
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def starts_of(seed: np.uint64, start: int, stop: int) -> Words:
    return mix(np.arange(start, stop, dtype=np.uint64) * GAMMA + seed)


def draw(starts: Words, index: int) -> Words:
    # The product is meant to wrap; Python integers do that without NumPy's warning for scalars.
    return mix(starts + np.uint64(index * int(GAMMA) % (1 << 64)))


def below(bits: Words, bound: Any) -> Words:
    return ((bits >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)
