"""Random streams: fixed by their seed, and of every kind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ldpstream.arrays import Floats
from ldpstream.lab.metrics import BIG, RARE, after_jumps
from ldpstream.streams.generated import FEWEST, MOST, MOVEMENTS, _Draw, generated
from ldpstream.streams.synthetic import named

SEEDS = range(100)


def test_the_seed_fixes_all() -> None:
    assert generated(seed=7).fingerprint == generated(seed=7).fingerprint
    assert len({generated(timestamps=20, seed=seed).fingerprint for seed in SEEDS}) == len(SEEDS)
    assert named("generated:seed=7", seed=3).fingerprint == generated(seed=7).fingerprint
    assert named("generated", seed=3).fingerprint == generated(seed=3).fingerprint


@pytest.mark.parametrize("timestamps", [1, 2, 30])
def test_any_length_and_number_of_users_will_do(timestamps: int) -> None:
    for seed in SEEDS:
        stream = generated(users=13, timestamps=timestamps, seed=seed)
        assert stream.table.shape == (timestamps, len(stream.domain))
        assert (stream.users, stream.table.min()) >= (13, 0)


def test_the_number_of_users_changes_no_share() -> None:
    few, many = (generated(users=users, seed=5).table / users for users in (10**4, 10**6))
    assert np.abs(few - many).max() <= 1 / 10**4 + 1e-9


def test_streams_are_small_and_large_calm_and_wild() -> None:
    labels, sizes, steps, jumps = [], set(), [], 0
    for seed in SEEDS:
        stream = generated(seed=seed)
        shares = stream.table / stream.users
        mean = shares.mean(axis=0)
        labels.append(len(mean))
        sizes.add((bool((mean < RARE).any()), bool((mean > BIG).any())))
        steps.append(float(np.abs(np.diff(shares, axis=0)).max()))
        jumps += bool(after_jumps(shares).any())
    assert FEWEST == min(labels) < max(labels) <= MOST
    assert max(labels) > MOST / 2
    assert (True, True) in sizes
    assert np.quantile(steps, 0.1) < 0.01 < 0.1 < np.quantile(steps, 0.75)
    assert 20 < jumps < 90


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_every_movement_moves(movement: Callable[[_Draw], Floats]) -> None:
    draws = [_Draw(np.random.default_rng(seed), 200, 8, 1.0) for seed in range(20)]
    moved = [movement(draw).std(axis=0).max() for draw in draws]
    assert np.isfinite(moved).all()
    assert np.median(moved) > 0
