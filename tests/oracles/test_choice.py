from __future__ import annotations

import pytest

from ldpstream.oracles import Oracle, choose
from ldpstream.oracles.choice import LARGE_REPORT, TIE, WORTH
from ldpstream.privacy.epsilon import Epsilon

EPSILONS = ("0.001", "0.5", "1", "3", "5", "8", "10", "12")
GRID = [(d, e) for d in (2, 3, 4, 16, 128, 1024, 2040) for e in EPSILONS]
LARGE_GRID = [(d, e) for d in (2041, 4096, 65536) for e in EPSILONS]


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


@pytest.mark.parametrize(("labels", "asked"), LARGE_GRID)
def test_a_large_report_is_chosen_only_where_it_is_worth_it(labels: int, asked: str) -> None:
    epsilon = Epsilon.of(asked)
    best = choose(labels, epsilon)
    noise = {o: o.collector(labels, epsilon).mean_variance(1) for o in Oracle}
    small = [o for o in Oracle if o.device(labels, epsilon).report_bytes <= LARGE_REPORT]
    least = min(noise.values())
    if best in small:
        assert noise[best] <= least * (1 + WORTH)
        assert noise[best] <= min(noise[o] for o in small) * (1 + TIE)
    else:
        assert noise[best] <= least * (1 + TIE)
        assert min(noise[o] for o in small) > least * (1 + WORTH)


def test_known_choices() -> None:
    one = Epsilon.of(1)
    assert choose(2, one) is Oracle.GRR  # subset selection of one label is GRR: a tie
    assert choose(3, one) is Oracle.GRR
    assert choose(128, one) is Oracle.SUBSET
    assert choose(128, Epsilon.of(10)) is Oracle.GRR
    assert choose(65_536, one) is Oracle.OLH
    assert choose(65_536, Epsilon.of("0.001")) is Oracle.HADAMARD
    assert choose(65_536, Epsilon.of(10)) is Oracle.SUBSET  # 16 % less variance than OLH
