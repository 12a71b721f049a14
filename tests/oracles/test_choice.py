from __future__ import annotations

import pytest

from ldpstream.oracles import Oracle, choose
from ldpstream.oracles.choice import TIE
from ldpstream.privacy.epsilon import Epsilon

GRID = [(d, e) for d in (2, 3, 4, 16, 128, 1024, 65536) for e in ("0.001", "0.5", "1", "3", "12")]


@pytest.mark.parametrize(("labels", "asked"), GRID)
def test_no_oracle_is_better(labels: int, asked: str) -> None:
    """None has less variance, and none with the same variance a smaller report."""
    epsilon = Epsilon.of(asked)
    best = choose(labels, epsilon)
    least = best.collector(labels, epsilon).mean_variance(1)
    for oracle in Oracle:
        variance = oracle.collector(labels, epsilon).mean_variance(1)
        assert variance >= least * (1 - 2 * TIE)
        if variance <= least * (1 + TIE / 2):
            size = oracle.device(labels, epsilon).report_bytes
            assert size >= best.device(labels, epsilon).report_bytes


def test_known_choices() -> None:
    one = Epsilon.of(1)
    assert choose(2, one) is Oracle.GRR  # subset selection of one label is GRR: a tie
    assert choose(3, one) is Oracle.GRR
    assert choose(128, one) is Oracle.SUBSET
    assert choose(128, Epsilon.of(10)) is Oracle.GRR
