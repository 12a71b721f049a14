"""The examples do what they say."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.domain import Domain
from ldpstream.lab.simulation import simulate
from ldpstream.mechanisms.registry import unregister
from ldpstream.streams.stream import CountsStream
from tests.mechanisms.driving import Case, noisy_answers, restored, take

EXAMPLES = Path(__file__).parents[1] / "examples"
MECHANISMS = {"periodic": EXAMPLES / "own_mechanism.py", "fast-like": EXAMPLES / "fast_like.py"}
NOTEBOOK = EXAMPLES / "first_stream.ipynb"

COMPARE = "import sys; from ldpstream.cli import run; sys.exit(run(sys.argv[1:]))"


def run_fresh(program: str, *arguments: str, home: Path) -> str:
    """In a process of its own: plug-ins stay registered, and kernels warn."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"LDPSTREAM_HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


each_mechanism = pytest.mark.parametrize("name", MECHANISMS)


@each_mechanism
def test_a_mechanism_is_short(name: str) -> None:
    assert len(MECHANISMS[name].read_text().splitlines()) <= 40


@each_mechanism
def test_a_mechanism_shows_up_in_compare(name: str, tmp_path: Path) -> None:
    stream = ("--stream", "sin", "--users", "2000", "--timestamps", "40", "--windows", "6")
    grid = ("--epsilons", "1", "--repeats", "2", "--plugin", str(MECHANISMS[name]))
    out = tmp_path / "out"
    said = run_fresh(COMPARE, "compare", *stream, *grid, "--out", str(out), "--json", home=tmp_path)
    ranking = {row["mechanism"]: row for row in json.loads(said)["ranking"]}
    assert {"lpa", name} <= ranking.keys()
    assert 0 < ranking[name]["cfpu"] < ranking["lpu"]["cfpu"] + 0.01
    assert name in (out / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def registered(name: str) -> Iterator[str]:
    runpy.run_path(str(MECHANISMS[name]))
    yield name
    unregister(name)


@each_mechanism
def test_a_mechanism_goes_on_after_a_restart(registered: str) -> None:
    """Bit by bit as if nothing had happened, wherever the restart falls."""
    case = Case(registered, labels=3, users=400, window=6)
    answers = noisy_answers(case, seed=3)
    whole, restarted = case.build(), case.build()
    for t in range(1, 60):
        release = take(whole.step(t), t, answers(t)).release
        other = take(restarted.step(t), t, answers(t)).release
        assert release is not None
        assert other is not None
        assert release.to_json() == other.to_json()
        restarted = restored(restarted, case.build())


def test_the_sampler_slows_down_where_nothing_happens_and_speeds_up_at_a_jump() -> None:
    runpy.run_path(str(MECHANISMS["fast-like"]))
    try:
        still = np.tile([8000, 2000], (40, 1))
        moved = np.tile([2000, 8000], (20, 1))
        stream = CountsStream("jump", Domain.numbered(2), np.concatenate([still, moved]))
        run = simulate(stream, "fast-like", epsilon=4, window=20, seed=1).runs[0]
    finally:
        unregister("fast-like")
    samples = np.flatnonzero(run.fresh)
    gaps = np.diff(samples)
    before, after = gaps[samples[1:] < 40], gaps[samples[:-1] >= 40]
    assert after[0] < before.max() == 10
    # Of four samples in a window, each takes a quarter of the users: off by 0.01 or so.
    assert abs(run.released[39, 0] - 0.8) < 0.05
    assert abs(run.released[-1, 0] - 0.2) < 0.05


def test_the_notebook_is_kept_with_its_pictures() -> None:
    assert sum("image/png" in output.get("data", {}) for output in outputs_of(NOTEBOOK)) == 2


def outputs_of(notebook: Path) -> list[dict[str, Any]]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [output for cell in cells for output in cell.get("outputs", [])]
