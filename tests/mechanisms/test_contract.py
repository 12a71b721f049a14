"""What every registered mechanism promises; a new one is tested by being registered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.mechanism import drive
from ldpstream.mechanisms.messages import Ask, Purpose, Tally
from ldpstream.mechanisms.noise import VarianceRule
from ldpstream.mechanisms.registry import PAPER, build, names
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import NANO
from tests.mechanisms.driving import (
    Answer,
    BookkeepingAccountant,
    Case,
    Event,
    asked_per_timestamp,
    cases,
    jumping_at,
    least_units,
    live,
    live_on,
    lives,
    most_in_a_window,
    most_spent,
    noisy_answers,
    restored,
    steady,
    take,
    told,
    watched,
)

seeds = st.integers(0, 2**32 - 1)
every_mechanism = pytest.mark.parametrize("name", names())
the_paper_s = pytest.mark.parametrize("name", PAPER)


@every_mechanism
@settings(max_examples=30)
@given(data=st.data(), seed=seeds, events=lives())
def test_no_user_exceeds_epsilon_in_any_window_of_any_life(
    name: str, data: st.DataObject, seed: int, events: list[Event]
) -> None:
    """Missed and abandoned timestamps, lost reports and restarts included; audited twice."""
    case = data.draw(cases(name))
    accountant = BookkeepingAccountant(case.users, case.epsilon, case.window)
    live(case, events, watched(case, noisy_answers(case, seed), accountant))
    assert most_spent(accountant.book, case.window) <= case.nano


@every_mechanism
@settings(max_examples=30)
@given(data=st.data(), seed=seeds, events=lives(most=40))
def test_asks_of_any_window_sum_to_at_most_the_whole(
    name: str, data: st.DataObject, seed: int, events: list[Event]
) -> None:
    """In exact integers, over all windows, whoever the users are."""
    case = data.draw(cases(name))
    moments = live(case, events, noisy_answers(case, seed))
    asked = asked_per_timestamp(moments)
    assert most_in_a_window(asked, case.window) <= case.users * case.nano


@every_mechanism
@settings(max_examples=20)
@given(data=st.data(), seed=seeds, events=lives())
def test_a_restored_mechanism_continues_as_if_nothing_had_happened(
    name: str, data: st.DataObject, seed: int, events: list[Event]
) -> None:
    case = data.draw(cases(name))
    answers = noisy_answers(case, seed)
    uninterrupted = live(case, [Event(e.gap, e.abandon) for e in events], answers)
    interrupted = live(case, events, answers)
    for one, other in zip(uninterrupted, interrupted, strict=True):
        assert one.asks == other.asks
        assert (one.release is None) == (other.release is None)
        if one.release is not None and other.release is not None:
            assert one.release.to_json() == other.release.to_json()


@every_mechanism
@settings(max_examples=20)
@given(data=st.data(), seed=seeds, events=lives(most=12))
def test_a_timestamp_is_replayed_from_its_tallies(
    name: str, data: st.DataObject, seed: int, events: list[Event]
) -> None:
    """After a crash at t the collector has the state before t and the tallies it stored."""
    case = data.draw(cases(name))
    answers = noisy_answers(case, seed)
    mechanism, t = case.build(), 0
    for event in events:
        t += event.gap
        twin = restored(mechanism, case.build())
        first = take(mechanism.step(t), t, answers(t))
        stored = iter(first.tallies)
        again = take(twin.step(t), t, lambda _, stored=stored: next(stored))  # type: ignore[misc]
        assert again.asks == first.asks
        assert twin.save() == mechanism.save()


@every_mechanism
def test_a_timestamp_is_never_taken_twice(name: str) -> None:
    case = Case(name)
    mechanism = case.build()
    drive(mechanism.step(5), told(case, [0.5, 0.5]))
    for holder in (mechanism, restored(mechanism, case.build())):
        for t in (5, 4, 0, -1):
            with pytest.raises(Mistake, match="in increasing order") as refusal:
                next(holder.step(t))
            assert refusal.value.problem is Problem.TIMESTAMP_ORDER
    assert drive(mechanism.step(6), told(case, [0.5, 0.5])).t == 6


@every_mechanism
def test_a_timestamp_given_up_is_not_taken_again(name: str) -> None:
    case = Case(name)
    mechanism = case.build()
    step = mechanism.step(1)
    next(step)
    step.close()
    with pytest.raises(Mistake, match="in increasing order"):
        next(mechanism.step(1))


@the_paper_s
@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize("rule", VarianceRule)
@pytest.mark.parametrize(
    "silent",
    [{Purpose.DISSIMILARITY}, {Purpose.PUBLICATION}, set(Purpose)],
    ids=["probe", "publication", "all"],
)
def test_an_ask_without_reports_gives_an_approximation(
    name: str, silent: set[Purpose], rule: VarianceRule, pool: bool
) -> None:
    case = Case(name, labels=3, variance=rule, pool=pool)
    mechanism = case.build()
    answers = jumping_at(case, range(1, 40))
    last = None
    for t in range(1, 40):
        moment = take(mechanism.step(t), t, _silenced(answers(t), silent if t > 15 else set()))
        release = moment.release
        assert release is not None
        assert np.isfinite(release.values).all()
        assert np.isfinite(release.variance).all()
        if t > 15 and (Purpose.PUBLICATION in silent or not _published(moment.asks)):
            assert last is not None
            assert not release.fresh
            assert release.values.tolist() == last.values.tolist()
        last = release


@every_mechanism
def test_a_fleet_that_falls_silent_leaves_finite_releases_that_are_not_fresh(name: str) -> None:
    case = Case(name, labels=3)
    mechanism = case.build()
    answers = jumping_at(case, range(1, 60))
    for t in range(1, 60):
        silent = set(Purpose) if t > 15 else set()
        release = take(mechanism.step(t), t, _silenced(answers(t), silent)).release
        assert release is not None
        assert np.isfinite(release.values).all()
        assert np.isfinite(release.variance).all()
        assert np.isfinite(release.interval).all()
        assert not (release.fresh and t > 15)


@every_mechanism
@pytest.mark.parametrize("times", [3, 8])
def test_a_fleet_larger_than_was_said_leaves_variances_that_are_some(name: str, times: int) -> None:
    """An open stream has as many devices as come. Epsilon is large: hardly any noise beside."""
    case = Case(name, labels=4, users=1000, nano=4 * NANO, window=2)
    mechanism = build(name, replace(case.settings, intervals=True))
    rng = np.random.default_rng(1)

    def answer(ask: Ask) -> Tally:
        counts = rng.multinomial(times * ask.users, [0.4, 0.3, 0.2, 0.1])
        support = Oracle.GRR.lab(case.labels, ask.epsilon).sample_support(counts, rng)
        return mechanism.noise.tally(ask.epsilon, support)

    for moment in live_on(mechanism, steady(60), lambda _: answer, case.build):
        assert moment.release is not None
        assert np.isfinite(moment.release.values).all()
        assert np.isfinite(moment.release.variance).all()
        assert (moment.release.variance > 0).all()


@every_mechanism
def test_a_publication_that_nobody_answered_is_not_refunded(name: str) -> None:
    case = Case(name)
    heard, unheard = case.build(), case.build()
    far = told(case, [9.0, 9.0])
    t = _first_publication(case, far)
    for mechanism, answer in ((heard, far), (unheard, _silenced(far, {Purpose.PUBLICATION}))):
        live_on(mechanism, steady(t), lambda _, answer=answer: answer, case.build)  # type: ignore[misc]
    assert heard.publications == unheard.publications != ()


@every_mechanism
def test_an_abandoned_publication_counts_as_spent(name: str) -> None:
    case = Case(name)
    complete, given_up = case.build(), case.build()
    far = told(case, [9.0, 9.0])
    t = _first_publication(case, far)
    for mechanism in (complete, given_up):
        live_on(mechanism, steady(t - 1), lambda _: far, case.build)
    asks = take(complete.step(t), t, far).asks
    moment = take(given_up.step(t), t, far, abandon=len(asks) - 1)
    assert moment.release is None
    assert moment.asks == asks
    assert given_up.publications == complete.publications != ()
    assert given_up.state.t == t
    assert given_up.state.release.values.tolist() == [0, 0]


@the_paper_s
def test_estimates_are_released_raw(name: str) -> None:
    """Neither clipped nor normalised: consistency is a step of its own."""
    case = Case(name)
    raw = told(case, [-0.375, 1.875])
    t = _first_publication(case, raw)
    released = live(case, steady(t), lambda _: raw)[-1].release
    assert released is not None
    assert released.fresh
    assert released.values.tolist() == [-0.375, 1.875]


@every_mechanism
@pytest.mark.parametrize("rule", VarianceRule)
@pytest.mark.parametrize("pool", [False, True])
def test_epsilon_of_one_nano_a_slot_gives_finite_releases(
    name: str, rule: VarianceRule, pool: bool
) -> None:
    least = least_units(name, 10)
    case = Case(name, users=2 * least, nano=least, window=10, variance=rule, pool=pool)
    for moment in live(case, steady(40), noisy_answers(case, seed=1)):
        assert moment.release is not None
        assert np.isfinite(moment.release.values).all()
        assert np.isfinite(moment.release.variance).all()


@every_mechanism
@pytest.mark.parametrize("other", [Case("", window=11), Case("", labels=3), Case("", nano=10**8)])
def test_a_state_is_not_taken_up_under_other_parameters(name: str, other: Case) -> None:
    saved = Case(name).build().save()
    stranger = replace(other, name=name).build()
    with pytest.raises(Mistake, match="restore it with the settings"):
        stranger.restore(saved)


def test_a_state_is_not_taken_up_by_another_mechanism() -> None:
    for name in names():
        for other in names():
            mechanism, stranger = Case(name).build(), Case(other).build()
            if name != other:
                with pytest.raises(Mistake, match="restore it with the settings"):
                    stranger.restore(mechanism.save())


def _silenced(answer: Answer, silent: set[Purpose]) -> Answer:
    """`answer`, except that nobody reports for the purposes in `silent`."""

    def or_nothing(ask: Ask) -> Tally:
        tally = answer(ask)
        return Tally.empty(len(tally.estimate)) if ask.purpose in silent else tally

    return or_nothing


def _published(asks: tuple[Ask, ...]) -> bool:
    return any(ask.purpose is Purpose.PUBLICATION for ask in asks)


def _first_publication(case: Case, answer: Answer) -> int:
    """Return when a mechanism that always hears `answer` first publishes."""
    moments = live(case, steady(3 * case.window), lambda _: answer)
    return next(moment.t for moment in moments if _published(moment.asks))
