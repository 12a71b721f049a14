"""What people publish with: tidy frames, paired differences, transcripts, axes, provenance."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ldpstream.domain import Domain
from ldpstream.errors import Mistake
from ldpstream.lab import fingerprint, provenance
from ldpstream.lab.experiment import Experiment
from ldpstream.lab.figures.charts import FALSE_ALARMS, Axis, Chart, Panel, Point
from ldpstream.lab.figures.drawing import compose, plot_results
from ldpstream.lab.figures.releases import plot_releases, release_panels
from ldpstream.lab.metrics import auc, events_by_label, roc_per_label
from ldpstream.lab.paired import paired
from ldpstream.lab.report.page import made_by
from ldpstream.lab.results import Results
from ldpstream.lab.simulation import Simulation, simulate
from ldpstream.mechanisms import registry
from ldpstream.mechanisms.queries import DistributionQuery, MeanQuery
from ldpstream.mechanisms.settings import RunOptions
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.stream import CountsStream
from ldpstream.streams.synthetic import sin

COUNTS = np.array([[30 + t, 200 - 3 * t, 70 + 2 * t] for t in range(30)])
COLOURS = CountsStream("colours", Domain.of(["red", "green", "blue"]), COUNTS)


@pytest.fixture(scope="module")
def result() -> Simulation:
    return simulate(COLOURS, "lpa", epsilon=2, window=5, repeats=2)


def test_a_tidy_frame_has_a_row_for_each_repeat_timestamp_and_label(result: Simulation) -> None:
    frame = result.to_pandas()
    assert len(frame) == 2 * 30 * 3
    last = frame[(frame.repeat == 1) & (frame.t == 30) & (frame.label == "green")]
    run = result.runs[1]
    assert last.released.item() == run.released[29, 1]
    assert last.truth.item() == pytest.approx(113 / 300)
    assert (last.low.item(), last.high.item()) == (run.low[29, 1], run.high[29, 1])
    assert (last.mechanism.item(), last.fresh.item()) == ("lpa", bool(run.fresh[29]))
    assert result.to_polars().to_dict(as_series=False) == frame.to_dict("list")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (MeanQuery(0, 1), ["mean"]),
        (
            DistributionQuery(0, 3, 3),
            ["[0, 1)", "[1, 2)", "[2, 3)", "p10", "p50", "p90", "p99", "mean"],
        ),
    ],
)
def test_answers_that_are_no_labels_have_names(query: MeanQuery, names: list[str]) -> None:
    run = simulate(COLOURS, "lpu", epsilon=2, window=5, query=query)
    assert list(dict.fromkeys(run.columns()["label"])) == names


def test_results_have_every_setting() -> None:
    table = Experiment([COLOURS], ["lpu"], windows=[5], repeats=1, seed=7).run()
    row = table.to_pandas().iloc[0]
    assert (row.seed, row["repeat"], row.selection, row.variance) == (7, 0, "roster", "corrected")
    assert list(table.to_pandas().columns) == table.to_polars().columns == list(table.rows[0])


def test_mechanisms_differ_only_if_their_pairs_do() -> None:
    assert paired([1.0, 2.0, 3.0], [0.9, 1.9, 2.9]).differs
    assert not paired([1.0, 2.0, 3.0], [0.5, 2.5, 2.9]).differs
    one = paired([5.0], [1.0])
    assert (one.mean, one.known, one.differs) == (4.0, False, False)


def test_differences_are_taken_repeat_by_repeat() -> None:
    grid = Experiment([COLOURS], ["lpu", "lbu", "lsp"], (1, 2), (5,), repeats=4)
    results = grid.run()
    rows = results.differences("mse", to="lpu")
    assert [(row["mechanism"], row["epsilon"]) for row in rows] == [
        *(("lbu", 1.0), ("lsp", 1.0), ("lbu", 2.0), ("lsp", 2.0))
    ]
    worst = rows[0]
    pairs = {
        name: [r["mse"] for r in results.rows if (r["mechanism"], r["epsilon"]) == (name, 1.0)]
        for name in ("lbu", "lpu")
    }
    assert worst["difference"] == pytest.approx(np.mean(np.subtract(pairs["lbu"], pairs["lpu"])))
    assert worst["low"] < worst["difference"] < worst["high"]
    assert (worst["repeats"], worst["differs"]) == (4, True)
    with pytest.raises(Mistake, match=r"^to is 'lpx'; give one of: lpu, lbu, lsp$"):
        results.differences("mse", to="lpx")
    with pytest.raises(Mistake, match=r"^metric is 'rmse'; give one of: mre, mae, mse, "):
        results.differences("rmse", to="lpu")


def test_joined_results_are_compared_by_the_oracle_that_was_asked_for() -> None:
    def run(oracle: str) -> Results:
        options = RunOptions.read(oracle=oracle)
        return Experiment([COLOURS], ["lpu", "lbu"], (1,), (5,), 3, options).run()

    parts = {oracle: run(oracle) for oracle in ("auto", "grr", "oue")}
    joined = Results.joined([*parts.values(), parts["grr"]])  # the same run twice is one run
    rows = joined.differences("mse", to="lpu")
    assert [row["asked_oracle"] for row in rows] == [*parts]
    alone = [part.differences("mse", to="lpu") for part in parts.values()]
    assert rows == [row for (row,) in alone]
    assert [row["repeats"] for row in rows] == [3, 3, 3]


def test_automatic_oracles_are_compared_though_they_differ() -> None:
    stream = sin(users=2_000, timestamps=20)
    rows = Experiment([stream], ["lpu", "lbu"], (3,), (5,), repeats=2).run().rows
    for row in rows:  # a budget mechanism has less epsilon for each report: another oracle
        row["oracle"] = {"lpu": "grr", "lbu": "oue"}[row["mechanism"]]
    (row,) = Results(rows).differences("mse", to="lpu")
    assert (row["mechanism"], row["repeats"]) == ("lbu", 2)


def test_two_figures_of_one_run_are_refused() -> None:
    run = Experiment([COLOURS], ["lpu", "lbu"], (1,), (5,), repeats=2).run()
    other = Results([{**row, "mse": row["mse"] + (row["repeat"] == 1)} for row in run.rows])
    said = r"two runs of lpu on \S+ with the same settings, seed 0 and repeat 1, whose mse differs"
    with pytest.raises(Mistake, match=said) as refused:
        Results.joined([run, other]).differences("mse", to="lpu")
    assert "\n" not in str(refused.value)
    assert Results.joined([run, other]).differences("cfpu", to="lpu")


def test_runs_without_a_figure_are_not_compared() -> None:
    run = Experiment([COLOURS], ["lpu", "lbu"], (1,), (5,), repeats=2).run()
    assert run.differences("revised_mse", to="lpu") == []


def test_a_label_has_an_auc_of_its_own() -> None:
    """The noise of one label hides, pooled, that the other is found without fail."""
    truth = np.array([[0.1, 0.5], [0.1, 0.5], [0.2, 0.6], [0.2, 0.5]])
    released = np.array([[0.10, 0.9], [0.11, 0.1], [0.19, 0.5], [0.21, 0.7]])
    own = [auc(*one) for one in events_by_label(truth, released)]
    assert own == [1.0, pytest.approx(1 / 3)]
    curve = roc_per_label(truth, released)
    assert curve is not None
    assert (curve[0], curve[-1]) == (0.5, 1.0)
    assert roc_per_label(np.ones((3, 2)) / 2, released[:3]) is None


def test_the_mean_over_labels_is_among_the_figures(result: Simulation) -> None:
    run = result.runs[0]
    expected = [auc(*one) for one in events_by_label(run.truth, run.released)]
    assert run.metrics.auc_per_label == pytest.approx(np.mean(expected))
    still = CountsStream("still", COLOURS.domain, np.repeat(COUNTS[:1], 10, axis=0))
    assert simulate(still, "lpu", epsilon=1, window=5).row()["auc_per_label"] is None


@pytest.mark.parametrize(("mechanism", "persistence"), [("lpa", 0.0), ("lbu", 0.0), ("lpu", 0.5)])
def test_a_transcript_has_every_report(mechanism: str, persistence: float) -> None:
    given = {"epsilon": 1, "window": 5, "oracle": "grr", "persistence": persistence}
    first, again = (
        simulate(COLOURS, mechanism, **given, transcripts=True)  # type: ignore[arg-type]
        for _ in range(2)
    )
    said = first.runs[0].transcript
    assert said is not None
    assert len(said) == round(first.mean("cfpu") * 300 * 30)
    assert said.to_pandas().equals(again.runs[0].transcript.to_pandas())  # type: ignore[union-attr]
    spent = np.zeros((300, 31))
    np.add.at(spent, (said.user, said.t), said.epsilon)
    windows = np.lib.stride_tricks.sliding_window_view(spent, 5, axis=1).sum(axis=2)
    assert windows.max() <= 1 + 1e-9
    device = Oracle.GRR.device(3, Epsilon.of(str(said.epsilon[0])))
    assert {device.decode(wire) for wire in said.report} == {0, 1, 2}
    assert set(said.of(3).user.tolist()) == {3}


def test_reports_of_a_transcript_are_the_reports_of_the_estimates() -> None:
    """All users report with all of epsilon at once: from their reports follows the release."""
    run = simulate(
        COLOURS, "lbu", epsilon=1, window=1, oracle="grr", consistency="none", transcripts=True
    ).runs[0]
    assert run.transcript is not None
    collector = Oracle.GRR.collector(3, Epsilon.of(1))
    wires = [
        wire for t, wire in zip(run.transcript.t, run.transcript.report, strict=True) if t == 9
    ]
    estimate = collector.estimate(collector.support(collector.decode(wires)))
    assert np.allclose(estimate, run.released[8])


def test_transcripts_are_for_histograms() -> None:
    with pytest.raises(Mistake, match="transcripts is with mean of 0"):
        simulate(COLOURS, "lpu", epsilon=1, window=5, query=MeanQuery(0, 1), transcripts=True)


def test_a_plot_returns_axes_with_truth_releases_and_intervals(result: Simulation) -> None:
    spot = Figure().subplots()
    assert plot_releases(result, "blue", axes=spot, repeat=1) is spot
    assert spot.get_ylabel() == "blue"
    lines = {line.get_label(): line.get_ydata() for line in spot.get_lines()}
    assert np.array_equal(lines["released"], result.runs[1].released[:, 2])
    assert np.array_equal(lines["truth"], result.runs[1].truth[:, 2])
    band = np.asarray(spot.collections[0].get_paths()[0].vertices)
    assert band[:, 1].max() == pytest.approx(result.runs[1].high[:, 2].max())
    with pytest.raises(Mistake, match=r"'pink' is not a label .* red, green, blue"):
        plot_releases(result, "pink", axes=spot)


def test_panels_have_the_names_of_labels(result: Simulation) -> None:
    def names(figure: Figure) -> list[str]:
        return [panel.get_ylabel() for panel in figure.axes if panel.axison]

    assert names(release_panels([result])) == ["green"]
    assert names(release_panels([result, result], most=2)) == ["green", "blue"] * 2
    assert names(release_panels([result], labels=["blue", "red"])) == ["blue", "red"]
    two = simulate(sin(2000, 20), "lpu", epsilon=1, window=5)
    assert names(release_panels([two], most=3)) == ["0"]


def test_results_are_drawn_against_a_setting() -> None:
    results = Experiment([COLOURS], ["lpu", "lbu"], (1, 2), (5,), repeats=2).run()
    spot: Axes = Figure().subplots()
    assert plot_results(results, "epsilon", "mse", axes=spot) is spot
    legend = spot.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["LBU", "LPU"]
    with pytest.raises(Mistake, match=r"epsilon of the results is 1.0, 2.0; give the rows of one"):
        plot_results(results, "window", axes=spot)


def test_a_figure_of_all_mechanisms_has_room_for_their_names() -> None:
    points = [Point(x, name, x, 0.0, 1) for name in registry.names() for x in (0.0, 1.0)]
    panel = Panel("", FALSE_ALARMS, tuple(points))
    figure = compose(Chart("roc", "", "", Axis("tpr", "true-positive rate"), (panel,)))
    figure.savefig(io.BytesIO(), dpi=figure.dpi)  # which lays it out
    whole = figure.bbox.padded(1)
    (legend,), (spot,) = figure.legends, figure.axes
    (areas,) = spot.texts
    assert len(legend.get_texts()) == len(registry.names())
    for part in (legend, areas):
        box = part.get_window_extent()
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    assert areas.get_window_extent().x0 > spot.bbox.x1


def test_a_report_names_the_commit() -> None:
    head = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    said = made_by("the command")
    assert f"code {fingerprint.of_package()[:12]}" in said
    if head.returncode == 0:
        assert f"commit {head.stdout.strip()}" in said


def test_a_repository_around_an_installation_is_not_ours(tmp_path: Path) -> None:
    someone = ("-c", "user.name=a", "-c", "user.email=b")
    for command in (("init", "-q"), (*someone, "commit", "-qm", "x", "--allow-empty")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert provenance._git("rev-parse", "HEAD", at=tmp_path) is not None
    (tmp_path / "provenance.py").write_text("")
    assert provenance._git("ls-files", "--error-unmatch", "provenance.py", at=tmp_path) is None
