"""The memory that a mechanism of your own keeps from one timestamp to the next.

It is a frozen dataclass of plain values: numbers, texts, truth values and arrays of floats. What
`Mechanism.first_memory` returns is its first value and its pattern: whatever is saved or restored
must have the same fields, each of the same kind and shape.
"""

from __future__ import annotations

from dataclasses import fields, replace
from math import isfinite
from typing import Any

import numpy as np

from ldpstream.errors import Mistake, Problem

PLAIN = (bool, int, float, str)


def check_pattern(memory: Any) -> Any:
    """Return a first memory; refuse one that could not be saved or that could change unnoticed."""
    if memory is None:
        return None
    described: Any = getattr(memory, "__dataclass_params__", None)
    if described is None or isinstance(memory, type) or not described.frozen:
        raise TypeError(f"the memory of a mechanism is a frozen dataclass, not {memory!r}")
    for name, value in _values(memory).items():
        if type(value) not in PLAIN and not _is_array(value):
            raise TypeError(f"{name} of a mechanism's memory is {value!r}, which cannot be saved")
    return memory


def save_memory(memory: Any, pattern: Any) -> dict[str, Any]:
    """Return a memory as JSON; refuse one that could not be restored."""
    if type(memory) is not type(pattern):
        raise TypeError(f"the memory of a mechanism became {memory!r}, not {type(pattern)}")
    saved = {
        name: value.tolist() if _is_array(value) else value
        for name, value in _values(memory).items()
    }
    restore_memory(saved, pattern)
    return saved


def restore_memory(saved: Any, pattern: Any) -> Any:
    """Return the memory that `save_memory` saved; refuse anything that does not fit the pattern."""
    first = _values(pattern)
    if not isinstance(saved, dict) or saved.keys() != first.keys():
        names = sorted(saved) if isinstance(saved, dict) else saved
        raise _mismatch(f"a memory of {names}", f"one of {sorted(first)}")
    return replace(pattern, **{name: _fitting(name, saved[name], first[name]) for name in first})


def has_arrays(memory: Any) -> bool:
    """Return whether a memory has arrays, whose meaning depends on the labels."""
    return any(map(_is_array, _values(memory).values()))


def _fitting(name: str, saved: Any, first: Any) -> Any:
    """Return the saved value if it is of the same kind as the first one; refuse any other."""
    if _is_array(first):
        try:
            array = np.array(saved, np.float64)
        except (TypeError, ValueError):
            array = np.full(1, np.nan)
        if array.shape == first.shape and np.isfinite(array).all():
            return array
    elif type(first) is float:
        if type(saved) in (int, float) and isfinite(saved):
            return float(saved)
    elif type(saved) is type(first):
        return saved
    raise _mismatch(f"a memory with {name} {saved!r}", f"one with {name} like {first!r}")


def _values(memory: Any) -> dict[str, Any]:
    return {field.name: getattr(memory, field.name) for field in fields(memory)}


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64


def _mismatch(found: str, expected: str) -> Mistake:
    return Mistake(Problem.STATE_MISMATCH, found=found, expected=expected)
