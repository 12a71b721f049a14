"""The registry of randomisers of numbers, with their halves, which are imported on first use."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ldpstream.oracles.named import Named
from ldpstream.privacy.epsilon import Epsilon

if TYPE_CHECKING:
    from ldpstream.numeric.collector_half import NumericCollector
    from ldpstream.numeric.device_half import NumericDevice
    from ldpstream.numeric.lab_half import NumericLab


class Numeric(Named):
    """The randomisers of numbers by name; the value is the name of the folder.

    >>> Numeric.named("duchi").device(1025, Epsilon.of(1)).report_bytes
    2
    """

    DUCHI = "duchi"
    PIECEWISE = "piecewise"
    HYBRID = "hybrid"
    SQUARE_WAVE = "square_wave"

    def device(self, levels: int, epsilon: Epsilon) -> NumericDevice:
        return cast("NumericDevice", _device(self, levels, epsilon))

    def collector(self, levels: int, epsilon: Epsilon) -> NumericCollector:
        return cast("NumericCollector", _served(self, "collector", levels, epsilon))

    def lab(self, levels: int, epsilon: Epsilon) -> NumericLab:
        return cast("NumericLab", _served(self, "lab", levels, epsilon))


# Halves are stateless, and budget division asks for the same few again and again: cache them.
@lru_cache(maxsize=1024)
def _device(numeric: Numeric, levels: int, epsilon: Epsilon) -> Any:
    return _module(numeric, "device").Device(levels, epsilon)


@lru_cache(maxsize=1024)
def _served(numeric: Numeric, half: str, levels: int, epsilon: Epsilon) -> Any:
    """Return the collector or the laboratory half for a device half."""
    return getattr(_module(numeric, half), half.capitalize())(_device(numeric, levels, epsilon))


def _module(numeric: Numeric, half: str) -> Any:
    return import_module(f"ldpstream.numeric.{numeric.value}.{half}")
