"""What every registered mechanism keeps when the terms of its stream change."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.arrays import Floats
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.division import PopulationDivision
from ldpstream.mechanisms.mechanism import Mechanism, Publication, Step, drive
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.registry import build, names, register, unregister
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import NANO
from ldpstream.refine.relabelling import Relabelling
from tests.mechanisms.driving import (
    Answer,
    Answers,
    Case,
    Event,
    jumping_at,
    live_on,
    lives,
    noisy_answers,
    steady,
    told,
)

seeds = st.integers(0, 2**32 - 1)
every_mechanism = pytest.mark.parametrize("name", names())
OLD, NEW = ("a", "b", "c", "d"), ("d", "bc", "e", "A")
MOVE = Relabelling.between(OLD, NEW, called=("A", "bc", "bc", "d"))
"""a is called A, b and c are merged, d moves to another place, e is new."""


def adopted(old: Mechanism, new: Mechanism, move: Relabelling | None = None) -> Mechanism:
    """The new mechanism with the state of the old one, by way of JSON text."""
    new.adopt(json.loads(json.dumps(old.save())), move)
    return new


def observed(case: Case) -> Mechanism:
    """The mechanism as the collector runs it, with intervals."""
    return build(case.name, replace(case.settings, intervals=True))


@every_mechanism
@settings(max_examples=15)
@given(seed=seeds, events=lives(most=15))
def test_without_a_change_adopting_is_restoring(name: str, seed: int, events: list[Event]) -> None:
    case = Case(name, labels=3)
    for fresh in (case.build, lambda: observed(case)):
        mechanism = fresh()
        live_on(mechanism, [Event(e.gap) for e in events], noisy_answers(case, seed), fresh)
        restored = fresh()
        assert restored.adopt(mechanism.save()) == ()
        assert restored.save() == mechanism.save()


@every_mechanism
@pytest.mark.parametrize("intervals", [False, True])
@settings(max_examples=15)
@given(seed=seeds, events=lives(most=15), after=lives(most=15))
def test_labels_change_in_the_middle_of_any_life(
    name: str, intervals: bool, seed: int, events: list[Event], after: list[Event]
) -> None:
    case = Case(name, labels=len(OLD))
    fresh = partial(observed, case) if intervals else case.build
    old, new = fresh(), fresh()
    live_on(old, [Event(e.gap, e.abandon) for e in events], noisy_answers(case, seed), fresh)
    new.adopt(json.loads(json.dumps(old.save())), MOVE)
    assert new.state.t == old.state.t
    assert new.publications == old.publications
    before, now = old.state.release.values, new.state.release.values
    np.testing.assert_allclose(now, [before[3], before[1] + before[2], 0, before[0]])
    assert new.state.release.variance[2] == 1.0
    for moment in live_on(new, after, noisy_answers(case, seed + 1), fresh):
        if moment.release is not None:
            assert np.isfinite(moment.release.values).all()
            assert np.isfinite(moment.release.interval).all()
            assert (moment.release.variance > 0).all()


@every_mechanism
def test_a_label_that_stays_is_released_as_before_and_a_new_one_as_unknown(name: str) -> None:
    """Nobody answers after the change: what is carried over is all that there is."""
    case = Case(name, labels=4, users=100_000, nano=4 * NANO)
    mechanism = observed(case)
    mechanism.consistency = mechanism.consistency.NONE
    shares = [0.1, 0.2, 0.3, 0.4]
    live_on(mechanism, steady(60), _fleet(case, np.array(shares), 1), case.build)
    new = adopted(mechanism, observed(case), MOVE)
    new.consistency = mechanism.consistency
    release = drive(new.step(61), told(case, shares, reports=0))
    kept = [0, 1, 3]
    np.testing.assert_allclose(release.values[kept], [0.4, 0.5, 0.1], atol=0.03)
    low, high = release.interval
    assert (high - low)[kept].max() < 0.2
    assert low[2] == 0.0
    assert high[2] > 0.6


@every_mechanism
def test_a_removed_label_leaves_nothing(name: str) -> None:
    case, smaller = Case(name, labels=3), Case(name, labels=2)
    mechanism = observed(case)
    live_on(mechanism, steady(40), noisy_answers(case, 1), case.build)
    new = adopted(mechanism, observed(smaller), Relabelling.between(["a", "b", "c"], ["c", "a"]))
    before, now = mechanism.state.release, new.state.release
    assert now.values.tolist() == before.values[[2, 0]].tolist()
    assert now.variance.tolist() == before.variance[[2, 0]].tolist()


@every_mechanism
@pytest.mark.parametrize(
    "change", [{"users": 30_000}, {"users": 3000}, {"nano": NANO // 2}, {"window": 14}]
)
def test_population_epsilon_and_window_may_change(name: str, change: dict[str, int]) -> None:
    case = Case(name, labels=3)
    other = replace(case, **change)  # type: ignore[arg-type]
    old, new = observed(case), observed(other)
    live_on(old, steady(30), jumping_at(case, range(1, 30, 7)), case.build)
    anew = new.adopt(old.save())
    by_window = {
        "lpu": "cohorts",
        "lpf": "cohorts",
        "pegasus": "memory",
        "pegasus-budget": "memory",
    }
    expected = by_window.get(name) if "window" in change else None
    assert bool(anew) == (expected is not None)
    assert all(str(expected) in part for part in anew)
    assert new.state.t == 30
    assert new.state.release.to_json()["values"] == old.state.release.to_json()["values"]
    whole = new.division.total
    amounts = [Publication(one.t, min(one.amount, whole)) for one in old.publications]
    assert list(new.publications) == amounts
    for moment in live_on(new, steady(40), noisy_answers(other, 1), other.build):
        assert moment.release is not None
        assert np.isfinite(moment.release.interval).all()


def test_any_mechanism_goes_on_from_any_other() -> None:
    for name in names():
        case = Case(name, labels=3)
        for plain in (case.build(), observed(case)):
            live_on(plain, steady(25), noisy_answers(case, 1), case.build)
            for other in names():
                successor = replace(case, name=other)
                for new in (successor.build(), observed(successor)):
                    anew = " ".join(new.adopt(plain.save()))
                    divided = type(plain.division) is not type(new.division)
                    assert ("publications" in anew) == divided
                    assert new.state.t == 25
                    moments = live_on(new, steady(3), noisy_answers(case, 2), successor.build)
                    assert moments[-1].release is not None


def test_what_a_filter_knew_is_worth_having() -> None:
    """LPF over a change of labels is as good at once as before it; one that begins anew is not."""
    case = Case("lpf", labels=4, users=10_000)
    truth = np.array([0.1, 0.2, 0.3, 0.4])
    errors: list[float] = []
    anew: list[float] = []
    for seed in range(10):
        old = case.build()
        live_on(old, steady(80), _fleet(case, truth, seed), case.build)
        later = _fleet(case, truth[[3, 0, 1, 2]], seed + 100)
        move = Relabelling.between("abcd", "dabc")
        for new, sink in ((adopted(old, case.build(), move), errors), (case.build(), anew)):
            release = drive(new.step(81), later(81))
            sink.append(np.mean((release.values - truth[[3, 0, 1, 2]]) ** 2))
    assert 5 * np.mean(errors) < np.mean(anew)


def test_the_wrong_change_of_labels_is_refused() -> None:
    mechanism = Case("lpf", labels=3).build()
    with pytest.raises(Mistake, match="labels 3, not labels 4 that became 4") as refusal:
        Case("lpf", labels=4).build().adopt(mechanism.save(), MOVE)
    assert refusal.value.problem is Problem.STATE_MISMATCH


def test_labels_that_have_nothing_in_common_begin_anew_in_words() -> None:
    old, new = Case("lpf", labels=3).build(), Case("lpf", labels=4).build()
    live_on(old, steady(5), noisy_answers(Case("lpf", labels=3), 1), Case("lpf").build)
    assert new.adopt(old.save()) == ("the releases: no label is left of those of before",)
    assert new.state.t == 5


@dataclass(frozen=True)
class Plain:
    count: int = 0


@dataclass(frozen=True)
class ByLabel:
    means: Floats


class Remembering(Mechanism):
    """A mechanism with a memory: a number, or one for each label."""

    def first_memory(self) -> Plain | ByLabel:
        return Plain()

    def decide(self, t: int) -> Step:
        self.memory = self.remember(t)
        tally = yield self.ask_publication(t, self.division.share(self.window))
        return self.publish(t, tally)

    def remember(self, t: int) -> Plain | ByLabel:
        return Plain(t)


class RememberingLabels(Remembering):
    def first_memory(self) -> ByLabel:
        return ByLabel(np.zeros(self.noise.labels))

    def remember(self, t: int) -> ByLabel:
        return ByLabel(np.full(self.noise.labels, float(t)))


def test_a_memory_is_kept_if_it_still_means_something() -> None:
    register("plain", Remembering, PopulationDivision)
    register("by-label", RememberingLabels, PopulationDivision)
    try:
        for name, anew in (("plain", ()), ("by-label", ("the memory of RememberingLabels",))):
            case = Case(name, labels=4)
            old, same, changed = case.build(), case.build(), case.build()
            live_on(old, steady(3), noisy_answers(case, 1), case.build)
            assert same.adopt(old.save()) == ()
            assert same.save() == old.save()
            assert changed.adopt(old.save(), MOVE) == anew
            assert (changed.save()["memory"] == old.save()["memory"]) == (not anew)
    finally:
        unregister("plain")
        unregister("by-label")


def _fleet(case: Case, truth: Floats, seed: int) -> Answers:
    """A fleet of which everybody who is asked reports a value drawn from `truth`."""

    def at(t: int) -> Answer:
        rng = np.random.default_rng([seed, t])

        def answer(ask: Ask) -> Tally:
            counts = rng.multinomial(ask.users, truth)
            support = Oracle.GRR.lab(case.labels, ask.epsilon).sample_support(counts, rng)
            return Tally.of(Oracle.GRR.collector(case.labels, ask.epsilon), support, case.users)

        return answer

    return at
