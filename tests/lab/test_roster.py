"""The roster: exact sizes, nobody twice in a window, all subsets alike, few bytes."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from ldpstream.errors import GuaranteeBroken, Problem
from ldpstream.lab.fleet import LabFleet
from ldpstream.lab.roster import Roster
from ldpstream.mechanisms.messages import Ask, Purpose
from ldpstream.mechanisms.noise import NoiseModel, VarianceRule
from ldpstream.oracles import Oracle
from ldpstream.privacy.accountant import Accountant
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import CountsSnapshot

FALSE_ALARM = 1e-6


@given(
    users=st.integers(1, 40),
    window=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
    asks=st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1)), max_size=40),
)
def test_samples_have_the_size_asked_for_and_are_disjoint_within_a_window(
    users: int, window: int, seed: int, asks: list[tuple[int, float]]
) -> None:
    """Whatever the gaps between timestamps; those free again can all be had."""
    roster = Roster(users, window, np.random.default_rng(seed))
    t, out = 1, dict[int, int]()
    for gap, share in asks:
        t += gap
        busy = {user for user, since in out.items() if since > t - window}
        size = int(share * (users - len(busy)))
        drawn = roster.sample(t, size).tolist()
        assert len(drawn) == len(set(drawn)) == size
        assert busy.isdisjoint(drawn)
        assert set(drawn) <= set(range(users))
        out |= dict.fromkeys(drawn, t)
    busy = {user for user, since in out.items() if since > t - window}
    with pytest.raises(GuaranteeBroken) as exhausted:
        roster.sample(t, users - len(busy) + 1)
    assert exhausted.value.problem is Problem.ROSTER_EXHAUSTED
    assert set(roster.sample(t, users - len(busy)).tolist()) == set(range(users)) - busy


def test_users_are_free_again_after_w_timestamps_and_not_before() -> None:
    """docs/paper-corrections.md, 6: those of t-w+1 are freed at the end of t, for t+1."""
    roster = Roster(4, 3, np.random.default_rng(0))
    roster.sample(1, 4)
    for t in (1, 2, 3):
        with pytest.raises(GuaranteeBroken, match=f"at t={t}, but only 0 are available"):
            roster.sample(t, 1)
    assert len(roster.sample(4, 4)) == 4


def test_all_subsets_are_alike() -> None:
    """Chi-square over the 20 subsets of 3 of 6; false alarm 1e-6, and the seed is fixed."""
    rng = np.random.default_rng(11)
    cells = dict.fromkeys(combinations(range(6), 3), 0)
    for _ in range(20_000):
        cells[tuple(sorted(Roster(6, 2, rng).sample(1, 3).tolist()))] += 1
    assert _chi_square(list(cells.values())) < chi2.isf(FALSE_ALARM, len(cells) - 1)


def test_recycled_users_are_as_likely_as_any_other() -> None:
    """One of 4 users a timestamp, w=2: at t=3 all are free but the one of t=2.

    So all 36 ways to draw three times, no two neighbours the same, are alike.
    """
    rng = np.random.default_rng(12)
    cells = dict.fromkeys(permutations(range(4), 3), 0) | {
        (a, b, a): 0 for a, b in permutations(range(4), 2)
    }
    for _ in range(30_000):
        roster = Roster(4, 2, rng)
        first, second, third = (int(roster.sample(t, 1)[0]) for t in (1, 2, 3))
        cells[first, second, third] += 1
    assert _chi_square(list(cells.values())) < chi2.isf(FALSE_ALARM, len(cells) - 1)


def test_two_asks_of_a_timestamp_share_the_users_fairly() -> None:
    """Dissimilarity and publication users of one t: all ordered pairs of disjoint subsets alike."""
    rng = np.random.default_rng(13)
    cells: dict[tuple[tuple[int, ...], int], int] = {
        (pair, one): 0 for pair in combinations(range(5), 2) for one in range(5) if one not in pair
    }
    for _ in range(30_000):
        roster = Roster(5, 9, rng)
        pair, one = tuple(sorted(roster.sample(1, 2).tolist())), int(roster.sample(1, 1)[0])
        cells[pair, one] += 1
    assert _chi_square(list(cells.values())) < chi2.isf(FALSE_ALARM, len(cells) - 1)


@pytest.mark.parametrize("per_step", [1 / 20, 1 / 40])
def test_roster_and_accountant_take_at_most_16_bytes_a_user(per_step: float) -> None:
    """All arrays that the two hold after many windows, shared ones counted once."""
    users, window = 100_000, 20
    rng = np.random.default_rng(14)
    accountant = Accountant(users, Epsilon.of(1), window)
    roster = Roster(users, window, rng)
    noise = NoiseModel(Oracle.GRR, 2, users, VarianceRule.CORRECTED)
    fleet = LabFleet(noise, accountant, roster, rng)
    ask = Ask(int(users * per_step), Epsilon.of(1), Purpose.PUBLICATION)
    counts = np.array([users - 10, 10])
    for t in range(1, 3 * window):
        fleet.at(t, CountsSnapshot(counts))(ask)
    arrays = _arrays([vars(roster), vars(accountant)])
    assert len(arrays) >= 2 + window
    assert sum(array.nbytes for array in arrays) <= 16 * users


def _arrays(thing: object) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """Every array reachable through containers and objects of ours, once."""
    found: dict[int, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {}
    pending: list[object] = [thing]
    while pending:
        item = pending.pop()
        if isinstance(item, np.ndarray):
            # A view keeps all of its base alive.
            owner = item if item.base is None else item.base
            assert isinstance(owner, np.ndarray)
            found[id(owner)] = owner
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, str | np.random.Generator):
            continue
        elif hasattr(item, "__iter__"):
            pending.extend(item)
        elif hasattr(item, "__dict__"):
            pending.append(vars(item))
    return list(found.values())


def _chi_square(cells: list[int]) -> float:
    observed = np.array(cells)
    expected = observed.sum() / len(observed)
    return float(((observed - expected) ** 2 / expected).sum())
