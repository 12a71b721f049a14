"""Live statistics from a fleet of devices under w-event local differential privacy.

>>> import ldpstream
>>> stream = ldpstream.sin(users=20_000, timestamps=100)
>>> ldpstream.simulate(stream, "lpa", epsilon=1, window=10).mean("cfpu") < 0.1
True

Names are imported when they are first used: a device that needs only `ldpstream.device` never loads
NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldpstream.domain import Domain
    from ldpstream.lab.experiment import Experiment
    from ldpstream.lab.simulation import simulate
    from ldpstream.mechanisms.queries import DistributionQuery, MeanQuery
    from ldpstream.mechanisms.settings import RunOptions
    from ldpstream.oracles import Oracle
    from ldpstream.privacy.epsilon import Epsilon
    from ldpstream.streams.stream import CountsStream
    from ldpstream.streams.synthetic import constant, lns, log, meter, sin, step, zipf

__version__ = "0.3.0.dev0"

_HOMES = {
    "CountsStream": "ldpstream.streams.stream",
    "DistributionQuery": "ldpstream.mechanisms.queries",
    "Domain": "ldpstream.domain",
    "Epsilon": "ldpstream.privacy.epsilon",
    "Experiment": "ldpstream.lab.experiment",
    "MeanQuery": "ldpstream.mechanisms.queries",
    "Oracle": "ldpstream.oracles",
    "RunOptions": "ldpstream.mechanisms.settings",
    "constant": "ldpstream.streams.synthetic",
    "lns": "ldpstream.streams.synthetic",
    "log": "ldpstream.streams.synthetic",
    "meter": "ldpstream.streams.synthetic",
    "simulate": "ldpstream.lab.simulation",
    "sin": "ldpstream.streams.synthetic",
    "step": "ldpstream.streams.synthetic",
    "zipf": "ldpstream.streams.synthetic",
}

__all__ = [
    "CountsStream",
    "DistributionQuery",
    "Domain",
    "Epsilon",
    "Experiment",
    "MeanQuery",
    "Oracle",
    "RunOptions",
    "constant",
    "lns",
    "log",
    "meter",
    "simulate",
    "sin",
    "step",
    "zipf",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'ldpstream' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        from ldpstream.errors import Mistake, Problem
        from ldpstream.extras import extra_for

        extra = extra_for(error)
        if extra is None:
            raise
        raise Mistake(Problem.EXTRA_MISSING, what=f"ldpstream.{name}", extra=extra) from None
