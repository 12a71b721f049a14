"""Intervals beside the releases of the seven: what they rest on, and that they hold."""

from __future__ import annotations

import numpy as np
import pytest

from ldpstream.lab.simulation import Run, simulate
from ldpstream.streams.synthetic import lns

TIMESTAMPS = 1500
RESTLESS = lns(users=4_000, timestamps=TIMESTAMPS, p0=0.4, sd=0.03)
"""It moves by more than a filter can learn to expect."""


def observed(mechanism: str) -> Run:
    (run,) = simulate(RESTLESS, mechanism, epsilon=1, window=10, intervals=True).runs
    return run


@pytest.mark.parametrize("mechanism", ["lbu", "lpu", "lba", "lpd"])
def test_they_hold_whatever_the_stream_does(mechanism: str) -> None:
    """Uniform: 1,500 independent shares of 0.9, standard error 0.008; 0.04 is five of them.

    Adaptive ones publish when a probe fell far off, so that the others are better than they say:
    up to 0.95 with two labels.
    """
    covered = observed(mechanism).metrics.covered
    assert 0.86 < covered < (0.94 if mechanism in ("lbu", "lpu") else 0.99)


def test_a_fresh_release_is_in_the_middle_of_its_interval() -> None:
    run = observed("lpu")
    np.testing.assert_allclose((run.low + run.high) / 2, run.released)
    assert run.fresh.all()


def test_between_the_first_two_samples_nothing_is_claimed() -> None:
    run = observed("lsp")
    assert run.fresh[0]
    assert run.high[0, 0] - run.low[0, 0] < 1
    assert run.low[1:10].max() == 0
    assert run.high[1:10].min() == 1
    assert (run.high - run.low)[11:20].max() < 1


def test_a_carried_over_release_grows_less_certain() -> None:
    """Its stated error follows the filter; that of a fresh one is its own."""
    run = observed("lsp")
    later = run.variance[20:]
    fresh = run.fresh[20:]
    assert later[~fresh].mean() > 3 * later[fresh].mean()
