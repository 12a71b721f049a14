"""How simulated users come to report: nobody twice in a window, and as many as it should be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from ldpstream.collector.rounds.selection import OpenSelection
from ldpstream.collector.store.contract import NewRound
from ldpstream.errors import Mistake
from ldpstream.lab.experiment import Experiment
from ldpstream.lab.selection import SELECTORS, OpenSelector, SlotSelector
from ldpstream.lab.simulation import simulate
from ldpstream.mechanisms.messages import Ask, Purpose
from ldpstream.mechanisms.registry import names, recipe
from ldpstream.mechanisms.settings import RunOptions
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.slots import EPOCH_WINDOWS
from ldpstream.protocol.terms import SelectionMethod
from ldpstream.streams.synthetic import constant, sin, step

FALSE_ALARM = 1e-6
ALL = Epsilon.of(1)
SMALL = sin(users=2_000, timestamps=60, b=0.1)


def ask(users: int) -> Ask:
    return Ask(users, ALL, Purpose.PUBLICATION)


def test_every_selection_can_be_simulated() -> None:
    assert set(SELECTORS) == set(SelectionMethod)


@given(
    selection=st.sampled_from([SelectionMethod.OPEN, SelectionMethod.SLOTS]),
    users=st.integers(2, 60),
    window=st.integers(2, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_nobody_reports_twice_in_a_window(
    selection: SelectionMethod, users: int, window: int, seed: int
) -> None:
    """Over two changes of epoch."""
    selector = SELECTORS[selection](users, window, np.random.default_rng(seed))
    last: dict[int, int] = {}
    for t in range(1, 2 * EPOCH_WINDOWS * window + 3 * window):
        drawn = selector.select(t, ask(max(users // window, 1)))
        assert drawn is not None
        for user in drawn.tolist():
            assert t - last.get(user, -window) >= window
            last[user] = t


class TestOpen:
    def test_the_rate_is_that_of_the_collector(self) -> None:
        """The numbers follow the rate that `OpenSelection` announces for the same history.

        Each is within a two-sided binomial tail of 1e-6 / 200, so all 200 are with 1e-6.
        """
        users, window, wanted = 3_000, 5, 600
        collector = OpenSelection(ALL, window, users)
        selector = OpenSelector(users, window, np.random.default_rng(3))
        busy: dict[int, int] = {}
        for t in range(1, 201):
            above, below = collector.choose(t, ask(wanted)).rate
            free = users - sum(number for at, number in busy.items() if at > t - window)
            drawn = selector.select(t, ask(wanted))
            assert drawn is not None
            busy[t] = len(drawn)
            low, high = binom.interval(1 - FALSE_ALARM / 200, free, above / below)
            assert low <= len(drawn) <= high
            collector.remember(_round(t, wanted))
            collector.heard(f"{t}-publication", len(drawn))

    def test_everyone_answers_where_everyone_is_asked(self) -> None:
        selector = OpenSelector(10, 3, np.random.default_rng(0))
        assert selector.select(1, ask(10)) is None

    @pytest.mark.parametrize("name", names())
    def test_every_mechanism_runs(self, name: str) -> None:
        source = step(users=2_000, timestamps=40, low=0.1, high=0.6, every=9)
        result = simulate(source, name, epsilon=1, window=5, selection="open", repeats=2)
        assert np.isfinite(result.runs[0].released).all()
        if recipe(name).division is recipe("lpu").division:
            assert result.mean("cfpu") <= 1 / 5


class TestSlots:
    def test_a_user_reports_every_w_timestamps_within_an_epoch(self) -> None:
        window = 4
        selector = SlotSelector(100, window, np.random.default_rng(1))
        turns: dict[int, list[int]] = {user: [] for user in range(100)}
        for t in range(1, EPOCH_WINDOWS * window + 1):
            for user in selector.select(t, ask(25)).tolist():
                turns[user].append(t)
        for times in turns.values():
            assert len(times) == EPOCH_WINDOWS
            assert {later - sooner for sooner, later in pairwise(times)} == {window}

    def test_slots_are_drawn_anew_for_each_epoch(self) -> None:
        """And uniformly: of 9,000 users, 3 slots; each cohort within a binomial tail of 1e-6."""
        window, users = 3, 9_000
        selector = SlotSelector(users, window, np.random.default_rng(2))
        length = EPOCH_WINDOWS * window
        cohorts = [set(selector.select(t, ask(1)).tolist()) for t in range(1, 2 * length + 1)]
        low, high = binom.interval(1 - FALSE_ALARM / 4, users, 1 / window)
        for start in (length - window, 2 * length - window):
            assert all(low <= len(cohort) <= high for cohort in cohorts[start : start + window])
        shared = len(cohorts[length - 1] & cohorts[2 * length - 1])
        low, high = binom.interval(1 - FALSE_ALARM / 4, users, 1 / window**2)
        assert low <= shared <= high

    def test_who_has_just_reported_waits_when_the_epoch_changes(self) -> None:
        """A user's turns are then w to 2w - 1 apart, and the first window is half empty."""
        window, users = 10, 10_000
        selector = SlotSelector(users, window, np.random.default_rng(4))
        length = EPOCH_WINDOWS * window
        sizes = [len(selector.select(t, ask(1))) for t in range(1, length + 2 * window + 1)]
        assert sum(sizes[:window]) == sum(sizes[length + window :]) == users
        first = sum(sizes[length : length + window])
        low, high = binom.interval(1 - FALSE_ALARM, users, (window + 1) / (2 * window))
        assert low <= first <= high

    @pytest.mark.parametrize("name", ["lpu", "lpf"])
    def test_the_cost_is_at_most_a_report_a_window(self, name: str) -> None:
        result = simulate(SMALL, name, epsilon=1, window=5, selection="slots", repeats=2)
        assert 0.9 / 5 < result.mean("cfpu") <= 1 / 5

    @pytest.mark.parametrize("oracle", ["grr", "oue", "olh", "subset", "hadamard"])
    def test_a_timestamp_without_any_report_is_no_trouble(self, oracle: str) -> None:
        few = constant(users=6, timestamps=40, p=0.5)
        for name in ("lpu", "lpf"):
            options = {"oracle": oracle, "selection": "slots"}
            (run,) = simulate(few, name, epsilon=1, window=6, **options).runs  # type: ignore[arg-type]
            assert np.isfinite(run.released).all()
            assert run.metrics.publications < 40

    @pytest.mark.parametrize("name", [name for name in names() if name not in ("lpu", "lpf")])
    def test_mechanisms_that_must_ask_are_refused_in_one_line(self, name: str) -> None:
        line = "^selection slots works only with lpu and lpf; use open or roster$"
        with pytest.raises(Mistake, match=line):
            simulate(SMALL, name, epsilon=1, window=5, selection="slots")
        options = RunOptions.read(selection="slots")
        with pytest.raises(Mistake, match=line):
            Experiment([SMALL], ["lpu", name], windows=[5], options=options).tasks()


def test_releases_of_every_selection_are_unbiased_with_the_variance_stated() -> None:
    """LPU: mean and mean square of 400 standardised errors, at 5 sd."""
    source = constant(users=3_000, timestamps=40, p=0.3)
    for selection in SelectionMethod:
        options = {"oracle": "grr", "selection": selection}
        result = simulate(source, "lpu", epsilon=2, window=4, repeats=10, seed=5, **options)  # type: ignore[arg-type]
        errors = np.concatenate(
            [((run.released - run.truth) / np.sqrt(run.variance))[:, 1] for run in result.runs]
        )
        assert abs(errors.mean()) < 5 / len(errors) ** 0.5
        assert (errors**2).mean() == pytest.approx(1, abs=5 * (2 / len(errors)) ** 0.5)


def test_an_unknown_selection_is_refused() -> None:
    with pytest.raises(Mistake, match="selection is lottery; give one of slots, open, roster"):
        simulate(SMALL, "lpu", epsilon=1, window=5, selection="lottery")


def _round(t: int, users: int) -> NewRound:
    name, rate = f"{t}-publication", (1, 1)
    return NewRound(t, name, "publication", ALL.nano, users, rate, 1, 0, 1, 0, None)
