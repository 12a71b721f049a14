"""The accountant, held against one that keeps every charge in a list."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.errors import GuaranteeBroken, Problem
from ldpstream.privacy.accountant import Accountant
from ldpstream.privacy.epsilon import LARGEST_NANO, NANO, Epsilon


class ListOfCharges:
    """All that was ever charged to each user; a window is summed anew each time."""

    def __init__(self, users: int, window: int) -> None:
        self._window = window
        self._charges: dict[int, list[tuple[int, int]]] = {user: [] for user in range(users)}

    def charge(self, t: int, users: list[int] | None, nano: int) -> int:
        """The most that one of those who are charged has spent in the window up to t."""
        charged = list(self._charges) if users is None else users
        for user in charged:
            self._charges[user].append((t, nano))
        return max((self.spent(user, t) for user in charged), default=0)

    def spent(self, user: int, t: int) -> int:
        return sum(nano for at, nano in self._charges[user] if t - self._window < at <= t)


@dataclass(frozen=True)
class Charge:
    gap: int
    users: list[int] | None
    nano: int


@st.composite
def accounts(draw: st.DrawFn) -> tuple[int, int, int, list[Charge]]:
    """Users, window, limit, and charges that together pass the limit at times."""
    users = draw(st.integers(1, 6))
    window = draw(st.integers(1, 6))
    limit = draw(st.integers(1, 60) | st.just(LARGEST_NANO))
    some = st.lists(st.integers(0, users - 1), max_size=users, unique=True)
    charge = st.builds(
        Charge,
        gap=st.integers(0, 2) | st.integers(0, 9),
        users=st.none() | some,
        nano=st.integers(1, max(1, limit // draw(st.integers(1, 8)))),
    )
    return users, window, limit, draw(st.lists(charge, max_size=30))


@settings(max_examples=300)
@given(account=accounts())
def test_it_raises_exactly_when_some_window_passes_the_limit(
    account: tuple[int, int, int, list[Charge]],
) -> None:
    """Everyone and single users mixed, several charges at one timestamp, timestamps missed."""
    users, window, limit, charges = account
    accountant, model, t = (
        Accountant(users, Epsilon(limit), window),
        ListOfCharges(users, window),
        1,
    )
    for charge in charges:
        t += charge.gap
        some = None if charge.users is None else np.array(charge.users, np.uint32)
        spent = model.charge(t, charge.users, charge.nano)
        if spent <= limit:
            accountant.charge(t, some, Epsilon(charge.nano))
            continue
        with pytest.raises(GuaranteeBroken) as broken:
            accountant.charge(t, some, Epsilon(charge.nano))
        facts = broken.value.facts
        assert broken.value.problem is Problem.EPSILON_EXCEEDED
        assert facts["spent"] == spent
        assert (facts["t"], facts["window"], facts["limit"]) == (t, window, limit)
        assert isinstance(facts["user"], int)
        assert model.spent(facts["user"], t) == spent
        return


def everyone(users: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return np.arange(users, dtype=np.uint32)


def test_a_window_is_full_up_to_the_last_nano_epsilon() -> None:
    accountant = Accountant(4, Epsilon(10), window=3)
    for t, nano in ((1, 3), (2, 3), (3, 4)):
        accountant.charge(t, everyone(4), Epsilon(nano))
    with pytest.raises(GuaranteeBroken, match="would have spent 11 nano-epsilon"):
        accountant.charge(3, everyone(4), Epsilon(1))


def test_a_charge_leaves_the_window_after_w_timestamps_and_not_before() -> None:
    for gap, allowed in ((4, False), (5, True), (50, True)):
        accountant = Accountant(2, Epsilon.of(1), window=5)
        accountant.charge(1, everyone(2), Epsilon.of(1))
        if allowed:
            accountant.charge(1 + gap, everyone(2), Epsilon.of(1))
        else:
            with pytest.raises(GuaranteeBroken):
                accountant.charge(1 + gap, everyone(2), Epsilon.of(1))


def test_a_user_who_is_named_twice_is_charged_twice() -> None:
    accountant = Accountant(3, Epsilon.of(1), window=2)
    with pytest.raises(GuaranteeBroken, match="user 1 would have spent 2000000000"):
        accountant.charge(1, np.array([0, 1, 1], np.uint32), Epsilon.of(1))


def test_a_charge_that_was_refused_stays_on_the_account() -> None:
    """Nothing is refunded: whoever catches the error cannot go on as if it had not happened."""
    accountant = Accountant(3, Epsilon.of(1), window=2)
    accountant.charge(1, None, Epsilon(NANO))
    with pytest.raises(GuaranteeBroken):
        accountant.charge(2, None, Epsilon(1))
    with pytest.raises(GuaranteeBroken, match="would have spent 1000000001"):
        accountant.charge(3, None, Epsilon(NANO))


def test_sums_are_exact_where_floats_are_not() -> None:
    """Ten times 0.1 is 1, and one nano-epsilon more is too much, at any size of the sum."""
    accountant = Accountant(1, Epsilon.of(1), window=10)
    for t in range(1, 11):
        accountant.charge(t, None, Epsilon.of("0.1"))
    for t in range(11, 1000):
        accountant.charge(t, None, Epsilon.of("0.1"))
    with pytest.raises(GuaranteeBroken, match="1000000001"):
        accountant.charge(999, None, Epsilon(1))


def test_an_ask_that_reaches_nobody_charges_nobody() -> None:
    accountant = Accountant(users=2, epsilon=Epsilon.of(1), window=3)
    accountant.charge(1, None, Epsilon.of(1))
    accountant.charge(1, np.array([], np.uint32), Epsilon.of(1))
