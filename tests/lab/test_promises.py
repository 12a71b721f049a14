"""Promises of other kinds: their estimates are unbiased, and their costs are what is said."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from ldpstream.arrays import Floats
from ldpstream.streams.synthetic import step
from tests.lab.promises.comparison import Case, PrivacyUnit, compare
from tests.lab.promises.dyadic import dyadic_releases
from tests.lab.promises.memoised import memoised_releases
from tests.lab.promises.persistent_ranking import PersistentRanking

STREAM = step(users=4000, timestamps=24, low=0.2, high=0.6, every=6)
REPEATS = 60


def mean_error(release: partial[Floats]) -> tuple[float, float]:
    """Return the mean error over repeats and timestamps, and its standard error."""
    truth = STREAM.table[:, 1] / STREAM.users
    errors = []
    for rng in map(np.random.default_rng, range(REPEATS)):
        released = release(users=PersistentRanking.of(STREAM, rng), rng=rng)
        errors.append(float((released - truth).mean()))
    return float(np.mean(errors)), float(np.std(errors)) / REPEATS**0.5


@pytest.mark.parametrize(
    "release",
    [
        partial(dyadic_releases, epsilon=4.0, changes=4),
        partial(memoised_releases, epsilon=1.0, window=4, permanent=2.0),
    ],
)
def test_releases_are_unbiased(release: partial[Floats]) -> None:
    bias, error = mean_error(release)
    assert abs(bias) < 5 * error < 0.2


def test_a_bound_on_changes_that_is_not_met_biases() -> None:
    """Users who come and go three times, of whom only the first change is told."""
    bias, error = mean_error(partial(dyadic_releases, epsilon=4.0, changes=1))
    assert bias > 5 * error


def test_settled_users_have_the_counts_of_the_stream() -> None:
    users = PersistentRanking.of(STREAM, np.random.default_rng(1))
    held = [int(users.holds(t).sum()) for t in range(1, STREAM.timestamps + 1)]
    assert held == STREAM.table[:, 1].tolist()
    assert users.most_changes() == 3


def test_more_protection_costs_more_and_ends_sooner() -> None:
    case = Case(STREAM, window=4)
    found = list(compare(case, repeats=2))
    least = {promise: min(c.mse for c in found if c.promise is promise) for promise in PrivacyUnit}
    assert least[PrivacyUnit.EVENT] < least[PrivacyUnit.WINDOW] < least[PrivacyUnit.USER]
    spent = {one.promise: one.spent for one in found}
    assert [spent[promise](24) for promise in PrivacyUnit] == [24, 6, 6, 1]
    assert [spent[promise](240) for promise in PrivacyUnit] == [240, 60, 8, None]
