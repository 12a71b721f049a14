"""The registry of oracles by name, with their halves, which are imported on first use."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ldpstream.oracles.named import Named
from ldpstream.privacy.epsilon import Epsilon

if TYPE_CHECKING:
    from ldpstream.oracles.collector_half import CollectorHalf
    from ldpstream.oracles.device_half import DeviceHalf
    from ldpstream.oracles.lab_half import LabHalf


class Oracle(Named):
    """The oracles by name, each with its folder and the name of its device half there.

    Those of one family share a folder: they differ in the device half alone.

    >>> Oracle.named("olh").device(128, Epsilon.of(1)).report_bytes
    10
    """

    folder: str
    device_class: str

    GRR = "grr", "grr", "Device"
    SUE = "sue", "unary", "SueDevice"
    OUE = "oue", "unary", "OueDevice"
    BLH = "blh", "local_hash", "BlhDevice"
    OLH = "olh", "local_hash", "OlhDevice"
    SUBSET = "subset", "subset", "Device"
    HADAMARD = "hadamard", "hadamard", "Device"

    # The defaults are for type checkers, which take a look-up, Oracle("grr"), for a call of this.
    def __new__(cls, name: str, folder: str = "", device_class: str = "") -> Oracle:
        oracle = str.__new__(cls, name)
        oracle._value_ = name
        oracle.folder, oracle.device_class = folder, device_class
        return oracle

    def device(self, labels: int, epsilon: Epsilon) -> DeviceHalf[Any]:
        return _device(self, labels, epsilon)

    def collector(self, labels: int, epsilon: Epsilon) -> CollectorHalf:
        return _collector(self, labels, epsilon)

    def lab(self, labels: int, epsilon: Epsilon) -> LabHalf:
        return _lab(self, labels, epsilon)


# Halves are stateless, and budget division asks for the same few again and again: cache them.
@lru_cache(maxsize=1024)
def _device(oracle: Oracle, labels: int, epsilon: Epsilon) -> DeviceHalf[Any]:
    half = getattr(_module(oracle, "device"), oracle.device_class)(labels, epsilon)
    return cast("DeviceHalf[Any]", half)


@lru_cache(maxsize=1024)
def _collector(oracle: Oracle, labels: int, epsilon: Epsilon) -> CollectorHalf:
    half = _module(oracle, "collector").Collector(oracle.device(labels, epsilon))
    return cast("CollectorHalf", half)


@lru_cache(maxsize=1024)
def _lab(oracle: Oracle, labels: int, epsilon: Epsilon) -> LabHalf:
    return cast("LabHalf", _module(oracle, "lab").Lab(oracle.device(labels, epsilon)))


def _module(oracle: Oracle, half: str) -> Any:
    return import_module(f"ldpstream.oracles.{oracle.folder}.{half}")
