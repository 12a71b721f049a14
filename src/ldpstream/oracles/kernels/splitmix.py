"""The generator SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), with random access by index.

Draw k of a device is mix(start + k * GAMMA), whatever was drawn before it.
"""

from __future__ import annotations

import numpy as np

from ldpstream.compiled import compiled

GAMMA = np.uint64(0x9E3779B97F4A7C15)


@compiled()
def mix(state: np.uint64) -> np.uint64:
    """Apply the output function of SplitMix64."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled()
def start_of(seed: np.uint64, device: int) -> np.uint64:
    """Return the state from which the random numbers of one device start."""
    return mix(seed + np.uint64(device) * GAMMA)


@compiled()
def draw(start: np.uint64, index: int) -> np.uint64:
    """Return 64 random bits, the draw with this index."""
    return mix(start + np.uint64(index) * GAMMA)


@compiled()
def below(bits: np.uint64, bound: np.uint64) -> np.uint64:
    """Return a number below `bound` from the upper half of `bits`, uniform to within 2^-32."""
    return ((bits >> np.uint64(32)) * bound) >> np.uint64(32)
