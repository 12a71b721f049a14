"""The streams that accuracy is measured on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ldpstream.mechanisms.queries import HISTOGRAM, MeanQuery, Query
from ldpstream.streams.datasets.registry import DATA_SETS
from ldpstream.streams.stream import Stream
from ldpstream.streams.synthetic import constant, lns, log, meter, sin, step, zipf

Row = dict[str, Any]
"""A row of a table."""
GRID = ((1, 20), (1, 50), (2, 40))
"""Epsilon and window of the rows."""


@dataclass(frozen=True)
class Named:
    """A stream under the name it has in the tables."""

    name: str
    stream: Stream
    query: Query = HISTOGRAM


SMOOTH = (Named("sin", sin()), Named("log", log()), Named("lns", lns()))
MOVING = (
    Named("constant", constant()),
    Named("step every 100", step()),
    Named("sin b=0.1", sin(b=0.1)),
    Named("lns sd=0.01", lns(p0=0.3, sd=0.01)),
)
WIDE = Named("zipf", zipf())
NUMBER = Named("meter, mean", meter(), MeanQuery(0, 5))
UNSEEN = (
    Named("sin a=0.2 b=0.03", sin(a=0.2, b=0.03, h=0.4)),
    Named("log a=0.6 b=0.03", log(a=0.6, b=0.03)),
    Named("lns sd=0.005 seed=7", lns(p0=0.2, sd=0.005, seed=7)),
    Named("constant p=0.4", constant(p=0.4)),
    Named("step every 37", step(low=0.2, high=0.5, every=37)),
    Named("zipf d=40 drift=0.05", zipf(200_000, 400, labels=40, s=1.5, drift=0.05, seed=3)),
    Named("meter day=48 sd=0.03, mean", meter(day=48, sd=0.03, seed=3), MeanQuery(0, 5)),
)
"""Streams of the same kinds, with parameters that no constant of the filter was chosen on."""


def real_sets() -> Iterator[Named]:
    for name, known in DATA_SETS.items():
        stream = known.open()
        if stream is not None:
            yield Named(name, stream)
