"""The array types that the whole package shares, each named for what it holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
"""Packed reports, device ids and MACs."""
Flags = NDArray[np.bool_]
"""Of each row, label or timestamp, whether something holds."""
Floats = NDArray[np.float64]
"""Frequencies, estimates, variances and other real numbers."""
Counts = NDArray[np.int64]
"""How many users or reports there are of each kind."""
UserIndexes = NDArray[np.uint32]
"""Indexes of users, 0 .. N-1."""
Words = NDArray[np.uint64]
"""Bitmaps and random draws, 64 bits at a time."""
Indexes = NDArray[np.int64]
"""Places in another array."""
