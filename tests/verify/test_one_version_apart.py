"""The wheel of 0.2.0 as a device of this collector, and as the collector of this device."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from zipfile import ZipFile

import pytest

from ldpstream.device import Device
from tests.serving import ENROLMENT, HEAD, TOKEN, CollectorProcess, stream_table
from tests.verify.environments import ROOT, Environment
from tests.waiting import eventually

WHEEL = ROOT / "tests" / "fixtures" / "0.2.0" / "ldpstream-0.2.0-py3-none-any.whl"
SELECTIONS = ("slots", "open", "roster")
SUCCESSOR = '\n[stream.successor]\nversion = 2\noverlap = "1h"\n'
LEVEL = '\n[[stream.level]]\nname = "careful"\nepsilon = 0.5\nwindow = 4\n'

DEVICE = """
import sys, time
import ldpstream
from ldpstream.device import Device

assert ldpstream.__version__ == "0.2.0"
url, token, file = sys.argv[1:]
with Device.create(file, first_install=True) as device:
    device.enrol(url, "s", token)
with Device.open(file) as device:
    device.observe("1")
    end, delivered = time.monotonic() + 120, 0
    while delivered < 2:
        assert time.monotonic() < end, "no report was delivered"
        delivered += len(device.poll(wait=2).delivered)
        time.sleep(0.05)
print(delivered)
"""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel of 0.2.0 and nothing else."""
    made = Environment.make(tmp_path_factory.mktemp("older"))
    made.install("--no-index", str(WHEEL))
    return made


def table(start: datetime, selection: str, **more: object) -> str:
    given = {"selection": f'"{selection}"', "window": 2, "population": 2, "interval": '"1s"'}
    return stream_table("s", start, **given | {"public": "true"} | more)


@contextmanager
def collector(folder: Path, configuration: str, **variables: str) -> Iterator[CollectorProcess]:
    with CollectorProcess.of(folder, HEAD + configuration, ENROLMENT | variables) as running:
        yield running


def releases(url: str) -> list[dict[str, Any]]:
    with urlopen(f"{url}/v1/streams/s/releases?since=0&format=json") as answer:
        found: list[dict[str, Any]] = json.load(answer)["releases"]
        return found


def await_reports(url: str, number: int) -> None:
    eventually(
        lambda: sum(one["received"] for one in releases(url)) >= number,
        "what was delivered is counted",
    )


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_device_of_0_2_0_reports_to_this_collector(
    selection: str, older: Environment, tmp_path: Path
) -> None:
    with collector(tmp_path, table(datetime.now(UTC), selection)) as running:
        done = older.call("-c", DEVICE, running.url, TOKEN, f"{selection}.ldp")
        assert done.returncode == 0, done.stderr
        await_reports(running.url, int(done.stdout))


def test_a_device_of_0_2_0_goes_on_under_its_terms_when_others_follow_them(
    older: Environment, tmp_path: Path
) -> None:
    start = datetime.now(UTC)
    changed = table(start, "slots", labels='["0", "1", "2"]') + SUCCESSOR
    with collector(tmp_path, table(start, "slots")) as running:
        running.stop()
        running.file.write_text(HEAD + changed)
        running.start()
        done = older.call("-c", DEVICE, running.url, TOKEN, "succeeded.ldp")
        if done.returncode:  # the new terms were in force before it had enrolled
            assert "terms-format" in done.stderr
            return
        await_reports(running.url, int(done.stdout))
        eventually(
            lambda: any(one.get("terms_version") == 2 for one in releases(running.url)),
            "version 2 is in force",
        )


def test_a_device_of_0_2_0_is_refused_in_one_line_where_people_choose_levels(
    older: Environment, tmp_path: Path
) -> None:
    with collector(tmp_path, table(datetime.now(UTC), "slots", population=4) + LEVEL) as running:
        done = older.call("-c", DEVICE, running.url, TOKEN, "refused.ldp")
    assert done.returncode != 0
    assert "terms-format" in done.stderr


@pytest.mark.parametrize("selection", SELECTIONS)
def test_this_device_reports_to_a_collector_of_0_2_0(selection: str, tmp_path: Path) -> None:
    with ZipFile(WHEEL) as archive:
        archive.extractall(tmp_path / "wheel")
    variables = {"PYTHONPATH": str(tmp_path / "wheel")}
    with collector(tmp_path, table(datetime.now(UTC), selection), **variables) as running:
        with urlopen(f"{running.url}/openapi.json") as answer:
            assert json.load(answer)["info"]["version"] == "0.2.0"
        with Device.create(tmp_path / "device.ldp", first_install=True) as device:
            device.enrol(running.url, "s", TOKEN, accept="not-looser")
            device.observe("1")
            delivered = [
                *eventually(lambda: device.poll(wait=2).delivered, "a report is delivered"),
                *eventually(lambda: device.poll(wait=2).delivered, "one more is delivered"),
            ]
        await_reports(running.url, len(delivered))
