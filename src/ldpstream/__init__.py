"""Live statistics from a fleet of devices under w-event local differential privacy.

>>> import ldpstream
>>> stream = ldpstream.sin(users=20_000, timestamps=100)
>>> ldpstream.simulate(stream, "lpa", epsilon=1, window=10).mean("cfpu") < 0.1
True

Streams: `sin`, `log`, `lns`, `step`, `constant`, `zipf`, `meter` and `latency` are formulas;
`read_counts`, `read_events` and `from_frame` read your own data; a `CountsStream` is a table of
counts over a `Domain` of labels.

Runs: `simulate` runs one mechanism and returns a `Simulation`; an `Experiment` runs a grid of them,
with `RunOptions`, and returns `Results`. A `MeanQuery` or `DistributionQuery` asks for a number.
`plot_releases` and `plot_results` draw them and return axes. `register` adds a mechanism of your
own, and `load_plugins` a file of them.

Devices: `ldpstream.device`; `Epsilon` and `Oracle` are exact.

Names are imported when they are first used: a device that needs only `ldpstream.device` never loads
NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldpstream.domain import Domain
    from ldpstream.lab.experiment import Experiment
    from ldpstream.lab.figures.drawing import plot_results
    from ldpstream.lab.figures.releases import plot_releases
    from ldpstream.lab.plugins import load_plugins
    from ldpstream.lab.results import Results
    from ldpstream.lab.simulation import Simulation, simulate
    from ldpstream.mechanisms.queries import DistributionQuery, MeanQuery
    from ldpstream.mechanisms.registry import register
    from ldpstream.mechanisms.settings import RunOptions
    from ldpstream.oracles import Oracle
    from ldpstream.privacy.epsilon import Epsilon
    from ldpstream.streams.counts import read_counts
    from ldpstream.streams.frames import from_frame
    from ldpstream.streams.longform import read_events
    from ldpstream.streams.stream import CountsStream
    from ldpstream.streams.synthetic import constant, latency, lns, log, meter, sin, step, zipf

__version__ = "0.3.0.dev0"

_HOMES = {
    "CountsStream": "ldpstream.streams.stream",
    "DistributionQuery": "ldpstream.mechanisms.queries",
    "Domain": "ldpstream.domain",
    "Epsilon": "ldpstream.privacy.epsilon",
    "Experiment": "ldpstream.lab.experiment",
    "MeanQuery": "ldpstream.mechanisms.queries",
    "Oracle": "ldpstream.oracles",
    "Results": "ldpstream.lab.results",
    "RunOptions": "ldpstream.mechanisms.settings",
    "Simulation": "ldpstream.lab.simulation",
    "constant": "ldpstream.streams.synthetic",
    "from_frame": "ldpstream.streams.frames",
    "latency": "ldpstream.streams.synthetic",
    "lns": "ldpstream.streams.synthetic",
    "load_plugins": "ldpstream.lab.plugins",
    "log": "ldpstream.streams.synthetic",
    "meter": "ldpstream.streams.synthetic",
    "plot_releases": "ldpstream.lab.figures.releases",
    "plot_results": "ldpstream.lab.figures.drawing",
    "read_counts": "ldpstream.streams.counts",
    "read_events": "ldpstream.streams.longform",
    "register": "ldpstream.mechanisms.registry",
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
    "Results",
    "RunOptions",
    "Simulation",
    "constant",
    "from_frame",
    "latency",
    "lns",
    "load_plugins",
    "log",
    "meter",
    "plot_releases",
    "plot_results",
    "read_counts",
    "read_events",
    "register",
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


def __dir__() -> list[str]:
    """Return the public names; those of the laboratory only if their extras are installed.

    Tools that look at every name, such as help(), would end at one that cannot be imported.
    """
    from ldpstream.extras import is_installed

    needs = {"from_frame": "polars", "read_events": "polars"}
    bare = {"Domain", "Epsilon", "Oracle", "load_plugins"}
    public = (n for n in __all__ if n in bare or is_installed(needs.get(n, "numpy")))
    return sorted({*public, *(n for n in globals() if n.startswith("__"))})
