"""How the tests drive mechanisms: cases, scripted answers, whole lives, and an audit of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from hypothesis import strategies as st

from ldpstream.arrays import UserIndexes
from ldpstream.lab.fleet import LabFleet
from ldpstream.lab.roster import Roster
from ldpstream.mechanisms.mechanism import Mechanism, Step
from ldpstream.mechanisms.messages import Ask, Purpose, Release, Tally
from ldpstream.mechanisms.noise import NoiseModel, VarianceRule
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.settings import Settings
from ldpstream.oracles import Oracle
from ldpstream.privacy.accountant import Accountant
from ldpstream.privacy.epsilon import NANO, Epsilon
from ldpstream.streams.stream import CountsSnapshot

Answer = Callable[[Ask], Tally]
Answers = Callable[[int], Answer]
"""How a fleet answers the asks of each timestamp."""


@dataclass(frozen=True)
class Case:
    """A mechanism by name, and the parameters of its stream."""

    name: str
    labels: int = 2
    users: int = 10_000
    nano: int = NANO
    window: int = 10
    variance: VarianceRule = VarianceRule.PAPER
    pool: bool = False

    @property
    def epsilon(self) -> Epsilon:
        return Epsilon(self.nano)

    @property
    def settings(self) -> Settings:
        return Settings(
            labels=self.labels,
            users=self.users,
            epsilon=self.epsilon,
            window=self.window,
            oracle=Oracle.GRR,
            variance=self.variance,
            pool=self.pool,
        )

    def build(self) -> Mechanism:
        return build(self.name, self.settings)


PARTS = {"pegasus": 5, "spas": 4}
"""Parts of a timestamp's share, of at least a unit each, where they are not two."""


def least_units(name: str, window: int) -> int:
    """The units, users or nano-epsilon, that a window must have for this mechanism."""
    return PARTS.get(name.removesuffix("-budget"), 2) * window


@st.composite
def cases(draw: st.DrawFn, name: str) -> Case:
    """Small fleets and short windows, epsilon from one nano a slot upwards."""
    window = draw(st.integers(1, 8))
    least = least_units(name, window)
    return Case(
        name,
        labels=draw(st.integers(2, 5)),
        users=draw(st.integers(least, 80)),
        nano=draw(st.integers(least, 200) | st.integers(least, 8 * NANO)),
        window=window,
        variance=draw(st.sampled_from(VarianceRule)),
        pool=draw(st.booleans()),
    )


@dataclass(frozen=True)
class Event:
    """One timestamp in the life of a mechanism."""

    gap: int = 1
    """How far after the timestamp before it: more than 1 means that some were missed."""
    abandon: int | None = None
    """Give the timestamp up once this many asks were answered."""
    restore: bool = False
    """Afterwards carry on with a fresh object, from the saved state."""


def lives(most: int = 25) -> st.SearchStrategy[list[Event]]:
    event = st.builds(
        Event,
        gap=st.just(1) | st.integers(1, 12),
        abandon=st.none() | st.integers(0, 2),
        restore=st.booleans(),
    )
    return st.lists(event, min_size=1, max_size=most)


@dataclass(frozen=True)
class Moment:
    """What a mechanism did at t; `release` is None if the timestamp was given up."""

    t: int
    asks: tuple[Ask, ...]
    tallies: tuple[Tally, ...]
    release: Release | None


def steady(timestamps: int) -> list[Event]:
    """A life without incidents."""
    return [Event()] * timestamps


def live(case: Case, events: Iterable[Event], answers: Answers) -> list[Moment]:
    """Live through the events, one timestamp after another."""
    return live_on(case.build(), events, answers, case.build)


def live_on(
    mechanism: Mechanism,
    events: Iterable[Event],
    answers: Answers,
    fresh: Callable[[], Mechanism],
) -> list[Moment]:
    """The same with a mechanism at hand, and a way to make another one like it."""
    moments = []
    t = mechanism.state.t
    for event in events:
        t += event.gap
        moments.append(take(mechanism.step(t), t, answers(t), event.abandon))
        if event.restore:
            mechanism = restored(mechanism, fresh())
    return moments


def take(step: Step, t: int, answer: Answer, abandon: int | None = None) -> Moment:
    """Take a timestamp, up to `abandon` answers: the ask after those is made and then dropped."""
    asks: list[Ask] = []
    tallies: list[Tally] = []
    try:
        asks.append(next(step))
        while True:
            # The users were asked and have reported, whether or not anybody listens.
            heard = answer(asks[-1])
            if abandon is not None and len(tallies) >= abandon:
                step.close()
                return Moment(t, tuple(asks), tuple(tallies), None)
            tallies.append(heard)
            asks.append(step.send(heard))
    except StopIteration as done:
        release: Release = done.value
        return Moment(t, tuple(asks), tuple(tallies), release)


def restored(mechanism: Mechanism, fresh: Mechanism) -> Mechanism:
    """A fresh object with the state of `mechanism`, by way of JSON text."""
    fresh.restore(json.loads(json.dumps(mechanism.save())))
    return fresh


def noisy_answers(case: Case, seed: int, *, losses: bool = True) -> Answers:
    """Reports of a fleet whose values jump every few timestamps; some or all may be lost.

    What is answered depends on the seed, the timestamp and the ask, and on nothing else.
    """

    def at(t: int) -> Answer:
        truth = np.random.default_rng([seed, t // 4]).dirichlet(np.full(case.labels, 0.5))

        def answer(ask: Ask) -> Tally:
            rng = np.random.default_rng([seed, t, list(Purpose).index(ask.purpose)])
            arrived = ask.users
            if losses and rng.random() < 0.4:
                arrived = int(rng.integers(ask.users + 1)) * int(rng.random() < 0.6)
            counts = rng.multinomial(arrived, truth)
            support = Oracle.GRR.lab(case.labels, ask.epsilon).sample_support(counts, rng)
            return Tally.of(Oracle.GRR.collector(case.labels, ask.epsilon), support, case.users)

        return answer

    return at


def told(case: Case, values: Sequence[float], reports: int | None = None) -> Answer:
    """Everybody asked answers, and the estimate is `values`, whatever the ask."""

    def answer(ask: Ask) -> Tally:
        estimate = np.array(values, np.float64)
        count = ask.users if reports is None else reports
        if count == 0:
            return Tally.empty(case.labels)
        collector = Oracle.GRR.collector(case.labels, ask.epsilon)
        variance = collector.variance(count, np.clip(estimate, 0, 1), case.users)
        return Tally(estimate, variance, count)

    return answer


def jumping_at(case: Case, jumps: Iterable[int]) -> Answers:
    """A stream that moves far at each of `jumps` and stays exactly as it was in between."""
    moments = set(jumps)

    def at(t: int) -> Answer:
        height = 1e3 * sum(jump <= t for jump in moments)
        return told(case, [height] * case.labels)

    return at


Charge = tuple[int, tuple[int, ...], int]
"""Timestamp, users who reported, nano-epsilon of each report."""


class BookkeepingAccountant(Accountant):
    """An accountant that also writes down what it is told, for an audit by other means."""

    def __init__(self, users: int, epsilon: Epsilon, window: int) -> None:
        super().__init__(users, epsilon, window)
        self.book: list[Charge] = []
        self._everyone = tuple(range(users))

    def charge(self, t: int, users: UserIndexes | None, epsilon: Epsilon) -> None:
        reporting = self._everyone if users is None else tuple(users.tolist())
        self.book.append((t, reporting, epsilon.nano))
        super().charge(t, users, epsilon)


def watched(
    case: Case,
    answers: Answers,
    accountant: Accountant | None = None,
    roster: Roster | None = None,
) -> Answers:
    """`answers`, with every ask carried out by the laboratory's fleet under its accountant."""
    rng = np.random.default_rng(7)
    fleet = LabFleet(
        NoiseModel(Oracle.GRR, case.labels, case.users, case.variance),
        accountant or Accountant(case.users, case.epsilon, case.window),
        roster or Roster(case.users, case.window, rng),
        rng,
    )
    counts = np.zeros(case.labels, np.int64)
    counts[0] = case.users

    def at(t: int) -> Answer:
        carry_out = fleet.at(t, CountsSnapshot(counts))

        def answer(ask: Ask) -> Tally:
            carry_out(ask)
            return answers(t)(ask)

        return answer

    return at


def most_spent(book: Iterable[Charge], window: int) -> int:
    """The most that one user spent in any `window` consecutive timestamps, the slow way."""
    spent_at: dict[int, dict[int, int]] = {}
    for t, users, nano in book:
        for user in users:
            account = spent_at.setdefault(user, {})
            account[t] = account.get(t, 0) + nano
    return max((most_in_a_window(account, window) for account in spent_at.values()), default=0)


def most_in_a_window(amounts: dict[int, int], window: int) -> int:
    """The largest sum of `amounts` (by timestamp) over any `window` consecutive timestamps."""
    if not amounts:
        return 0
    last = max(amounts)
    running = [0, *accumulate(amounts.get(t, 0) for t in range(1, last + window + 1))]
    return max(running[end] - running[max(0, end - window)] for end in range(1, len(running)))


def asked_per_timestamp(moments: Iterable[Moment]) -> dict[int, int]:
    """Reports times nano-epsilon asked for at each timestamp: what both divisions divide."""
    return {m.t: sum(ask.users * ask.epsilon.nano for ask in m.asks) for m in moments}
