"""What works without extras, and what is said where one is missing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ldpstream.cli import USUAL_EXTRAS
from ldpstream.cli.app import app
from ldpstream.extras import EXTRA_OF, WITH_FALLBACK
from tests.device.collectors import Bench, a_round

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

BARE = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); "
COMMAND_LINE = "from ldpstream.cli import main; main()"
DEVICE = "from runpy import run_module; run_module('ldpstream.device', run_name='__main__')"

CONFIGURATION = """
[collector]
listen = "127.0.0.1:0"
store = "{store}"

[[stream]]
name = "regions"
labels = ["a", "b"]
epsilon = 1.0
window = 5
interval = "10s"
population = 100
"""
WITH_A_LOG = 'postgresql://127.0.0.1:1/none"\ningest = "nats://127.0.0.1:1'


def bare(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program with this package and the standard library, and no site-packages."""
    command = [sys.executable, "-I", "-S", "-c", BARE + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def without(package: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command where one package cannot be imported."""
    program = f"import sys; sys.modules[{package!r}] = None; {COMMAND_LINE}"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def is_told(run: subprocess.CompletedProcess[str], extra: str) -> bool:
    line = f"needs the extra {extra!r}; install it: pip install 'ldpstream[{extra}]'\n"
    return (run.returncode, run.stdout, run.stderr.count("\n"), run.stderr.endswith(line)) == (
        2,
        "",
        1,
        True,
    )


def test_the_bare_interpreter_has_nothing_else() -> None:
    assert "No module named 'numpy'" in bare("import numpy").stderr


@pytest.fixture
def device_file(tmp_path: Path) -> str:
    bench = Bench(tmp_path / "device.ldp")
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    device.close()
    return str(bench.path)


@pytest.mark.parametrize(("program", "first"), [(DEVICE, ()), (COMMAND_LINE, ("device",))])
def test_a_device_needs_the_standard_library_only(
    program: str, first: tuple[str, ...], device_file: str
) -> None:
    for command, said in {"status": "stream: regions", "audit": "nothing wrong"}.items():
        run = bare(program, *first, command, device_file)
        assert (run.returncode, run.stderr) == (0, "")
        assert said in run.stdout.splitlines()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 2, ""),
        (["--help"], 0, ""),
        (["--version"], 0, ""),
        (["stat", "FILE"], 2, "invalid choice: 'stat'"),
        (["status"], 2, "required: FILE"),
        (["status", "nowhere.ldp"], 2, "nowhere.ldp: no such file"),
        (["audit", "nowhere.ldp", "--json"], 2, "nowhere.ldp: no such file"),
        (["status", __file__], 2, "test_extras.py: "),
        (["audit", __file__], 2, "test_extras.py: "),
    ],
)
def test_the_command_line_of_a_device_fails_in_one_line(
    arguments: list[str], status: int, said: str
) -> None:
    run = bare(DEVICE, *arguments)
    assert run.returncode == status
    assert said in run.stderr
    assert run.stderr.count("\n") == (1 if said else 0)


def commands() -> list[str]:
    single = [one.name for one in app.registered_commands if one.name != "device"]
    groups = [one.name for one in app.registered_groups]
    return [str(name) for name in single + groups]


@pytest.mark.parametrize("command", commands())
def test_every_command_names_its_extra(command: str) -> None:
    assert is_told(bare(COMMAND_LINE, command), USUAL_EXTRAS.get(command, "lab"))


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_without_a_command_the_laboratory_is_named(option: str) -> None:
    assert is_told(bare(COMMAND_LINE, option), "lab")


def test_a_name_of_the_laboratory_says_what_to_install() -> None:
    run = bare("import ldpstream; print(ldpstream.Epsilon.of(1)); ldpstream.simulate")
    assert run.stdout == "1\n"
    assert run.stderr.splitlines()[-1].endswith(
        "ldpstream.simulate needs the extra 'lab'; install it: pip install 'ldpstream[lab]'"
    )
    assert "During handling" not in run.stderr


@pytest.mark.parametrize(
    ("package", "command", "extra"),
    [
        ("numpy", "simulate", "lab"),
        ("numpy", "serve FILE", "collector"),
        ("fastapi", "serve FILE", "collector"),
        ("httptools", "serve FILE", "collector"),
        ("uvicorn", "demo", "collector"),
        ("matplotlib", "simulate --plot x.png", "figures"),
        ("matplotlib", "compare --out FOLDER", "figures"),
        ("matplotlib", "reproduce table2 --out FOLDER", "figures"),
        ("distributed", "compare --out FOLDER --engine dask://127.0.0.1:1", "dask"),
        ("polars", "data prepare msnbc --from FILE", "data"),
        ("polars", "export --stream s --store FILE --format parquet --out x", "data"),
        ("paho", "bridge mqtt --collector http://127.0.0.1:1 --stream s", "mqtt"),
        ("psycopg", "serve FILE_WITH_A_LOG", "postgres"),
        ("psycopg", "engine local --config FILE_WITH_A_LOG", "nats,postgres"),
        ("nats", "engine local --config FILE_WITH_A_LOG", "nats"),
        ("pyspark", "engine spark --config FILE --master local --checkpoint x", "spark"),
    ],
)
def test_a_missing_package_is_told_by_its_extra(
    package: str, command: str, extra: str, tmp_path: Path
) -> None:
    names = {"FILE": "stream.toml", "FILE_WITH_A_LOG": "log.toml", "FOLDER": "out"}
    for name, store in (("stream.toml", "store.sqlite"), ("log.toml", WITH_A_LOG)):
        (tmp_path / name).write_text(CONFIGURATION.format(store=store))
    words = [str(tmp_path / names[word]) if word in names else word for word in command.split()]
    run = without(package, *words)
    assert is_told(run, extra), run


def test_a_module_of_no_extra_is_a_bug_and_is_shown_whole() -> None:
    run = without("ldpstream.lab.simulation", "simulate")
    assert run.returncode == 1
    assert "Traceback" in run.stderr


def test_the_table_of_packages_is_that_of_the_project() -> None:
    assert not PROJECT["dependencies"]
    assert set(EXTRA_OF.values()) | {"all"} == EXTRAS.keys()
    (everything,) = map(Requirement, EXTRAS["all"])
    assert everything.extras == EXTRAS.keys() - {"all"}
    installed = {"paho": "paho-mqtt", "nats": "nats-py"}
    for package, extra in EXTRA_OF.items():
        names = {canonicalize_name(Requirement(one).name) for one in EXTRAS[extra]}
        assert canonicalize_name(installed.get(package, package)) in names
    distributions = {canonicalize_name(installed.get(one, one)) for one in EXTRA_OF}
    own = canonicalize_name(PROJECT["name"])
    wanted = {canonicalize_name(Requirement(one).name) for each in EXTRAS.values() for one in each}
    assert wanted - {own} == distributions | WITH_FALLBACK.keys()
    assert not distributions & WITH_FALLBACK.keys()
    for extras in USUAL_EXTRAS.values():
        assert set(extras.split(",")) <= EXTRAS.keys()


def test_the_lock_has_what_the_extras_ask_for() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    locked = [Requirement(line.rstrip(" \\")) for line in lines if line[:1].isalpha()]
    for wanted in (Requirement(one) for extra in EXTRAS.values() for one in extra):
        if wanted.name == PROJECT["name"]:
            continue
        versions = [
            next(iter(one.specifier)).version
            for one in locked
            if canonicalize_name(one.name) == canonicalize_name(wanted.name)
        ]
        assert versions, f"{wanted.name}: run make lock"
        assert all(map(wanted.specifier.contains, versions)), f"{wanted.name}: run make lock"
