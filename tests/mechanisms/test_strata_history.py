"""Strata of many timestamps, combined at once, are those combined one by one."""

from __future__ import annotations

import numpy as np
import pytest

from ldpstream.mechanisms.noise import NoiseModel, VarianceRule
from ldpstream.mechanisms.strata import StrataMemory, Stratum, combine
from ldpstream.mechanisms.strata_history import combine_all
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon

LABELS = 4
GRR = NoiseModel(Oracle.GRR, LABELS, 1000, VarianceRule.CORRECTED)
OUE = NoiseModel(Oracle.OUE, LABELS, 1000, VarianceRule.CORRECTED)
STRATA = [
    Stratum("usual", Epsilon.of(1), 20, GRR),
    Stratum("careful", Epsilon.of(0.5), 40, OUE),
    Stratum("rare", Epsilon.of(2), 10, GRR),
]


def story(seed: int, times: list[int]) -> list[dict[str, Support]]:
    """Reports that come and go: an outage of all, one of a level, and a level that is gone."""
    rng = np.random.default_rng(seed)
    supports = []
    for t in times:
        heard = {}
        for place, (stratum, mean) in enumerate(zip(STRATA, (300, 80, 15), strict=True)):
            n = int(rng.poisson(mean))
            if 60 <= t < 66 or (place == 1 and 30 <= t < 90) or (place == 2 and t > 100):
                n = 0
            shares = np.array([0.4, 0.3, 0.2, 0.1]) if place else np.array([0.1, 0.2, 0.3, 0.4])
            counts = rng.multinomial(n, shares).astype(np.int64)
            heard[stratum.name] = Support(counts, n)
        supports.append(heard)
    return supports


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "times", [list(range(1, 400)), list(range(7, 300, 3))], ids=["all", "gaps"]
)
def test_all_at_once_is_one_by_one(seed: int, times: list[int]) -> None:
    supports = story(seed, times)
    memory, expected = StrataMemory(), []
    for t, heard in zip(times, supports, strict=True):
        tally, memory = combine(t, STRATA, heard, memory, LABELS)
        expected.append(tally)
    each = [[heard[one.name] for one in STRATA] for heard in supports]
    counts = np.array([[one.counts for one in row] for row in each])
    reports = np.array([[one.reports for one in row] for row in each])
    found = combine_all(np.array(times), STRATA, counts, reports)
    assert found.reports.tolist() == [one.reports for one in expected]
    assert not all(expected)
    for row, one in enumerate(expected):
        for part in ("estimate", "variance", "lasting", "sampled") if one else ():
            assert getattr(found, part)[row] == pytest.approx(
                getattr(one, part), rel=1e-6, abs=1e-12
            )
