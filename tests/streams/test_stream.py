"""Streams by histogram and user by user."""

from __future__ import annotations

import numpy as np
import pytest

from ldpstream.domain import Domain
from ldpstream.errors import Mistake
from ldpstream.streams.stream import CountsSnapshot, CountsStream, ShuffledUsers, ValuesSnapshot

AB = Domain.of(["a", "b"])


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ([1, 2], "s stream: rows is (2,); give a row of counts per timestamp, at least one"),
        (
            np.zeros((0, 2)),
            "s stream: rows is (0, 2); give a row of counts per timestamp, at least one",
        ),
        ([[1, 2, 3]], "s stream: columns is 3; give one per label, 2"),
        ([[3, 1], [5, -1]], "s stream: a count is -1; give 0 or more"),
        ([[3, 1], [2, 2], [2, 1]], "s stream: the sum of row 3 is 3; give 4, as in row 1"),
    ],
)
def test_a_table_that_is_no_stream_is_refused_in_one_line(table: object, line: str) -> None:
    with pytest.raises(Mistake) as refusal:
        CountsStream("s", AB, np.array(table, np.int64))
    assert str(refusal.value) == line


def test_a_histogram_deals_its_users_without_replacement() -> None:
    """Whatever is asked in however many parts, all together are the histogram."""
    rng = np.random.default_rng(1)
    counts = np.array([50, 30, 0, 20])
    for _ in range(50):
        snapshot = CountsSnapshot(counts)
        sizes = rng.multinomial(100, [0.2, 0.5, 0.3])
        parts = [snapshot.counts_of(np.arange(size, dtype=np.uint32), rng) for size in sizes]
        assert [part.sum() for part in parts] == sizes.tolist()
        assert np.sum(parts, axis=0).tolist() == counts.tolist()
        assert snapshot.counts.tolist() == counts.tolist()


def test_a_histogram_deals_each_label_in_proportion() -> None:
    """Mean and variance of a hypergeometric draw: within 5 standard errors of 4000 draws."""
    rng = np.random.default_rng(2)
    sample = np.arange(20, dtype=np.uint32)
    drawn = np.array(
        [CountsSnapshot(np.array([70, 30])).counts_of(sample, rng)[1] for _ in range(4000)]
    )
    variance = 20 * 0.3 * 0.7 * 80 / 99
    assert drawn.mean() == pytest.approx(6, abs=5 * (variance / 4000) ** 0.5)
    assert drawn.var() == pytest.approx(variance, rel=5 * (2 / 4000) ** 0.5)


def test_users_report_their_own_values() -> None:
    snapshot = ValuesSnapshot(np.array([0, 2, 2, 1, 2]), labels=4)
    rng = np.random.default_rng(3)
    assert snapshot.counts.tolist() == [1, 1, 3, 0]
    assert snapshot.counts_of(np.array([1, 2, 3], np.uint32), rng).tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("labels", [2, 256, 257])
def test_shuffled_users_have_the_same_histograms(labels: int) -> None:
    rng = np.random.default_rng(4)
    table = rng.multinomial(1000, np.full(labels, 1 / labels), size=5)
    source = CountsStream("s", Domain.numbered(labels), table)
    shuffled = ShuffledUsers(source)
    assert (shuffled.name, shuffled.domain) == (source.name, source.domain)
    assert (shuffled.users, shuffled.timestamps) == (1000, 5)
    histograms = [snapshot.counts.tolist() for snapshot in shuffled.snapshots(rng)]
    assert histograms == table.tolist()


def test_shuffled_users_are_dealt_anew_at_each_timestamp() -> None:
    source = CountsStream("s", AB, np.array([[50, 50], [50, 50]]))
    first = np.arange(50, dtype=np.uint32)
    rng = np.random.default_rng(5)
    dealt = [snapshot.counts_of(first, rng)[0] for snapshot in ShuffledUsers(source).snapshots(rng)]
    assert dealt[0] != 50
    assert dealt[0] != dealt[1]
