"""Kernels and their NumPy references give the same bits, however the work is cut up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpstream import compiled
from ldpstream.oracles import Oracle
from ldpstream.oracles.kernels import bitmaps, labels, local_hash
from ldpstream.oracles.lab_half import threshold
from ldpstream.oracles.reference import bitmaps as plain_bitmaps
from ldpstream.oracles.reference import labels as plain_labels
from ldpstream.oracles.reference import local_hash as plain_local_hash
from ldpstream.oracles.walsh import walsh
from ldpstream.privacy.epsilon import Epsilon

SEED = np.uint64(0xDEADBEEFCAFEF00D)
START, STOP, ROWS = 3, 1001, 1003
CHANCES = [threshold(chance) for chance in (0.0, 1e-12, 0.25, 0.73105857863, 1.0)]

sizes = pytest.mark.parametrize("size", [2, 5, 63, 64, 65, 200])
chances = pytest.mark.parametrize("chance", CHANCES)


def values_below(size: int) -> NDArray[np.int64]:
    return np.random.default_rng(1).integers(size, size=ROWS)


def assert_same_fill(
    kernel: Callable[..., None],
    plain: Callable[..., None],
    values: NDArray[Any],
    blank: NDArray[Any],
    *arguments: Any,
) -> None:
    """Both write the same rows, and none outside START .. STOP."""
    filled = []
    for fill in (kernel, plain):
        out = np.full_like(blank, 77)
        fill(values, out, START, STOP, *arguments)
        assert (out[:START] == 77).all()
        assert (out[STOP:] == 77).all()
        filled.append(out)
    np.testing.assert_array_equal(filled[0], filled[1])


@sizes
@chances
@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_randomised_labels(size: int, chance: np.uint64, dtype: type) -> None:
    assert_same_fill(
        labels._randomise_labels,
        plain_labels.randomise_labels,
        values_below(size).astype(dtype),
        np.zeros(ROWS, np.uint16),
        np.uint64(size),
        chance,
        SEED,
    )


@sizes
@chances
def test_hadamard_columns(size: int, chance: np.uint64) -> None:
    assert_same_fill(
        labels._draw_columns,
        plain_labels.draw_columns,
        values_below(size),
        np.zeros(ROWS, np.uint32),
        size.bit_length(),
        chance,
        SEED,
    )


@sizes
@chances
def test_randomised_bits(size: int, chance: np.uint64) -> None:
    assert_same_fill(
        bitmaps._randomise_bits,
        plain_bitmaps.randomise_bits,
        values_below(size),
        np.zeros((ROWS, bitmaps.words_for(size)), np.uint64),
        size,
        threshold(0.5),
        chance,
        SEED,
    )


@sizes
@chances
def test_subsets(size: int, chance: np.uint64) -> None:
    for members in {1, (size + 1) // 3, size - 1} - {0}:
        assert_same_fill(
            bitmaps._select_subsets,
            plain_bitmaps.select_subsets,
            values_below(size),
            np.zeros((ROWS, bitmaps.words_for(size)), np.uint64),
            size,
            members,
            chance,
            SEED,
        )
        rows = bitmaps.selected_subsets(values_below(size), size, members, chance, SEED)
        assert set(np.bitwise_count(rows).sum(axis=1)) == {members}


@sizes
@chances
@pytest.mark.parametrize("buckets", [2, 3, 23, 32768])
def test_hashed_values_and_their_support(size: int, chance: np.uint64, buckets: int) -> None:
    keys, values = local_hash.scattered(size), values_below(size)
    assert_same_fill(
        local_hash._hash_values,
        plain_local_hash.hash_values,
        values,
        np.zeros((ROWS, 3), np.uint32),
        keys,
        np.uint64(buckets),
        chance,
        SEED,
    )
    rows = local_hash.hashed_values(values, size, buckets, chance, SEED)
    arguments = (rows, START, STOP, keys, local_hash._edges(buckets))
    np.testing.assert_array_equal(
        local_hash._count_hashed(*arguments), plain_local_hash.count_hashed(*arguments)
    )


@sizes
def test_counts(size: int) -> None:
    values = values_below(size)
    np.testing.assert_array_equal(
        labels._count_labels(values, START, STOP, size),
        plain_labels.count_labels(values, START, STOP, size),
    )
    words = np.random.default_rng(2).integers(
        1 << 64, size=(ROWS, bitmaps.words_for(size)), dtype=np.uint64
    )
    np.testing.assert_array_equal(
        bitmaps._count_bits(words, START, STOP), plain_bitmaps.count_bits(words, START, STOP)
    )


def test_walsh_against_its_matrix() -> None:
    numbers = np.random.default_rng(3).integers(1000, size=64)
    rows = np.arange(64)
    signs = 1 - 2 * (np.bitwise_count(rows[:, None] & rows).astype(np.int64) % 2)
    np.testing.assert_array_equal(walsh(numbers), signs @ numbers)


@pytest.mark.parametrize("oracle", list(Oracle))
def test_reports_do_not_depend_on_the_number_of_threads(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "LEAST_CHUNK", 100)
    lab, collector = oracle.lab(70, Epsilon.of(1)), oracle.collector(70, Epsilon.of(1))
    values = values_below(70)
    results = []
    for cores in (1, 2, 7):
        monkeypatch.setattr(compiled, "cores", lambda cores=cores: cores)
        reports = lab.perturb(values, np.random.default_rng(4))
        results.append((reports.tolist(), collector.support(reports).counts.tolist()))
    assert results[0] == results[1] == results[2]


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None  # importing it now fails
import numpy as np
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
for oracle in Oracle:
    lab, collector = oracle.lab(70, Epsilon.of(1)), oracle.collector(70, Epsilon.of(1))
    reports = lab.perturb(np.arange(500) % 70, np.random.default_rng(5))
    print(*collector.support(reports).counts)
"""


def test_without_numba_the_results_are_the_same() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, check=True, text=True
    )
    for oracle, line in zip(Oracle, run.stdout.splitlines(), strict=True):
        lab, collector = oracle.lab(70, Epsilon.of(1)), oracle.collector(70, Epsilon.of(1))
        reports = lab.perturb(np.arange(500) % 70, np.random.default_rng(5))
        assert [int(count) for count in line.split()] == collector.support(reports).counts.tolist()
