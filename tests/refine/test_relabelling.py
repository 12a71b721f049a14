"""What a filter knows after the labels of its stream have changed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ldpstream.arrays import Flags, Floats
from ldpstream.errors import Mistake
from ldpstream.refine.cohorts import ReportingFleet
from ldpstream.refine.filter import Filter
from ldpstream.refine.relabelling import Relabelling

NOISE = 4e-4
TRUTH = np.array([0.1, 0.15, 0.2, 0.25, 0.3])


def followed(truth: Floats, seed: int = 1, fleet: ReportingFleet | None = None) -> Filter:
    """A filter that has seen a noisy tally of each row."""
    smooth = Filter(truth.shape[1], fleet)
    see(smooth, truth, seed)
    return smooth


def see(smooth: Filter, truth: Floats, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for row in truth:
        smooth.update(row + rng.normal(0, np.sqrt(NOISE), len(row)), np.full(len(row), NOISE))


def moved(smooth: Filter, move: Relabelling, fleet: ReportingFleet | None = None) -> Filter:
    """A filter of other labels with what `smooth` knew, by way of JSON text."""
    other = Filter(move.labels, fleet)
    other.adopt(json.loads(json.dumps(smooth.save())), move)
    return other


def test_names_say_what_became_of_a_label() -> None:
    move = Relabelling.between(["a", "b", "c"], ["c", "x", "a"])
    assert move.targets == (2, None, 0)
    assert move.new.tolist() == [False, True, False]
    assert Relabelling.between(["a", "b"], ["a", "b"]).is_same
    assert not Relabelling.between(["a", "b"], ["a", "b", "c"]).is_same


def test_labels_in_another_order_are_the_same_filter() -> None:
    """Shared parts, such as covariances, stay bit by bit; so does what is known of each label."""
    smooth = followed(np.tile(TRUTH, (60, 1)))
    order = [4, 2, 0, 1, 3]
    move = Relabelling.between("abcde", [*"ecabd"])
    other = moved(smooth, move)
    np.testing.assert_array_equal(other.estimate, smooth.estimate[order])
    smooth.pass_time()
    other.pass_time()
    np.testing.assert_allclose(other.estimate, smooth.estimate[order])
    np.testing.assert_allclose(other.interval(), np.array(smooth.interval())[:, order])


def test_there_and_back_is_where_it_was() -> None:
    smooth = followed(np.tile(TRUTH, (60, 1)))
    there = Relabelling.between("abcde", "ecabd")
    back = Relabelling.between("ecabd", "abcde")
    again = moved(moved(smooth, there), back)
    rows = np.tile(TRUTH, (60, 1))
    see(smooth, rows, 2)
    see(again, rows, 2)
    np.testing.assert_allclose(again.estimate, smooth.estimate, atol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "called", "expected"),
    [
        ("ab", "abc", None, [0.1, 0.2, 0]),
        ("abc", "ca", "cac", [0.4, 0.2]),
        ("abc", "cab", None, [0.3, 0.1, 0.2]),
    ],
    ids=["one more", "one less", "another order"],
)
def test_an_error_of_all_measurements_goes_over_with_its_label(
    old: str, new: str, called: str | None, expected: list[float]
) -> None:
    move, known = Relabelling.between(old, new, called), []
    for lasting in (0.0, 1.0):
        smooth = Filter(len(old))
        for _ in range(3):
            shared = lasting * np.array([0.1, 0.2, 0.3])[: len(old)]
            smooth.update(np.full(len(old), 0.3), np.full(len(old), NOISE), lasting=shared)
        other = moved(smooth, move)
        other.pass_time()
        known.append(other.variance)
    np.testing.assert_allclose(known[1] - known[0], expected)


def test_merged_labels_are_known_as_a_sum() -> None:
    smooth = followed(np.tile(TRUTH, (100, 1)))
    move = Relabelling.between("abcde", ["ab", "c", "de"], ["ab", "ab", "c", "de", "de"])
    merged = moved(smooth, move)
    known = smooth.estimate
    sums = [known[0] + known[1], known[2], known[3] + known[4]]
    np.testing.assert_allclose(merged.estimate, sums)
    merged.pass_time()
    smooth.pass_time()
    low, high = merged.interval()
    width, parts = (high - low), np.subtract(*smooth.interval()[::-1])
    assert width[0] == pytest.approx(np.hypot(parts[0], parts[1]), rel=0.2)
    assert width[1] == pytest.approx(parts[2], rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_a_new_label_is_found_at_once_and_the_others_are_not_disturbed(seed: int) -> None:
    """The same tallies, with and without a sixth label beside them."""
    smooth = followed(np.tile(TRUTH, (100, 1)), seed)
    wider = moved(smooth, Relabelling.between("abcde", "abcdef"))
    rng = np.random.default_rng(seed + 10)
    assert wider.interval()[1][5] - wider.interval()[0][5] > 0.5
    for step in range(40):
        tally = np.array([*TRUTH, 0.08]) + rng.normal(0, np.sqrt(NOISE), 6)
        smooth.update(tally[:5], np.full(5, NOISE))
        wider.update(tally, np.full(6, NOISE))
        assert np.abs(wider.estimate[:5] - smooth.estimate).max() < 0.5 * np.sqrt(NOISE)
        if step == 0:
            assert wider.estimate[5] == pytest.approx(tally[5], abs=np.sqrt(NOISE))
    assert wider.estimate[5] == pytest.approx(0.08, abs=np.sqrt(NOISE))
    assert wider.variance[5] < NOISE


@pytest.mark.slow
def test_intervals_hold_after_a_change_of_labels() -> None:
    """Of labels that stay, are merged, or are new, at each of the next timestamps."""
    hits: list[Flags] = []
    for seed in range(60):
        wave = 0.02 * np.sin(np.arange(140) / 9 + seed)[:, None] * np.array([1, -1, 1, -1, 0])
        truth = TRUTH + wave
        smooth = followed(truth[:100], seed)
        names = [*"adf", "bc", "e"]
        move = Relabelling.between("abcde", names, ["a", "bc", "bc", "d", "e"])
        other = moved(smooth, move)
        rng = np.random.default_rng(seed + 1000)
        for row in truth[100:]:
            real = np.array([row[0], row[3], 0.06, row[1] + row[2], row[4] - 0.06])
            other.update(real + rng.normal(0, np.sqrt(NOISE), 5), np.full(5, NOISE))
            low, high = other.interval()
            hits.append((low <= real) & (real <= high))
    covered = np.array(hits).reshape(60, 40, 5)
    by_label, by_time = covered.mean(axis=(0, 1)), covered.mean(axis=(0, 2))
    assert by_label.min() > 0.85
    assert by_time.min() > 0.8


def test_a_season_goes_on_over_a_change() -> None:
    times = np.arange(400)
    wave = 0.08 * np.sin(2 * np.pi * times / 24)
    truth = np.stack([0.3 + wave, 0.25 - wave, 0.2 + 0 * wave, 0.25 + 0 * wave], axis=1)
    smooth = followed(truth[:350])
    other = moved(smooth, Relabelling.between("abcd", "dcbae"))
    fresh = Filter(5)
    rng = np.random.default_rng(5)
    errors: dict[str, list[float]] = {"kept": [], "anew": []}
    for row in truth[350:]:
        real = np.array([*row[::-1], 0.05])
        tally = real + rng.normal(0, np.sqrt(NOISE), 5)
        for name, one in (("kept", other), ("anew", fresh)):
            one.update(tally, np.full(5, NOISE))
            errors[name].append(np.mean((one.estimate - real)[:4] ** 2))
    assert 2 * np.mean(errors["kept"]) < np.mean(errors["anew"])


def test_cohorts_stay_for_labels_that_stay() -> None:
    """The offsets of the groups that take turns are known for them, and for nobody who is new."""
    window, rounds = 5, 40
    fleet = ReportingFleet(users=2000, window=window)
    rng = np.random.default_rng(2)
    offsets = rng.normal(0, 0.02, (window, 4))
    offsets -= offsets.mean(axis=0)
    smooth, base = Filter(4, fleet), np.full(4, 0.25)

    def tell(one: Filter, clock: int, truth: Floats, shifts: Floats) -> None:
        noise = rng.normal(0, 0.005, len(truth))
        one.update(truth + shifts[clock % window] + noise, np.full(len(truth), 4e-4 + 25e-6), 2e-3)

    for clock in range(1, window * rounds):
        tell(smooth, clock, base, offsets)
    other = moved(smooth, Relabelling.between("abcd", "abcde"), fleet)
    shifts = np.column_stack([offsets, rng.normal(0, 0.02, window)])
    spread = []
    for clock in range(window * rounds, window * rounds + 3 * window):
        tell(other, clock, np.array([*base, 0.1]), shifts)
        spread.append(other.estimate[:4] - base)
    assert np.std(spread) < 0.5 * np.std(offsets)


def test_another_window_deals_new_cohorts_and_keeps_the_rest() -> None:
    smooth = followed(np.tile(TRUTH, (60, 1)), fleet=ReportingFleet(users=1000, window=5))
    other = moved(smooth, Relabelling.same(5), ReportingFleet(users=1000, window=8))
    np.testing.assert_array_equal(other.estimate, smooth.estimate)
    see(other, np.tile(TRUTH, (20, 1)), 3)
    assert other.save()["cohorts"]["rounds"]["shape"] == [8]


def test_a_change_of_other_labels_is_refused() -> None:
    smooth = followed(np.tile(TRUTH, (5, 1)))
    with pytest.raises(Mistake, match="labels 5, not labels 3"):
        Filter(3).adopt(smooth.save(), Relabelling.same(3))
