"""The synthetic streams: their formulas, their parameters, and what is refused."""

from __future__ import annotations

import math
import string

import numpy as np
import pytest

from ldpstream.errors import Mistake
from ldpstream.streams.synthetic import STREAMS, constant, lns, log, named, sin, step, zipf


@pytest.mark.parametrize("name", STREAMS)
def test_every_row_counts_every_user_once(name: str) -> None:
    stream = named(name, users=1013, timestamps=60, seed=3)
    assert stream.name == name
    assert (stream.users, stream.timestamps) == (1013, 60)
    assert stream.table.shape == (60, len(stream.domain))
    assert (stream.table.sum(axis=1) == 1013).all()
    assert (stream.table >= 0).all()


@pytest.mark.parametrize("name", ["sin", "log", "lns", "step", "constant"])
def test_the_default_size_is_that_of_the_paper(name: str) -> None:
    stream = named(name)
    assert (stream.users, stream.timestamps, len(stream.domain)) == (200_000, 800, 2)


def test_sin_and_log_follow_the_formulas() -> None:
    """To the nearest user."""
    wave, rise = sin(users=10**6), log(users=10**6)
    other_wave = sin(users=10**6, a=0.1, b=0.5, h=0.3)
    other_rise = log(users=10**6, a=0.5, b=0.1)
    for t in (1, 2, 157, 800):
        for stream, share in (
            (wave, 0.05 * math.sin(0.01 * t) + 0.075),
            (rise, 0.25 / (1 + math.exp(-0.01 * t))),
            (other_wave, 0.1 * math.sin(0.5 * t) + 0.3),
            (other_rise, 0.5 / (1 + math.exp(-0.1 * t))),
        ):
            assert stream.table[t - 1, 1] == pytest.approx(share * 10**6, abs=0.5)


def test_lns_is_fixed_by_its_seed() -> None:
    assert (lns(seed=1).table == lns(seed=1).table).all()
    assert (lns(seed=1).table != lns(seed=2).table).any()
    assert (named("lns", seed=2).table == lns(seed=2).table).all()


def test_lns_is_a_walk_with_the_steps_given() -> None:
    """Far from the edges: normal steps; the sd of 5000 of them is within 5 standard errors."""
    steps = np.diff(lns(users=10**9, timestamps=5001, p0=0.5, sd=0.0005).table[:, 1]) / 10**9
    assert steps.std() == pytest.approx(0.0005, rel=5 / 10_000**0.5)
    assert abs(steps.mean()) < 5 * 0.0005 / 5000**0.5


@pytest.mark.parametrize("p0", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("sd", [0.0025, 0.1, 1.5])
def test_lns_is_reflected_into_0_to_1(p0: float, sd: float) -> None:
    """Correction 11. Folding the free walk at 0 and 1 is reflection, as often as it takes."""
    users = 10**6
    for seed in range(5):
        shares = lns(users=users, p0=p0, sd=sd, seed=seed).table[:, 1] / users
        assert shares.min() >= 0
        assert shares.max() <= 1
        position = p0
        walk = np.random.default_rng(seed).normal(0, sd, 800).cumsum() + p0
        for free, share in zip(walk, shares, strict=True):
            position = free
            while not 0 <= position <= 1:
                position = -position if position < 0 else 2 - position
            assert share == pytest.approx(position, abs=1e-6)


def test_step_and_constant() -> None:
    stairs = step(users=100, timestamps=7, low=0.1, high=0.4, every=2)
    assert stairs.table[:, 1].tolist() == [10, 10, 40, 40, 10, 10, 40]
    assert set(constant(users=1000, timestamps=9, p=0.25).table[:, 1].tolist()) == {250}


def test_zipf_starts_in_proportion_to_rank_and_drifts() -> None:
    still = zipf(users=10**6, timestamps=3, labels=5, s=1.0, drift=0.0)
    weights = np.array([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5])
    for row in still.table:
        assert row == pytest.approx(weights / weights.sum() * 10**6, abs=1)
    drifting = zipf(users=10**6, timestamps=50, labels=5, drift=0.1)
    assert (drifting.table[0] != drifting.table[-1]).any()
    assert (zipf(timestamps=9, seed=1).table == zipf(timestamps=9, seed=1).table).all()
    assert (zipf(timestamps=9, seed=1).table != zipf(timestamps=9, seed=2).table).any()


def test_zipf_is_sized_like_taobao() -> None:
    stream = zipf()
    assert (stream.users, stream.timestamps, len(stream.domain)) == (1_023_154, 432, 117)


def test_parameters_are_read_from_the_name() -> None:
    assert (named("sin:b=0.1").table == sin(b=0.1).table).all()
    given = named("step:low=0.2,high=0.3,every=5", users=50, timestamps=20)
    assert (given.table == step(50, 20, low=0.2, high=0.3, every=5).table).all()
    assert len(named("zipf:labels=7", users=100, timestamps=2).domain) == 7


def test_sizes_in_the_name_win_over_those_beside_it() -> None:
    stream = named("sin:users=500,timestamps=10", users=9, timestamps=9)
    assert (stream.users, stream.timestamps) == (500, 10)
    assert (named("lns:seed=4", seed=9).table == lns(seed=4).table).all()


BAD = [
    ("cosine", f"there is no stream 'cosine'; use one of: {', '.join(STREAMS)}"),
    ("", "there is no stream ''"),
    ("sin:c=1", "sin stream: parameter is 'c'; give one of users, timestamps, a, b, h"),
    ("sin:=1", "sin stream: parameter is ''"),
    ("sin:b", "sin stream: b is ''; give a number (float)"),
    ("sin:b=fast", "sin stream: b is 'fast'; give a number (float)"),
    ("sin:users=1e3", "sin stream: users is '1e3'; give a number (int)"),
    ("sin:h=0.99", "sin stream: p_t is from 0.94 to 1.04; give parameters that keep it in 0..1"),
    ("log:a=-1", "log stream: p_t is from -1 to -0.502"),
    ("constant:p=1.5", "constant stream: p_t is from 1.5 to 1.5"),
    ("sin:b=nan", "sin stream: b is"),
    ("sin:a=inf", "sin stream: a is"),
    ("constant:p=nan", "constant stream: p is"),
    ("zipf:drift=inf", "zipf stream: drift is"),
    ("step:every=0", "step stream: every is 0; give a number of timestamps, 1 or more"),
    ("lns:sd=-1", "lns stream: sd is -1.0"),
    ("lns:seed=-1", "lns stream: seed is -1"),
    ("zipf:drift=-1", "zipf stream: drift is -1.0"),
    ("zipf:seed=-1", "zipf stream: seed is -1"),
    ("zipf:labels=1", "the domain has 1 labels; give 2 to 65536"),
    ("zipf:labels=0", "the domain has 0 labels; give 2 to 65536"),
    *(
        (f"{name}:timestamps=0", f"{name} stream: timestamps is 0; give 1 or more")
        for name in STREAMS
    ),
    *((f"{name}:timestamps=-3", f"{name} stream: timestamps is -3") for name in STREAMS),
    *((f"{name}:users=0", f"{name} stream: users is 0; give 1 or more") for name in STREAMS),
    *((f"{name}:users=-5", f"{name} stream: users is -5") for name in STREAMS),
]


@pytest.mark.parametrize(("text", "line"), BAD, ids=[text for text, _ in BAD])
def test_bad_parameters_are_refused_in_one_line(text: str, line: str) -> None:
    with pytest.raises(Mistake) as refusal:
        named(text)
    message = str(refusal.value)
    assert message.startswith(line)
    assert set(message) <= set(string.printable) - set("\n\r")
