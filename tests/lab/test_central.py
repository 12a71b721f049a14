"""The references with a trusted server: their noise, their budgets, and that they stay here."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from ldpstream.domain import Domain
from ldpstream.errors import GuaranteeBroken, Mistake
from ldpstream.lab.central import CENTRAL, Laplace, TrustedFleet, build_central
from ldpstream.lab.experiment import Experiment
from ldpstream.lab.simulation import run, simulate
from ldpstream.mechanisms import registry
from ldpstream.mechanisms.division import BudgetDivision
from ldpstream.mechanisms.mechanism import drive
from ldpstream.mechanisms.messages import Ask, Purpose, Release, Tally
from ldpstream.mechanisms.settings import Settings
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import CountsStream
from ldpstream.streams.synthetic import log, sin

SETTINGS = Settings(labels=2, users=1000, epsilon=Epsilon.of(1), window=4)
LOCAL = {
    "central-uniform": "lpu",
    "central-sampling": "lsp",
    "central-bd": "lpd",
    "central-ba": "lpa",
}


class Silence:
    """A generator whose noise is 0; remembers the scales that it was asked for."""

    def __init__(self) -> None:
        self.scales: list[float] = []

    def laplace(self, centre: float, scale: float, size: int | None = None) -> Any:
        self.scales.append(scale)
        return 0.0 if size is None else np.zeros(size)


def silent() -> tuple[np.random.Generator, Silence]:
    silence = Silence()
    return cast("np.random.Generator", silence), silence


def shares_of_second(name: str, shares: list[float]) -> list[tuple[float | None, float]]:
    """(epsilon of the publication or None, share released) at each t, without noise."""
    mechanism = build_central(name, SETTINGS, silent()[0])
    story: list[tuple[float | None, float]] = []
    for t, share in enumerate(shares, start=1):
        asked: list[Ask] = []

        def answer(ask: Ask, share: float = share, asked: list[Ask] = asked) -> Tally:
            asked.append(ask)
            return Tally(np.array([1 - share, share]), np.zeros(2), SETTINGS.users)

        release = drive(mechanism.step(t), answer)
        spent = [float(a.epsilon) for a in asked if a.purpose is Purpose.PUBLICATION]
        assert release.fresh == bool(spent)
        story.append((spent[0] if spent else None, float(release.values[1])))
    return story


def test_distribution_halves_what_is_left_and_gets_back_what_leaves_the_window() -> None:
    assert shares_of_second("central-bd", [0.5, 0.5, 0.6, 0.6, 0.8, 0.1, 0.7]) == [
        (0.25, 0.5),  # half of epsilon/2
        (None, 0.5),
        (0.125, 0.6),  # half of the rest
        (None, 0.6),
        (0.1875, 0.8),  # t = 1 has left the window: half of .5 - .125
        (0.09375, 0.1),
        (0.109375, 0.7),  # t = 3 has left it: half of .5 - .1875 - .09375
    ]


def test_absorption_takes_unused_shares_and_skips_as_many() -> None:
    assert shares_of_second("central-ba", [0.5, 0.9, 0.5, 0.5, 0.6, 0.1, 0.2, 0.3, 0.4]) == [
        (0.25, 0.5),  # its own share of 1/8 and an imaginary one (docs/paper-corrections.md, 4)
        (None, 0.5),  # nullified, though the stream has moved
        (None, 0.5),
        (None, 0.5),
        (0.375, 0.6),  # the shares of t = 3, 4 and 5
        (None, 0.6),  # two nullified
        (None, 0.6),
        (0.125, 0.3),
        (0.125, 0.4),
    ]


def test_a_small_change_is_not_published() -> None:
    # At t = 3 distribution has .125 to spend: a scale of 2 / (1000 * .125) = .016.
    assert shares_of_second("central-bd", [0.5, 0.5, 0.515])[2] == (None, 0.5)
    assert shares_of_second("central-bd", [0.5, 0.5, 0.517])[2] == (0.125, 0.517)


@pytest.mark.parametrize("labels", [2, 5])
def test_scales_are_sensitivity_over_epsilon(labels: int) -> None:
    rng, silence = silent()
    noise = Laplace(labels, 1000, rng)
    truth = np.full(labels, 1 / labels)
    assert noise.histogram(truth, Epsilon.of("0.25")).tolist() == truth.tolist()
    assert noise.distance(truth, np.zeros(labels), Epsilon.of("0.125")) == pytest.approx(1 / labels)
    assert silence.scales == [2 / 250, 2 / 125 / labels]


@pytest.mark.parametrize("labels", [2, 5])
def test_sensitivity_is_what_one_user_can_change(labels: int) -> None:
    # Over all ways in which one of four users takes another value.
    users, rng = 4, np.random.default_rng(0)
    known = rng.random(labels)
    histogram_moves, distance_moves = [], []
    for _ in range(200):
        before = rng.multinomial(users, np.full(labels, 1 / labels))
        giver = rng.choice(np.flatnonzero(before))
        after = before.copy()
        after[giver] -= 1
        after[rng.integers(labels)] += 1
        old, new = before / users, after / users
        histogram_moves.append(np.abs(new - old).sum())
        distance_moves.append(abs(np.abs(new - known).mean() - np.abs(old - known).mean()))
    noise = Laplace(labels, users, rng)
    one = Epsilon.of(1)
    assert max(histogram_moves) == noise.scale(one)
    assert max(distance_moves) <= noise.distance_scale(one) + 1e-12


def test_noise_has_the_variance_that_the_release_states() -> None:
    stream = CountsStream("still", Domain.numbered(2), np.tile([700, 300], (4000, 1)))
    rng = np.random.default_rng(1)
    mechanism = build_central("central-uniform", SETTINGS, rng)
    done = run(stream, mechanism, rng, fleet=TrustedFleet(mechanism.division))
    scale = 2 / (1000 * 0.25)
    assert done.variance == pytest.approx(np.full((4000, 2), 2 * scale**2))
    errors = done.released - done.truth
    assert np.abs(errors).mean() == pytest.approx(scale, rel=0.05)
    assert errors.var() == pytest.approx(2 * scale**2, rel=0.1)


@pytest.mark.parametrize("name", CENTRAL)
@pytest.mark.parametrize("epsilon", ["0.000001", "0.1", "3"])
def test_no_window_spends_more_than_epsilon(name: str, epsilon: str) -> None:
    window, rng = 5, np.random.default_rng(2)
    settings = Settings(labels=3, users=500, epsilon=Epsilon.of(epsilon), window=window)
    mechanism = build_central(name, settings, rng)
    spent = []
    for t in range(1, 101):
        at_t: list[int] = []

        def answer(ask: Ask, at_t: list[int] = at_t) -> Tally:
            at_t.append(ask.epsilon.nano)
            assert ask.users == settings.users
            return Tally(rng.dirichlet(np.ones(3)), np.zeros(3), settings.users)

        drive(mechanism.step(t), answer)
        spent.append(sum(at_t))
    sums = np.convolve(spent, np.ones(window, np.int64), mode="valid")
    assert sums.max() <= settings.epsilon.nano
    assert sums.max() >= settings.epsilon.nano // 2


def test_the_trusted_fleet_charges_everyone() -> None:
    fleet = TrustedFleet(BudgetDivision(Epsilon.of(1), 1000, 4))
    snapshot = next(sin(users=1000, timestamps=1).snapshots(np.random.default_rng()))
    answer = fleet.at(1, snapshot)
    half = Ask(1000, Epsilon.of("0.5"), Purpose.PUBLICATION)
    assert answer(half).estimate.sum() == 1
    answer(half)
    assert fleet.reports == 1000  # two questions about one report
    with pytest.raises(GuaranteeBroken):
        answer(half)


@pytest.mark.parametrize("stream", [sin(users=20_000), log(users=20_000)], ids=lambda s: s.name)
def test_trust_is_worth_a_lot(stream: CountsStream) -> None:
    grid = Experiment([stream], [*LOCAL, *LOCAL.values()], windows=[20], repeats=1)
    error = {row["mechanism"]: row["mse"] for row in grid.run().rows}
    for central, local in LOCAL.items():
        # Sampling's error on a moving stream is mostly drift, which trust does not help.
        factor = 1 if central == "central-sampling" else 10
        assert error[central] < error[local] / factor


@pytest.mark.parametrize("name", CENTRAL)
def test_none_can_be_chosen_for_a_live_stream(name: str) -> None:
    assert name not in registry.names()
    with pytest.raises(Mistake, match="there is no mechanism"):
        registry.build(name, SETTINGS)
    with pytest.raises(Mistake, match="there is no mechanism"):
        simulate(sin(users=1000, timestamps=10), name, epsilon=1, window=4)


def test_a_local_name_is_not_central() -> None:
    with pytest.raises(Mistake, match="central-bd"):
        build_central("lbd", SETTINGS, np.random.default_rng())


def test_too_little_budget_is_refused() -> None:
    poor = Settings(labels=2, users=1000, epsilon=Epsilon(5), window=4)
    with pytest.raises(Mistake, match="larger epsilon"):
        build_central("central-ba", poor, np.random.default_rng())


def test_before_anything_is_published_nothing_is_known() -> None:
    mechanism = build_central("central-bd", SETTINGS, silent()[0])
    unchanged = drive(mechanism.step(1), lambda ask: Tally(np.zeros(2), np.zeros(2), 1000))
    assert unchanged.fresh is False
    assert unchanged.values.tolist() == Release.unknown(2).values.tolist()
