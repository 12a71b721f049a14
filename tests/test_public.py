"""What `import ldpstream` offers: names that can be seen, signatures that can be read."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import ldpstream
from ldpstream.errors import Mistake
from ldpstream.mechanisms.settings import OPTIONS, RunOptions

ROOT = Path(__file__).parents[1]
FUNCTIONS = (
    "from_frame",
    "load_plugins",
    "plot_releases",
    "plot_results",
    "read_counts",
    "read_events",
    "simulate",
)
STREAM = ldpstream.sin(users=2_000, timestamps=20)


def test_dir_shows_the_public_names_and_no_other() -> None:
    shown = {name for name in dir(ldpstream) if not name.startswith("__")}
    assert shown == set(ldpstream.__all__)
    assert all(hasattr(ldpstream, name) for name in shown)


def test_looking_imports_nothing() -> None:
    program = "import sys, ldpstream; dir(ldpstream); print({'numpy', 'polars'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "set()\n"


def test_help_shows_every_public_name() -> None:
    text = pydoc.render_doc(ldpstream, renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    assert all(name in text for name in ldpstream.__all__)
    assert "varience" not in text


def test_without_extras_help_shows_what_there_is() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); import ldpstream, pydoc;"
        "print([n for n in dir(ldpstream) if n[0] != '_']); pydoc.render_doc(ldpstream)"
    )
    command = [sys.executable, "-I", "-S", "-c", program]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.stderr, run.stdout) == ("", "['Domain', 'Epsilon', 'Oracle', 'load_plugins']\n")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_explicit_and_documented(name: str) -> None:
    function = getattr(ldpstream, name)
    parameters = inspect.signature(function).parameters.values()
    assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in parameters)
    described = (inspect.getdoc(function) or "").partition("Args:")[2]
    assert [f"\n    {one.name}: " in described for one in parameters] == [True] * len(parameters)


@pytest.mark.parametrize("function", [ldpstream.simulate, RunOptions.read])
def test_every_option_of_a_run_is_a_parameter(function: object) -> None:
    assert set(inspect.signature(function).parameters) >= set(OPTIONS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"varience": "paper"}, "simulate() has no argument 'varience'; did you mean 'variance'?"),
        ({"x": 1}, "simulate() has no argument 'x'; it takes: stream, mechanism, epsilon,"),
        ({"epsilon": None}, "epsilon is missing; give it, or levels"),
        ({"window": None}, "window is missing; give it, or levels"),
        ({"mechanism": ...}, "simulate() needs the argument 'mechanism'; give it: simulate("),
    ],
)
def test_wrong_arguments_are_one_line(given: dict[str, object], line: str) -> None:
    usual: dict[str, object] = {"mechanism": "lpa", "epsilon": 1, "window": 5}
    named = {name: value for name, value in (usual | given).items() if value is not ...}
    with pytest.raises(Mistake) as refused:
        ldpstream.simulate(STREAM, **named)  # type: ignore[arg-type]
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)


def test_options_by_a_wrong_name_are_refused_everywhere() -> None:
    with pytest.raises(Mistake, match=r"RunOptions.read\(\) has no argument 'orcale'; did you"):
        RunOptions.read(orcale="grr")  # type: ignore[call-arg]
    with pytest.raises(Mistake, match=r"read_events\(\) needs the argument 'user'"):
        ldpstream.read_events("x.csv", time="t", value="v", every="1h")  # type: ignore[call-arg]


def test_reprs_are_short() -> None:
    result = ldpstream.simulate(STREAM, "lpa", epsilon=1, window=5, transcripts=True)
    table = ldpstream.Experiment([STREAM], ["lpu"], windows=[5], repeats=2).run()
    wide = ldpstream.Domain.numbered(1000)
    for one in (STREAM, result, result.runs[0], result.runs[0].transcript, table, wide):
        assert len(repr(one)) < 170
        assert "array" not in repr(one)
    assert repr(STREAM) == "CountsStream('sin': 2,000 users, 20 timestamps, 2 labels)"
    assert repr(table) == "Results(2 runs in 1 settings: lpu)"
