"""What an experiment comes to, and what it remembers."""

from __future__ import annotations

import dataclasses
import json
import pickle
import sqlite3
import subprocess
import sys
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from ldpstream.domain import Domain
from ldpstream.errors import Mistake
from ldpstream.lab import fingerprint
from ldpstream.lab.cache import ResultCache
from ldpstream.lab.engines import InProcess
from ldpstream.lab.experiment import Experiment
from ldpstream.lab.imported_code import imported_code
from ldpstream.lab.plugins import load_plugins
from ldpstream.lab.results import METRICS, Results
from ldpstream.lab.simulation import simulate
from ldpstream.lab.tasks import Task
from ldpstream.mechanisms.queries import DistributionQuery, MeanQuery
from ldpstream.mechanisms.registry import recipe, unregister
from ldpstream.mechanisms.settings import OPTIONS, RunOptions
from ldpstream.streams.stream import CountsStream, ShuffledUsers
from ldpstream.streams.synthetic import sin
from tests.lab.grids import (
    OWN_MECHANISM,
    Counting,
    figures,
    prepared_stream,
    small_grid,
    write_plugin,
)


@pytest.fixture
def cache(tmp_path: Path) -> ResultCache:
    return ResultCache(tmp_path / "results.db")


def test_a_row_a_run_in_the_order_of_the_grid() -> None:
    grid = small_grid()
    rows = grid.run().rows
    settings = product(("sin", "log"), grid.mechanisms, (1.0, 0.5), (5,), (0, 1))
    columns = ("stream", "mechanism", "epsilon", "window", "repeat")
    assert [tuple(row[name] for name in columns) for row in rows] == list(settings)
    assert {(row["users"], row["timestamps"], row["labels"]) for row in rows} == {
        (2000, 40, 2),
        (3000, 30, 2),
    }
    assert {row["oracle"] for row in rows if row["mechanism"] == "central-ba"} == {"laplace"}


@pytest.mark.parametrize("stream", [sin(2000, 40), ShuffledUsers(sin(2000, 40))])
def test_repeats_are_the_runs_of_simulate(stream: CountsStream | ShuffledUsers) -> None:
    rows = Experiment([stream], ["lpd"], windows=[5], repeats=3, seed=7).run().rows
    runs = simulate(stream, "lpd", epsilon=1, window=5, repeats=3, seed=7).runs
    assert [row["mse"] for row in rows] == [run.metrics.mse for run in runs]
    assert len({row["mse"] for row in rows}) == 3


ABSENT = {
    *("coverage_rare", "coverage_after_jump", "revised_mse", "revised_coverage"),
    *("p50_mae", "p99_mae"),
}
"""Figures that a mechanism without a filter does not have on a histogram that hardly jumps."""


def test_summary_has_mean_and_deviation() -> None:
    results = small_grid(mechanisms=["lpa"], epsilons=[1], repeats=3).run()
    summary = results.summary()
    assert [(row["stream"], row["repeats"]) for row in summary] == [("sin", 3), ("log", 3)]
    for metric in METRICS:
        of_sin = [row[metric] for row in results.rows[:3]]
        if metric in ABSENT:
            assert [*of_sin, summary[0][metric], summary[0][f"{metric}_sd"]] == [None] * 5
            continue
        assert summary[0][metric] == pytest.approx(np.mean(of_sin))
        assert summary[0][f"{metric}_sd"] == pytest.approx(np.std(of_sin, ddof=1))
    assert summary[0]["roc"][50] == pytest.approx(
        np.mean([row["roc"][50] for row in results.rows[:3]])
    )


def test_one_run_has_no_deviation_and_a_still_stream_no_roc() -> None:
    still = CountsStream("still", Domain.numbered(2), np.tile([700, 300], (20, 1)))
    (row,) = Experiment([still], ["lpu"], windows=[5], repeats=1).run().summary()
    assert (row["mre_sd"], row["roc"], row["auc"]) == (0.0, None, 0.5)


def test_streams_of_one_name_are_kept_apart() -> None:
    slow, fast = sin(2000, 40), sin(2000, 40, b=0.1)
    results = Experiment([slow, fast], ["lpu"], windows=[5], repeats=2).run()
    assert [row["repeats"] for row in results.summary()] == [2, 2]
    apart = [Experiment([s], ["lpu"], windows=[5], repeats=2).run() for s in (slow, fast)]
    assert figures(Results.joined(apart)) == figures(results)


OTHER_OPTIONS: dict[str, Any] = {
    "oracle": "oue",
    "variance": "paper",
    "pool": True,
    "consistency": "clip",
    "intervals": True,
    "query": MeanQuery(0, 1),
    "persistence": 0.5,
    "selection": "open",
    "levels": "1:5:0.5,2:5:0.5",
    "lag": 5,
}
ITS_MECHANISM = {"levels": "lpu"}
"""An option that is for some mechanisms only."""


def test_every_option_is_tried() -> None:
    assert tuple(OTHER_OPTIONS) == OPTIONS


@pytest.mark.parametrize("name", OTHER_OPTIONS)
def test_runs_with_different_options_are_not_averaged(name: str) -> None:
    usual, mechanism = RunOptions(), ITS_MECHANISM.get(name, "lpd")
    other = RunOptions.read(**{name: OTHER_OPTIONS[name]})
    parts = [
        Experiment([sin(2000, 40)], [mechanism], windows=[5], repeats=2, options=options).run()
        for options in (usual, other)
    ]
    joined = Results.joined(parts).summary()
    assert [row["repeats"] for row in joined] == [2, 2]
    assert joined[0][name] != joined[1][name]
    assert [row["mse"] for row in joined] == [part.summary()[0]["mse"] for part in parts]
    json.dumps(joined)


def test_means_over_different_ranges_are_not_averaged() -> None:
    queries = (MeanQuery(0, 1), MeanQuery(0, 2), DistributionQuery(0, 1, 2))
    parts = [
        Experiment([sin(2000, 20)], ["lpu"], repeats=1, options=RunOptions(query=query)).run()
        for query in queries
    ]
    assert len(Results.joined(parts).summary()) == 3


def test_options_that_cannot_be_read_are_refused() -> None:
    for written, line in (
        ({"oracle": "nope"}, "no oracle 'nope'"),
        ({"variance": "best"}, "the variance rule is best"),
        ({"oracle": "grr", "query": MeanQuery(0, 1)}, "no oracle 'grr'"),
    ):
        with pytest.raises(Mistake, match=line):
            RunOptions.read(**written)


def test_the_roc_rises_to_one() -> None:
    for row in small_grid().run().rows:
        assert len(row["roc"]) == 101
        assert np.all(np.diff(row["roc"]) >= 0)
        assert row["roc"][-1] == 1
        assert np.trapezoid(row["roc"], dx=0.01) == pytest.approx(row["auc"], abs=0.02)


def test_to_polars() -> None:
    table = small_grid().run().to_polars()
    assert table.height == 24
    assert table.schema["roc"] == polars.List(polars.Float64)
    assert table.schema["epsilon"] == polars.Float64


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"mechanisms": ["lpa", "nope"]}, "no mechanism 'nope'"),
        ({"mechanisms": ["central-nope"]}, "no mechanism 'central-nope'"),
        ({"windows": [5, 2000]}, "too few for a window of 2000"),
        ({"epsilons": [1, -1]}, "epsilon is -1"),
        ({"repeats": 0}, "repeats is 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(changes: dict[str, object], line: str) -> None:
    engine = Counting()
    with pytest.raises(Mistake, match=line):
        small_grid(**changes).run(engine=engine)
    assert not engine.ran


def test_progress_counts_every_task_once(cache: ResultCache) -> None:
    grid, told = small_grid(), list[int]()
    grid.run(cache=cache, progress=told.append, engine=InProcess())
    assert sum(told) == len(grid.tasks()) == len(told) - 1  # first, what was known: 0
    told.clear()
    grid.run(cache=cache, progress=told.append)
    assert told == [24]


def test_the_same_run_is_done_once() -> None:
    stream = sin(2000, 40)
    renamed = dataclasses.replace(stream, name="again")
    engine, told = Counting(), list[int]()
    grid = Experiment([stream, renamed], ["lpu", "LPU"], windows=[5], repeats=1)
    rows = grid.run(engine=engine, progress=told.append).rows
    assert len(engine.ran) == 1
    assert [row["stream"] for row in rows] == ["sin", "sin", "again", "again"]
    assert sum(told) == 4


class TestCache:
    def test_an_interrupted_run_goes_on_where_it_was(self, cache: ResultCache) -> None:
        grid, first, second = small_grid(), Counting(interrupted_after=9), Counting()
        with pytest.raises(KeyboardInterrupt):
            grid.run(engine=first, cache=cache)
        results = grid.run(engine=second, cache=cache)
        assert (len(first.ran), len(second.ran)) == (9, 15)
        assert not set(first.ran) & set(second.ran)
        assert figures(results) == figures(grid.run())

    def test_each_result_is_on_disk_when_it_arrives(self, cache: ResultCache) -> None:
        def count(number: int) -> None:
            with sqlite3.connect(cache.path) as other:
                (stored,) = other.execute("SELECT count(*) FROM results").fetchone()
            other.close()
            on_disk.append(stored)

        on_disk: list[int] = []
        small_grid().run(cache=cache, progress=count, engine=InProcess())
        assert on_disk == list(range(25))

    def test_figures_come_back_bit_by_bit(self, cache: ResultCache) -> None:
        fresh = small_grid().run(cache=cache)
        with ResultCache(cache.path) as again:
            assert small_grid().run(cache=again, engine=Counting(0)).rows == fresh.rows

    def test_it_lies_in_the_users_cache(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LDPSTREAM_HOME", str(tmp_path / "home"))
        with ResultCache() as cache:
            assert cache.path == tmp_path / "home" / "results.db"

    def test_a_file_of_another_kind_is_refused(self, tmp_path: Path) -> None:
        other = tmp_path / "results.db"
        other.write_text("not a database, and long enough to be sure of it" * 100)
        with pytest.raises(Mistake, match=r"results\.db: file is not a database; delete"):
            ResultCache(other)
        with pytest.raises(Mistake, match="delete the file, or name another place"):
            ResultCache(other / "below")


class TestKey:
    def key(self, **changes: object) -> str:
        return small_grid(**changes).tasks()[0].key

    def test_every_parameter_counts(self) -> None:
        keys = [
            self.key(),
            self.key(streams=[sin(2001, 40)]),
            self.key(streams=[sin(2000, 41)]),
            self.key(streams=[sin(2000, 40, a=0.04)]),
            self.key(streams=[ShuffledUsers(sin(2000, 40))]),
            self.key(mechanisms=["lpd"]),
            self.key(mechanisms=["fast"]),
            self.key(mechanisms=["fast(theta=2)"]),
            self.key(mechanisms=["central-bd"]),
            self.key(mechanisms=["central-ba"]),
            self.key(epsilons=[2]),
            self.key(windows=[6]),
            *(
                self.key(
                    mechanisms=[ITS_MECHANISM.get(name, "lpa")],
                    epsilons=[1],
                    windows=[5],
                    options=RunOptions.read(**{name: other}),
                )
                for name, other in OTHER_OPTIONS.items()
            ),
            self.key(seed=1),
            small_grid().tasks()[1].key,
        ]
        assert len(set(keys)) == len(keys)

    def test_labels_count_and_names_do_not(self) -> None:
        stream = sin(2000, 40)
        relabelled = dataclasses.replace(stream, domain=Domain.of(["no", "yes"]))
        assert stream.fingerprint != relabelled.fingerprint
        assert self.key() == self.key(streams=[dataclasses.replace(stream, name="x")])
        assert self.key() == self.key(epsilons=["1.0"], mechanisms=["LPA"], repeats=9)

    def test_what_a_prepared_stream_holds_counts(self, tmp_path: Path) -> None:
        stream = prepared_stream(tmp_path / "one")
        copy = dataclasses.replace(prepared_stream(tmp_path / "two"), name="copy")
        other = prepared_stream(tmp_path / "three", seed=1)
        assert stream.fingerprint == copy.fingerprint
        assert len({stream.fingerprint, other.fingerprint, stream.first(29).fingerprint}) == 3

    def test_the_packages_code_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = self.key()
        monkeypatch.setattr(fingerprint, "of_package", lambda: "other")
        assert self.key() != before

    def test_all_code_that_a_run_loads_counts(self) -> None:
        program = "import sys, ldpstream.lab.tasks; print(*sys.modules)"
        run = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        loaded = {name for name in run.stdout.split() if name.startswith("ldpstream.")}
        counted = {
            ".".join(path.relative_to(fingerprint.PACKAGE.parent).with_suffix("").parts)
            for path in fingerprint.sources()
        }
        words = {"ldpstream.arguments", "ldpstream.errors", "ldpstream.lab.fingerprint"}
        words |= {"ldpstream.lab.frames", "ldpstream.lab.imported_code"}
        folders = {"ldpstream.lab", "ldpstream.protocol", "ldpstream.streams"}
        packages = {name.removesuffix(".__init__") for name in counted}
        assert loaded - packages == words | folders

    def test_a_users_code_counts(self, tmp_path: Path) -> None:
        path = write_plugin(tmp_path)
        load_plugins([path])
        made_of = recipe("every-other")
        unregister("every-other")
        before = fingerprint.of_class(made_of.allocation)
        path.write_text(OWN_MECHANISM.replace("t % 2", "t % 3"))
        assert fingerprint.of_class(made_of.allocation) == before  # what runs is what was loaded
        other = write_plugin(tmp_path, OWN_MECHANISM + "# changed").rename(tmp_path / "other.py")
        load_plugins([other])
        changed = recipe("every-other")
        unregister("every-other")
        assert fingerprint.of_class(changed.allocation) != before
        assert fingerprint.of_class(changed.division) == ""

    def test_code_that_a_users_code_imports_counts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "kit_of_mine").mkdir()
        constants = tmp_path / "kit_of_mine" / "constants.py"
        constants.write_text("EVERY = 2")
        (tmp_path / "kit_of_mine" / "__init__.py").write_text("from .rule import skipped")
        (tmp_path / "kit_of_mine" / "rule.py").write_text(
            "def skipped(t):\n    from . import constants\n    return t % constants.EVERY"
        )
        monkeypatch.setattr(sys, "path", [*sys.path])
        own = OWN_MECHANISM.replace("t % 2", "skipped(t)")
        load_plugins([write_plugin(tmp_path, "import json\nfrom kit_of_mine import skipped" + own)])
        kind = recipe("every-other").allocation
        unregister("every-other")
        before = fingerprint.of_class.__wrapped__(kind)
        assert fingerprint.of_class.__wrapped__(kind) == before
        constants.write_text("EVERY = 3")
        assert fingerprint.of_class.__wrapped__(kind) != before

    def test_packages_count_by_version(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = "import json, scipy.stats\nfrom numpy import array\nimport nowhere_at_all"
        found = imported_code(source, None)
        assert found == {name: metadata.version(name) for name in ("scipy", "numpy")}

    def test_parameters_and_a_users_query_count(self) -> None:
        class Other(MeanQuery):
            pass

        def key(name: str, query: MeanQuery) -> str:
            options = RunOptions(query=query)
            return Experiment([sin(2000, 20)], [name], options=options).tasks()[0].key

        usual = key("fast", MeanQuery(0, 1))
        assert key("fast(theta=2)", MeanQuery(0, 1)) != usual
        assert key("fast", Other(0, 1)) != usual
        assert key("fast", MeanQuery(0, 1)) == usual

    def test_tasks_travel(self) -> None:
        for task in small_grid().tasks():
            copy: Task = pickle.loads(pickle.dumps(task))
            assert (copy, copy.key) == (task, task.key)


class TestPlugins:
    def test_are_loaded_once(self, tmp_path: Path) -> None:
        path = write_plugin(tmp_path)
        load_plugins([path])
        unregister("every-other")
        load_plugins([str(path)])
        with pytest.raises(Mistake):
            recipe("every-other")

    @pytest.mark.parametrize(
        ("name", "text", "line"),
        [
            ("missing.py", None, "there is no such Python file"),
            ("notes.txt", "x = 1", "there is no such Python file"),
            ("broken.py", "import nowhere_at_all", "ModuleNotFoundError: No module named"),
            ("wrong.py", "def (", "SyntaxError: invalid syntax"),
        ],
    )
    def test_a_bad_one_is_named(
        self, tmp_path: Path, name: str, text: str | None, line: str
    ) -> None:
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(Mistake, match=line) as caught:
            load_plugins([tmp_path / name])
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)
