"""The wheel, as users install it: alone on a device, and with the extra `collector`."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

from ldpstream.cli import USUAL_EXTRAS
from tests.serving import TOKEN, serving, stream_table
from tests.verify.environments import Environment, build_wheel

MOST_BYTES_OF_A_DEVICE = 5_000_000

DEVICE = """
import sys, time
from ldpstream.device import Device

url, token = sys.argv[1:]
with Device.create("device.ldp", first_install=True) as device:
    device.enrol(url, "s", token)
with Device.open("device.ldp") as device:
    device.observe("1")
    end = time.monotonic() + 60
    while not (delivered := device.poll(wait=5).delivered):
        assert time.monotonic() < end, "no report was delivered"
        time.sleep(0.05)
print(len(delivered))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel and all that it requires, which is nothing."""
    made = Environment.make(tmp_path_factory.mktemp("alone"))
    made.install("--no-index", str(wheel))
    return made


@pytest.fixture(scope="module")
def collector(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment.make(tmp_path_factory.mktemp("collector"))
    made.install(f"ldpstream[collector] @ {wheel.as_uri()}")
    return made


def test_the_wheel_requires_nothing_without_an_extra(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    required = metadata.get_all("Requires-Dist", [])
    assert required
    assert [one for one in required if not re.search(r"extra == ", one)] == []


def steady(status: str) -> dict[str, object]:
    """Return what a status says of its only stream, without what changes as time passes."""
    moving = ("t", "left_nano", "full_in_seconds")
    (stream,) = json.loads(status)["streams"]
    return {name: value for name, value in stream.items() if name not in moving}


class TestAlone:
    def test_it_is_small_and_by_itself(self, alone: Environment) -> None:
        installed = {path.name.partition("-")[0] for path in alone.packages.iterdir()}
        assert installed == {"ldpstream"}
        print(f"{alone.size / 1e6:.1f} MB")
        assert alone.size < MOST_BYTES_OF_A_DEVICE

    def test_it_imports_and_has_help(self, alone: Environment) -> None:
        assert alone.call("-c", "import ldpstream.device").returncode == 0
        help_ = alone.call("-m", "ldpstream.device", "--help")
        assert (help_.returncode, help_.stderr) == (0, "")
        assert "audit" in help_.stdout

    def test_a_device_reports_to_a_live_collector(self, alone: Environment, tmp_path: Path) -> None:
        stream = stream_table("s", datetime.now(UTC), population=1, window=1)
        with serving(tmp_path, stream) as url:
            done = alone.call("-c", DEVICE, url, TOKEN)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) >= 1
        status = alone.call("-m", "ldpstream.device", "status", "device.ldp", "--json")
        again = alone.ldpstream("device", "status", "device.ldp", "--json")
        assert steady(status.stdout)["stream"] == "s"
        assert steady(status.stdout) == steady(again.stdout)
        audit = alone.call("-m", "ldpstream.device", "audit", "device.ldp")
        assert (audit.returncode, audit.stdout.splitlines()[-1]) == (0, "nothing wrong")

    @pytest.mark.parametrize("command", ["simulate", *USUAL_EXTRAS])
    def test_the_console_script_names_the_extra(self, alone: Environment, command: str) -> None:
        done = alone.ldpstream(command)
        extra = USUAL_EXTRAS.get(command, "lab")
        line = (
            f"ldpstream: {command} needs the extra '{extra}';"
            f" install it: pip install 'ldpstream[{extra}]'\n"
        )
        assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


class TestCollector:
    def test_the_demo_runs(self, collector: Environment) -> None:
        first = collector.ldpstream("demo", "--seconds", "8", "--json")
        assert first.returncode == 0, first.stderr
        assert json.loads(first.stdout)["releases"] >= 1
        # The first run fills the cache of compiled kernels: a collector compiles them before it
        # listens. The second one is of a size that a busy machine has time for.
        done = collector.ldpstream("demo", "--seconds", "8", "--devices", "200", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["reports"] > 0
        assert list(collector.workplace.iterdir()) == []

    def test_a_simulation_runs(self, collector: Environment) -> None:
        done = collector.ldpstream("simulate", "--stream", "sin", "--mechanism", "lpu", "--json")
        assert done.returncode == 0, done.stderr
        (row,) = json.loads(done.stdout)
        assert row["mechanism"].lower() == "lpu"
        assert list(collector.workplace.iterdir()) == []

    @pytest.mark.parametrize(
        ("arguments", "extra"),
        [
            (["simulate", "--plot", "x.png"], "figures"),
            (["compare", "--out", "x"], "figures"),
            (["reproduce", "table2", "--out", "x"], "figures"),
            (["data", "prepare", "msnbc", "--from", "x"], "data"),
            (["bridge", "mqtt", "--collector", "http://127.0.0.1:1", "--stream", "s"], "mqtt"),
        ],
    )
    def test_another_extra_is_named(
        self, collector: Environment, arguments: list[str], extra: str
    ) -> None:
        done = collector.ldpstream(*arguments)
        assert done.returncode == 2
        assert done.stderr.endswith(f"pip install 'ldpstream[{extra}]'\n")
        assert done.stderr.count("\n") == 1
