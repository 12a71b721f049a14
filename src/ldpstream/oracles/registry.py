"""The oracles by name, and their halves, imported when first asked for."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ldpstream.errors import Mistake, Problem
from ldpstream.privacy.epsilon import Epsilon

if TYPE_CHECKING:
    from ldpstream.oracles.collector_half import CollectorHalf
    from ldpstream.oracles.device_half import DeviceHalf
    from ldpstream.oracles.lab_half import LabHalf


class Oracle(StrEnum):
    """The oracles by name; the value is the name of the folder.

    >>> Oracle.named("olh").device(128, Epsilon.of(1)).report_bytes
    10
    """

    GRR = "grr"
    SUE = "sue"
    OUE = "oue"
    BLH = "blh"
    OLH = "olh"
    SUBSET = "subset"
    HADAMARD = "hadamard"

    @classmethod
    def named(cls, name: str) -> Oracle:
        try:
            return cls(name.lower())
        except ValueError:
            raise Mistake(Problem.ORACLE_UNKNOWN, given=name, known=", ".join(cls)) from None

    def device(self, labels: int, epsilon: Epsilon) -> DeviceHalf[Any]:
        return _device(self, labels, epsilon)

    def collector(self, labels: int, epsilon: Epsilon) -> CollectorHalf:
        return _collector(self, labels, epsilon)

    def lab(self, labels: int, epsilon: Epsilon) -> LabHalf:
        return _lab(self, labels, epsilon)


# The halves hold no state, and budget division asks for the same few again and again.
@lru_cache(maxsize=1024)
def _device(oracle: Oracle, labels: int, epsilon: Epsilon) -> DeviceHalf[Any]:
    return cast("DeviceHalf[Any]", _module(oracle, "device").Device(labels, epsilon))


@lru_cache(maxsize=1024)
def _collector(oracle: Oracle, labels: int, epsilon: Epsilon) -> CollectorHalf:
    half = _module(oracle, "collector").Collector(oracle.device(labels, epsilon))
    return cast("CollectorHalf", half)


@lru_cache(maxsize=1024)
def _lab(oracle: Oracle, labels: int, epsilon: Epsilon) -> LabHalf:
    return cast("LabHalf", _module(oracle, "lab").Lab(oracle.device(labels, epsilon)))


def _module(oracle: Oracle, half: str) -> Any:
    return import_module(f"ldpstream.oracles.{oracle.value}.{half}")
