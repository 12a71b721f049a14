"""The hash that estimates rest on: its promise by enumeration, its vectors, its statistics."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest, chi2

from ldpstream.oracles import Oracle
from ldpstream.oracles.hashing import FAMILY, MOST_BUCKETS, MultiplyShift, scatter
from ldpstream.oracles.kernels.local_hash import hashed_values, scattered
from ldpstream.oracles.reference.local_hash import buckets_of
from ldpstream.privacy.epsilon import Epsilon

VECTORS = json.loads(files("ldpstream.oracles").joinpath("hash_vectors.json").read_text())


@pytest.mark.parametrize("family", [MultiplyShift(2, 3), MultiplyShift(3, 4), MultiplyShift(4, 3)])
def test_hashes_of_two_keys_are_independent_and_uniform(family: MultiplyShift) -> None:
    """Over all seeds, every pair of hashes comes up equally often for every pair of keys."""
    words, keys = range(1 << family.word_bits), range(1 << family.key_bits)
    table = [[family.hash(a, b, key) for key in keys] for a, b in product(words, words)]
    expected = len(table) // (1 << 2 * family.hash_bits)
    for one, other in combinations(keys, 2):
        pairs = Counter((row[one], row[other]) for row in table)
        assert len(pairs) == 1 << 2 * family.hash_bits
        assert set(pairs.values()) == {expected}


@pytest.mark.parametrize("buckets", [2, 3, 5, 7, 8, 11])
def test_collision_probability_is_exact(buckets: int) -> None:
    family = MultiplyShift(2, 3)
    words = range(1 << family.word_bits)
    for one, other in combinations(range(4), 2):
        collisions = sum(
            family.bucket(a, b, one, buckets) == family.bucket(a, b, other, buckets)
            for a, b in product(words, words)
        )
        assert Fraction(collisions, len(words) ** 2) == family.collision(buckets)


def test_a_word_too_short_would_not_do() -> None:
    """One bit less than key + hash - 1 and the promise is gone: the test above can fail."""

    class Short(MultiplyShift):
        @property
        def word_bits(self) -> int:
            return super().word_bits - 1

        def hash(self, multiplier: int, increment: int, key: int) -> int:
            return (multiplier * key + increment & (1 << self.word_bits) - 1) >> self.key_bits - 2

    with pytest.raises(AssertionError):
        test_hashes_of_two_keys_are_independent_and_uniform(Short(3, 4))


def test_the_full_family_has_32_bit_words_and_never_leaves_them() -> None:
    assert FAMILY.word_bits == 32
    assert FAMILY.hash(2**32 - 1, 2**32 - 1, 2**16 - 1) < 2**17
    assert (2**17 - 1) * MOST_BUCKETS < 2**32
    assert FAMILY.bucket(0, 2**32 - 1, 0, MOST_BUCKETS) == MOST_BUCKETS - 1


def test_scatter_is_a_bijection() -> None:
    assert sorted(scattered(1 << 16).tolist()) == list(range(1 << 16))


def test_published_vectors() -> None:
    for case in VECTORS["scatter"]:
        assert scatter(case["label"]) == case["scattered"]
    for case in VECTORS["buckets"]:
        key = scatter(case["label"])
        seed = case["multiplier"], case["increment"]
        assert FAMILY.hash(*seed, key) == case["hash"]
        assert FAMILY.bucket(*seed, key, case["buckets"]) == case["bucket"]


def test_arrays_hash_like_python() -> None:
    for case in VECTORS["buckets"]:
        fields = (case["multiplier"], case["increment"], scatter(case["label"]))
        words = [np.array([field], np.uint32) for field in fields]
        assert buckets_of(words[0], words[1], words[2], case["buckets"])[0] == case["bucket"]


# --- Statistics of the full family, over random seeds; one chance in 10^9 each to fail in error ---

SEEDS = 1 << 17
LEAST_TAIL = 1e-9
PAIRS = [(0, 1), (1, 2), (0, 255), (255, 256), (0, 32768), (1, 65535), (12345, 54321), (2, 4)]
PROGRESSIONS = [(0, 1, 2), (1, 2, 3), (0, 2, 4), (10, 20, 30), (0, 8, 16), (0, 100, 200), (5, 6, 7)]


@cache
def seeds() -> NDArray[np.uint32]:
    """Many multipliers, and as many increments."""
    return np.random.default_rng(1).integers(1 << 32, size=(2, SEEDS), dtype=np.uint32)


def hashed(label: int, buckets: int) -> NDArray[np.uint32]:
    """The bucket of a label under each of the seeds."""
    multipliers, increments = seeds()
    return buckets_of(multipliers, increments, np.array([scatter(label)], np.uint32), buckets)


def tail(labels: tuple[int, ...], buckets: int) -> float:
    """Tail probability of a chi-square test that the labels' buckets are jointly uniform."""
    cells = buckets ** len(labels)
    places = np.ravel_multi_index(
        [hashed(label, buckets) for label in labels], [buckets] * len(labels)
    )
    found = np.bincount(places, minlength=cells)
    expected = SEEDS / cells
    return float(chi2.sf(((found - expected) ** 2 / expected).sum(), cells - 1))


@pytest.mark.parametrize("buckets", [2, 4, 8])
@pytest.mark.parametrize("labels", PAIRS)
def test_pairs_of_labels_are_jointly_uniform(labels: tuple[int, int], buckets: int) -> None:
    assert tail(labels, buckets) > LEAST_TAIL


@pytest.mark.parametrize("buckets", [2, 3, 23, 1000])
@pytest.mark.parametrize("labels", PAIRS)
def test_pairs_of_labels_collide_as_often_as_stated(labels: tuple[int, int], buckets: int) -> None:
    share = float(FAMILY.collision(buckets))
    found = np.count_nonzero(hashed(labels[0], buckets) == hashed(labels[1], buckets))
    assert binomtest(found, SEEDS, share).pvalue > LEAST_TAIL


@pytest.mark.parametrize("buckets", [2, 4])
@pytest.mark.parametrize("labels", PROGRESSIONS)
def test_progressions_of_labels_look_independent(labels: tuple[int, ...], buckets: int) -> None:
    """Not promised by multiply-shift: what `scatter` is for."""
    assert tail(labels, buckets) > LEAST_TAIL


def test_unscattered_progressions_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "scatter", int)
    assert tail((0, 1, 2), 4) < LEAST_TAIL


def test_scatter_leaves_no_more_progressions_than_chance() -> None:
    """Among 128 labels a random bijection leaves 6 of the 341,376 triples in progression."""
    keys = sorted(scattered(128).tolist())
    present = set(keys)
    assert sum(2 * middle - low in present for low, middle in combinations(keys, 2)) <= 8
    first = scattered(32).tolist()
    assert not any(2 * b - a in first for a in first for b in first if a != b)


@pytest.mark.parametrize("oracle", [Oracle.BLH, Oracle.OLH])
def test_a_device_draws_its_seed_from_all_64_bits(oracle: Oracle) -> None:
    class Highest:
        def __init__(self) -> None:
            self.bounds: list[int] = []

        def coin(self, favour: int, total: int) -> bool:
            return True

        def below(self, bound: int) -> int:
            self.bounds.append(bound)
            return bound - 1

    source = Highest()
    report = oracle.device(9, Epsilon.of(1)).perturb(0, source)
    assert source.bounds[:2] == [2**32, 2**32]
    assert report.multiplier == report.increment == 2**32 - 1


def test_simulated_seeds_differ_and_use_every_bit() -> None:
    rows = hashed_values(np.zeros(SEEDS, np.int64), 2, 2, np.uint64(0), np.uint64(1))
    drawn = rows[:, 0].astype(np.uint64) << np.uint64(32) | rows[:, 1]
    assert len(np.unique(drawn)) == SEEDS  # two of 2^17 meet in 2^64 once in 10^9 runs
    for bit in range(64):
        ones = int((drawn >> np.uint64(bit) & np.uint64(1)).sum())
        assert binomtest(ones, SEEDS).pvalue > LEAST_TAIL
