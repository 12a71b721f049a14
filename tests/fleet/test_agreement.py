"""How the labels of a source are taken for those of a collector's stream."""

from __future__ import annotations

import numpy as np
import pytest

from ldpstream.domain import Domain
from ldpstream.errors import Mistake
from ldpstream.fleet.fleet import Fleet, FleetPlan
from ldpstream.streams.stream import CountsStream, Stream
from ldpstream.streams.synthetic import sin
from tests.device.collectors import make_terms

TERMS = make_terms(labels=["north", "south"])


def agree(source: Stream) -> None:
    Fleet(FleetPlan("http://127.0.0.1:1", "regions", "token", source, 2, 1.0))._map_labels(TERMS)


def of(*labels: str) -> CountsStream:
    return CountsStream("own", Domain.of(labels), np.full((3, len(labels)), 5))


def test_the_same_labels_agree() -> None:
    agree(of("north", "south"))


def test_numbers_of_a_built_in_stream_stand_for_as_many_labels() -> None:
    agree(sin(users=10, timestamps=3))


@pytest.mark.parametrize("labels", [("south", "north"), ("north", "east"), ("0", "1", "2")])
def test_others_do_not(labels: tuple[str, ...]) -> None:
    with pytest.raises(Mistake, match="give the collector's, north, south"):
        agree(of(*labels))
