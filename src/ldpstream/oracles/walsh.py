"""The fast Walsh-Hadamard transform."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def walsh(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum over y of numbers[y] * (-1)^(bits in r & y) for every r, in O(K log K).

    >>> walsh(np.array([1, 2, 3, 4])).tolist()
    [10, -2, -4, 0]
    """
    transformed = numbers.reshape(1, -1)
    while transformed.shape[1] > 1:
        pairs = transformed.reshape(len(transformed), -1, 2)
        even, odd = pairs[:, :, 0], pairs[:, :, 1]
        transformed = np.concatenate([even + odd, even - odd])
    return transformed[:, 0]
