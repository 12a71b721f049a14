"""Arrays as JSON: base64 of their bytes, so that they restore exactly."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ldpstream.arrays import Floats

KINDS = {"float32": "<f4", "float64": "<f8"}


def pack(array: Floats) -> dict[str, Any]:
    """Return the shape and the bytes of an array, in single precision if that is exact.

    >>> unpack(pack(np.array([0.1, 0.5]))).tolist()
    [0.1, 0.5]
    >>> list(pack(np.array([0.5])))
    ['shape', 'float32']
    """
    narrow = array.astype("<f4")
    exact = bool((narrow == array).all())
    data = np.ascontiguousarray(narrow if exact else array, "<f4" if exact else "<f8").tobytes()
    kind = "float32" if exact else "float64"
    return {"shape": list(array.shape), kind: base64.b64encode(data).decode("ascii")}


def unpack(saved: dict[str, Any]) -> Floats:
    kind = "float32" if "float32" in saved else "float64"
    data = np.frombuffer(base64.b64decode(saved[kind]), KINDS[kind])
    return data.reshape(saved["shape"]).astype(np.float64)


def rounded(array: Floats) -> Floats:
    """Return an array in single precision, which is enough for a state and halves what is saved."""
    return array.astype(np.float32).astype(np.float64)
