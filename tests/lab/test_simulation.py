"""Simulated runs: reproducible, unbiased, and the same on users as on histograms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ldpstream.domain import Domain
from ldpstream.errors import Mistake
from ldpstream.lab.simulation import Run, Simulation, run, simulate
from ldpstream.mechanisms.division import BudgetDivision
from ldpstream.mechanisms.registry import build, names, recipe
from ldpstream.mechanisms.settings import OPTIONS, Settings
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import CountsStream, ShuffledUsers, Stream
from ldpstream.streams.synthetic import constant, log, sin, step, zipf
from tests.mechanisms.driving import least_units

every_mechanism = pytest.mark.parametrize("name", names())
SMALL = sin(users=2_000, timestamps=60, b=0.1)


def quick(name: str, seed: int = 0, repeats: int = 2) -> Simulation:
    return simulate(SMALL, name, epsilon=1, window=5, oracle="grr", repeats=repeats, seed=seed)


def same_bits(one: Run, other: Run) -> bool:
    return (
        one.released.tobytes() == other.released.tobytes()
        and one.variance.tobytes() == other.variance.tobytes()
        and one.fresh.tobytes() == other.fresh.tobytes()
        and one.metrics == other.metrics
    )


@every_mechanism
def test_the_same_seed_gives_the_same_bits(name: str) -> None:
    for one, other in zip(quick(name).runs, quick(name).runs, strict=True):
        assert same_bits(one, other)


@every_mechanism
def test_other_seeds_and_other_repeats_give_other_bits(name: str) -> None:
    runs = [*quick(name, seed=0).runs, *quick(name, seed=1).runs]
    for place, one in enumerate(runs):
        assert not any(same_bits(one, other) for other in runs[place + 1 :])


@every_mechanism
def test_a_repeat_does_not_depend_on_how_many_there_are(name: str) -> None:
    for one, other in zip(quick(name, repeats=2).runs, quick(name, repeats=3).runs, strict=False):
        assert same_bits(one, other)


@every_mechanism
def test_a_run_is_the_truth_and_what_was_released_beside_it(name: str) -> None:
    result = quick(name, repeats=1)
    (only,) = result.runs
    assert (only.truth == SMALL.table / SMALL.users).all()
    for t in range(1, 60):
        if not only.fresh[t]:
            assert (only.released[t] == only.released[t - 1]).all()
    assert only.metrics.publications == only.fresh.sum() > 0
    assert (only.variance > 0).all()


@every_mechanism
def test_communication_keeps_to_the_division(name: str) -> None:
    """Population division: a report a window. Budget division: up to two reports a timestamp."""
    cfpu = quick(name).mean("cfpu")
    most = 2 if recipe(name).division is BudgetDivision else 1 / 5
    assert (1 if name in ("lbu", "lbd", "lba") else 0) <= cfpu <= most
    assert cfpu > 0


@every_mechanism
def test_the_row_has_the_fields_of_the_command_line(name: str) -> None:
    row = quick(name).row()
    assert list(row) == [
        *("stream", "mechanism", "oracle", "epsilon", "window", "users", "timestamps", "labels"),
        *("repeats", "seed", *(name for name in OPTIONS if name != "oracle")),
        *("mre", "mae", "mse", "cfpu", "auc", "publications", "covered", "coverage"),
        *("coverage_rare", "coverage_middle", "coverage_big", "coverage_after_jump"),
        *("auc_per_label", "revised_mse", "revised_coverage", "p50_mae", "p99_mae", "seconds"),
    ]
    assert (row["revised_mse"] is not None) == name.endswith("f")
    assert (row["coverage_rare"], row["coverage_after_jump"]) == (None, None)
    assert row["covered"] == row["coverage"]
    assert (row["stream"], row["mechanism"], row["oracle"]) == ("sin", name, "grr")
    assert (row["users"], row["timestamps"], row["repeats"]) == (2_000, 60, 2)


def test_a_revised_history_is_better_the_more_came_after_it() -> None:
    stream = sin(users=20_000, timestamps=160)
    whole, late, at_once = (
        simulate(stream, "lpf", epsilon=1, window=10, lag=lag) for lag in (None, 40, 4)
    )
    errors = [whole.mean("revised_mse"), late.mean("revised_mse"), at_once.mean("revised_mse")]
    assert errors[0] < errors[1] < errors[2]
    assert errors[0] < whole.mean("mse") / 2
    with pytest.raises(Mistake, match="lag"):
        simulate(stream, "lpf", epsilon=1, window=10, lag=-1)


@pytest.mark.parametrize("name", ["lbu", "lpu", "lsp"])
def test_releases_are_unbiased_and_their_variance_is_the_one_stated(name: str) -> None:
    """Fresh releases of 40 runs: mean and mean square of the standardised errors, at 5 sd."""
    source = constant(users=3_000, timestamps=40, p=0.3)
    result = simulate(source, name, epsilon=2, window=4, oracle="grr", repeats=40, seed=5)
    errors = np.concatenate(
        [
            ((only.released - only.truth) / np.sqrt(only.variance))[only.fresh, 1]
            for only in result.runs
        ]
    )
    count = len(errors)
    assert count >= 400
    assert abs(errors.mean()) < 5 / count**0.5
    assert (errors**2).mean() == pytest.approx(1, abs=5 * (2 / count) ** 0.5)


@pytest.mark.slow
@every_mechanism
def test_users_and_histograms_give_the_same_distribution_of_results(name: str) -> None:
    """Means over 40 runs on each differ by less than 5 of their standard errors.

    On a stream that moves enough for the adaptive ones to publish often.
    """
    source = step(users=1_500, timestamps=40, low=0.1, high=0.6, every=9)
    streams: tuple[Stream, Stream] = (source, ShuffledUsers(source))
    by_count, by_user = (
        simulate(stream, name, epsilon=2, window=4, oracle="grr", repeats=40, seed=seed)
        for seed, stream in enumerate(streams)
    )
    for metric in ("mae", "mse", "auc", "cfpu", "publications"):
        one, other = (
            np.array([getattr(only.metrics, metric) for only in result.runs])
            for result in (by_count, by_user)
        )
        doubt = ((one.var(ddof=1) + other.var(ddof=1)) / 40) ** 0.5
        assert abs(one.mean() - other.mean()) <= 5 * doubt + 1e-12, metric


def test_samples_of_users_are_unbiased() -> None:
    """Per-user data: the mean of 200 releases, within 5 standard errors."""
    source = ShuffledUsers(constant(users=1_000, timestamps=200, p=0.2))
    result = simulate(source, "lpu", epsilon=8, window=4, oracle="grr", seed=6)
    (only,) = result.runs
    spread = float(np.sqrt(only.variance[:, 1].mean() / 200))
    assert only.released[:, 1].mean() == pytest.approx(0.2, abs=5 * spread)


@pytest.mark.parametrize("name", ["lbd", "lba", "lpd", "lpa"])
@pytest.mark.parametrize("variance", ["paper", "corrected"])
@pytest.mark.parametrize("pool", [False, True])
def test_every_rule_runs_on_many_labels(name: str, variance: str, pool: bool) -> None:
    source = zipf(users=5_000, timestamps=40, labels=12, drift=0.3)
    result = simulate(source, name, epsilon=2, window=5, oracle="grr", variance=variance, pool=pool)
    (only,) = result.runs
    assert np.isfinite(only.released).all()
    assert only.metrics.publications > 0


def test_the_corrected_rule_saves_needless_publications() -> None:
    """Correction 3, on Log at epsilon 2, w 20: a third fewer, LPD errs less by 4 deviations."""
    paper, corrected = (
        {
            name: simulate(
                log(), name, epsilon=2, window=20, oracle="grr", variance=rule, repeats=3, seed=7
            )
            for name in ("lpd", "lpa")
        }
        for rule in ("paper", "corrected")
    )
    for name in ("lpd", "lpa"):
        assert corrected[name].mean("publications") < 0.8 * paper[name].mean("publications")
    assert corrected["lpd"].mean("mre") < paper["lpd"].mean("mre")


def test_progress_is_told_of_every_timestamp() -> None:
    told: list[int] = []
    simulate(SMALL, "lpa", epsilon=1, window=5, oracle="grr", repeats=3, progress=told.append)
    assert sum(told) == 3 * 60


def test_a_run_carries_on_from_where_the_mechanism_stands() -> None:
    """A mechanism that has been through a run does not take its timestamps again."""
    settings = Settings(2, SMALL.users, Epsilon.of(1), 5, oracle=Oracle.GRR)
    mechanism = build("lpa", settings)
    run(SMALL, mechanism, np.random.default_rng(0))
    with pytest.raises(Mistake, match="in increasing order"):
        run(SMALL, mechanism, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"epsilon": 0}, "epsilon is 0; give a number from 1e-9 to 32"),
        ({"epsilon": "much"}, "epsilon is much; give a number from 1e-9 to 32"),
        ({"window": 0}, "window is 0; give a whole number of timestamps, 1 or more"),
        ({"window": 2_000}, "2000 users are too few for a window of 2000"),
        ({"oracle": "grrr"}, "there is no oracle 'grrr'; use one of: grr,"),
        ({"mechanism": "lp"}, "there is no mechanism 'lp'; use one of: lbu,"),
        (
            {"mechanism": "lfp"},
            "there is no mechanism 'lfp'; did you mean lpf? Else use one of:",
        ),
        ({"stream": "sin"}, "stream is 'sin'; give one that sin(), read_counts(file), from_frame("),
        ({"stream": {}}, "stream is of type dict; give one that sin(), read_counts(file),"),
        ({"repeats": 0}, "repeats is 0; give 1 or more"),
        ({"seed": -1}, "seed is -1; give 0 or more"),
        ({"variance": "best"}, "the variance rule is best; give paper or corrected"),
    ],
    ids=str,
)
def test_what_cannot_be_simulated_is_refused_in_one_line(
    changed: dict[str, object], line: str
) -> None:
    options: dict[str, object] = {"stream": SMALL, "mechanism": "lpa", "epsilon": 1, "window": 5}
    with pytest.raises(Mistake) as refusal:
        simulate(**(options | changed))  # type: ignore[arg-type]
    assert str(refusal.value).startswith(line)
    assert "\n" not in str(refusal.value)


def test_the_smallest_fleet_and_a_window_of_one() -> None:
    for name in names():
        users = least_units(name, window=1)
        counts = np.array([[1, users - 1], [users, 0], [0, users]])
        tiny = CountsStream("tiny", Domain.of(["a", "b"]), counts)
        (only,) = simulate(tiny, name, epsilon=1, window=1, oracle="grr").runs
        assert np.isfinite(only.released).all()


def test_everyone_reports_every_timestamp_when_the_window_is_one() -> None:
    fresh = [
        simulate(SMALL, name, epsilon=1, window=1, oracle="grr", seed=9).runs[0]
        for name in ("lbu", "lpu", "lsp")
    ]
    for one, other in pairwise(fresh):
        assert same_bits(one, other)
    assert fresh[0].metrics.cfpu == 1
