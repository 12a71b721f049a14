"""Arrays as JSON: base64 of their bytes, so that they restore exactly."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ldpstream.arrays import Floats


def pack(array: Floats) -> dict[str, Any]:
    """Return the shape and the bytes of an array.

    >>> unpack(pack(np.array([0.1, 0.2]))).tolist()
    [0.1, 0.2]
    """
    data = base64.b64encode(np.ascontiguousarray(array, "<f8").tobytes()).decode("ascii")
    return {"shape": list(array.shape), "float64": data}


def unpack(saved: dict[str, Any]) -> Floats:
    data = base64.b64decode(saved["float64"])
    return np.frombuffer(data, "<f8").reshape(saved["shape"]).astype(np.float64)
