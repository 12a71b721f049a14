"""Plans: advice follows from the numbers. What is predicted comes true: `make verify`."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ldpstream.collector.config import SelectionMethod, parse
from ldpstream.domain import Domain
from ldpstream.durations import milliseconds, spelled
from ldpstream.errors import Mistake, Problem
from ldpstream.lab.planning import costs
from ldpstream.lab.planning.advice import best_mechanism, best_oracle
from ldpstream.lab.planning.costs import Cost
from ldpstream.lab.planning.outcome import OutcomeSource, PlanOutcome
from ldpstream.lab.planning.plan import PlanRequest, make_plan
from ldpstream.lab.planning.predict import Prediction
from ldpstream.lab.planning.sample import Sample, resized
from ldpstream.lab.planning.search import round_up, smallest
from ldpstream.lab.planning.still_stream import StillStream
from ldpstream.lab.planning.stream_file import StreamFile
from ldpstream.lab.planning.subject import Subject
from ldpstream.lab.planning.target import enough_epsilon, enough_users, read_goal
from ldpstream.mechanisms.messages import Ask, Purpose
from ldpstream.mechanisms.registry import recipe
from ldpstream.mechanisms.settings import Settings
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.synthetic import sin


@pytest.mark.parametrize("oracle", Oracle)
def test_drawn_tallies_have_the_stated_moments(oracle: Oracle) -> None:
    settings = Settings(4, 10_000, Epsilon.of(1), 10, oracle=oracle)
    stream = StillStream.under(recipe("lpu").build(settings).noise)
    ask = Ask(1000, settings.epsilon, Purpose.PUBLICATION)
    drawn = stream.draw_many(ask, 20_000, np.random.default_rng(0))
    stated = stream.exact(ask).variance
    assert drawn.mean(axis=0) == pytest.approx(stream.truth, abs=0.005)
    assert drawn.var(axis=0).mean() == pytest.approx(stated.mean(), rel=0.03)
    sums_to_one = np.allclose(drawn.sum(axis=1), 1)
    assert sums_to_one is (oracle in (Oracle.GRR, Oracle.SUBSET))


def test_a_prediction_is_the_same_again() -> None:
    settings = Settings(3, 5000, Epsilon.of(1), 5)
    assert Prediction(25, seed=4)("lpa", settings) == Prediction(25, seed=4)("lpa", settings)


# --- costs ---


def test_costs_of_a_day() -> None:
    one = outcome("lpu", "grr", 0.1, reports=0.05, busiest=6000)
    cost = Cost.of(one, interval_ms=3_600_000)
    assert cost.reports_per_day == pytest.approx(1.2)
    assert cost.bytes_per_day == pytest.approx(1.2 * (2 + costs.REPORT_OVERHEAD))
    assert cost.peak_per_second == pytest.approx(6000 / 3600)
    assert cost.listening_bytes_per_day == 0  # with slots nobody asks
    polls = 86_400 / costs.POLL_SECONDS
    cost = Cost.of(outcome("lpa", "grr", 0.1), interval_ms=3_600_000)
    assert cost.listening_bytes_per_day == pytest.approx(polls * costs.POLL_OVERHEAD)


def outcome(
    mechanism: str,
    oracle: str,
    rmse: float,
    *,
    reports: float = 0.1,
    busiest: int = 10,
    looks: float = 1.0,
    report_bytes: int = 2,
    how: OutcomeSource = OutcomeSource.REHEARSAL,
) -> PlanOutcome:
    return PlanOutcome(
        mechanism, oracle, rmse, 0.0, rmse, reports, busiest, looks, report_bytes, how
    )


# --- advice ---


def test_a_mechanism_that_sees_nothing_is_not_taken_on_a_promise() -> None:
    blind, seeing = outcome("lsp", "grr", 0.1, looks=0.05), outcome("lpf", "grr", 0.2)
    assert best_mechanism([blind, seeing]) is seeing
    tried = replace(blind, how=OutcomeSource.SIMULATION)
    assert best_mechanism([tried, replace(seeing, how=OutcomeSource.SIMULATION)]) is tried


def test_a_much_shorter_report_is_worth_a_little_error() -> None:
    exact, short = outcome("lpf", "subset", 1.0, report_bytes=129), outcome("lpf", "olh", 1.005)
    assert best_oracle([exact, short]) is short
    assert best_oracle([exact, short], goal=1.001) is exact
    assert best_oracle([exact, replace(short, rmse=1.05)]) is exact
    hardly_shorter = replace(short, report_bytes=120)
    assert best_oracle([exact, hardly_shorter]) is exact


def test_a_plan_compares_mechanisms_and_then_oracles() -> None:
    settings = Settings(8, 10_000, Epsilon.of(1), 10)
    plan = make_plan(PlanRequest(settings, 60_000, 3, ("lpu", "lpf")), Prediction(30))
    rows = [(row["mechanism"], row["oracle"]) for row in plan.rows()]
    assert rows[0][0] == "lpu"
    assert {oracle for mechanism, oracle in rows if mechanism == "lpf"} == {o.value for o in Oracle}
    assert len(rows) == len(set(rows)) == 1 + len(Oracle)
    assert plan.advice.chosen.mechanism == "lpf"
    assert plan.settings.oracle == plan.advice.chosen.oracle
    assert plan.advice.sentences()[0].startswith("Use LPF with ")


# --- targets ---


@pytest.mark.parametrize(
    ("text", "goal"), [("0.01", 0.01), ("5%", 0.005), ("0.01,5%", 0.005), (" 0.001 , 5% ", 0.001)]
)
def test_goals(text: str, goal: float) -> None:
    assert read_goal(text, typical=0.1) == pytest.approx(goal)


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "%", "nan", "inf", "1,,2"])
def test_goals_that_are_none(text: str) -> None:
    with pytest.raises(Mistake, match="--target-error"):
        read_goal(text, typical=0.1)


@pytest.mark.parametrize("start", [1, 300, 10**4, 10**9])
@pytest.mark.parametrize("power", [-0.5, -1.0, -0.1])
def test_the_search_finds_the_least(start: float, power: float) -> None:
    trials = []

    def error(x: float) -> float:
        trials.append(x)
        return float(x**power) if x >= 20 else float("inf")

    found = smallest(error, 5000**power, start, 1, 10**9)
    assert found is not None
    assert 5000 * (1 - 1e-9) <= found <= 5000 * 1.011
    assert len(trials) <= 25


def test_the_search_knows_its_ends() -> None:
    assert smallest(lambda x: 1 / x, 10, 50, 1, 100) == 1
    assert smallest(lambda x: 1 / x, 0.001, 50, 1, 100) is None
    assert smallest(lambda x: 1.0 if x < 30 else 0.0, 0.5, 1, 1, 100) == pytest.approx(30, rel=0.02)


@pytest.mark.parametrize("x", [1, 999, 1234, 123_456, 0.01234, 0.5, 31.99])
def test_rounding_up_gives_nothing_away(x: float) -> None:
    assert x * (1 - 1e-9) <= round_up(x) <= 1.01 * x


@pytest.mark.parametrize("mechanism", ["lpu", "lpf"])
def test_the_smallest_that_reaches_a_goal(mechanism: str) -> None:
    settings = Settings(4, 10_000, Epsilon.of(1), 5)
    judge = Prediction(25)
    goal = judge(mechanism, settings).rmse / 2
    users = enough_users(judge, mechanism, settings, goal)
    epsilon = enough_epsilon(judge, mechanism, settings, goal)
    assert users is not None
    assert epsilon is not None
    for there, short in (
        (replace(settings, users=users), replace(settings, users=int(0.97 * users))),
        (
            replace(settings, epsilon=epsilon),
            replace(settings, epsilon=Epsilon.of(0.97 * float(epsilon))),
        ),
    ):
        assert judge(mechanism, there).rmse <= goal < judge(mechanism, short).rmse


def test_a_goal_out_of_reach() -> None:
    settings = Settings(4, 100, Epsilon.of(1), 5)
    with pytest.raises(Mistake) as refused:
        make_plan(PlanRequest(settings, 1000, 5, ("lpu",), goal=1e-9), Prediction(25))
    assert refused.value.problem is Problem.TARGET_UNREACHABLE


def test_users_are_found_where_none_are_given() -> None:
    guess = Settings(4, 10_000, Epsilon.of(1), 5)
    request = PlanRequest(guess, 1000, 5, ("lpu", "lpf"), goal=0.002, find="users")
    plan = make_plan(request, Prediction(25))
    assert plan.settings.users != guess.users
    assert plan.advice.chosen.rmse <= 0.002
    assert plan.advice.target is not None
    assert plan.advice.target.reached


# --- samples ---


def test_a_sample_of_another_size() -> None:
    stream = resized(sin(users=1000, timestamps=30), 77_777)
    assert stream.users == 77_777
    assert stream.timestamps == 30
    before = sin(users=1000, timestamps=30).table[:, 1] / 1000
    after = np.array([one.counts[1] for one in stream.snapshots(np.random.default_rng(0))]) / 77_777
    assert after == pytest.approx(before, abs=1e-4)


def test_what_is_blind_is_not_taken_on_a_reference_either() -> None:
    blind = outcome("lsp", "square_wave", 0.1, looks=0.05, how=OutcomeSource.REFERENCE)
    seeing = outcome("lpf", "square_wave", 0.2, how=OutcomeSource.REFERENCE)
    assert best_mechanism([blind, seeing]) is seeing


def test_on_a_sample_that_moves_the_blind_do_not_win() -> None:
    settings = Settings(2, 50_000, Epsilon.of(1), 20)
    request = PlanRequest(settings, 60_000, 5, ("lsp", "lpf"), compare_oracles=False)
    plan = make_plan(request, Sample(sin(users=50_000, timestamps=100, b=0.1), repeats=2))
    assert plan.advice.chosen.mechanism == "lpf"
    assert plan.advice.chosen.how is OutcomeSource.SIMULATION
    assert len(plan.outcomes) == 2


# --- the file ---


@pytest.mark.parametrize(
    "labels",
    [
        ("north", "south"),
        ('"quoted"', "back\\slash", "new\nline", "tab\t", "\x7f", "é 漢", ""),
        tuple(f"a rather long label, number {i}" for i in range(40)),
    ],
)
def test_the_collector_accepts_the_file(labels: tuple[str, ...]) -> None:
    settings = Settings(
        len(labels), 12_345, Epsilon.of("0.25"), 7, oracle=Oracle.OUE, intervals=True
    )
    subject = Subject.of_domain(Domain.of(labels))
    file = StreamFile(subject, settings, 90_000, outcome("lpf", "oue", 0.1), ["Because."])
    config = parse(file.text(), Path("stream.toml"))
    (stream,) = config.streams
    assert stream.labels == labels
    assert stream.other is None
    assert 'other = "LABEL"' in file.text()
    assert stream.settings == replace(settings, selection=stream.selection)
    assert stream.interval_ms == 90_000
    assert stream.mechanism == "lpf"
    assert stream.selection is SelectionMethod.SLOTS
    assert tomllib.loads(file.text())["stream"][0]["epsilon"] == 0.25


def test_a_range_takes_the_place_of_labels() -> None:
    subject = Subject.of_range("-20:60.5")
    settings = Settings(subject.values, 12_345, Epsilon.of("0.25"), 7, query=subject.query)
    file = StreamFile(subject, settings, 90_000, outcome("lpf", "hybrid", 0.1), ["Because."])
    (stream,) = tomllib.loads(file.text())["stream"]
    assert stream["range"] == [-20.0, 60.5]
    assert stream["oracle"] == "hybrid"
    assert "labels" not in stream
    assert "other =" not in file.text()


@pytest.mark.parametrize("text", ["500ms", "30s", "1min", "1m", "90 sec", "1h", "1d", "2day"])
def test_intervals_are_spelled_as_the_collector_reads_them(text: str) -> None:
    length_ms = milliseconds(text)
    assert length_ms
    assert milliseconds(spelled(length_ms)) == length_ms


@pytest.mark.parametrize("text", ["", "1", "min", "0s", "1.5s", "1 fortnight", "-1s"])
def test_intervals_that_are_none(text: str) -> None:
    assert not milliseconds(text)
