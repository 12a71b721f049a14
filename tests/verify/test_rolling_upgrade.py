"""A collector of 0.2.0, from its wheel, and one of this release share a PostgreSQL store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen
from zipfile import ZipFile

import pytest

from ldpstream.collector.service.opening import open_archive
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.connections import connect
from ldpstream.device import Device
from tests.serving import ENROLMENT, TOKEN, CollectorProcess, stream_table
from tests.verify.test_one_version_apart import WHEEL
from tests.waiting import eventually

MASTER = "master secret of a rolling upgrade"
LEASE_SECONDS = 2


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    with ZipFile(WHEEL) as archive:
        archive.extractall(folder)
    return folder


@contextmanager
def collector(
    folder: Path, database: Database, start: datetime, selection: str, **variables: str
) -> Iterator[CollectorProcess]:
    folder.mkdir(exist_ok=True)
    head = (
        f'[collector]\nlisten = "127.0.0.1:0"\nstore = "{database.url}"\n'
        f'lease = "{LEASE_SECONDS}s"\n'
    )
    settings: dict[str, object] = {"mechanism": '"lpf"', "selection": f'"{selection}"'}
    settings |= {"window": 2, "population": 4, "interval": '"1s"', "public": "true"}
    secrets = ENROLMENT | {"LDPSTREAM_MASTER_SECRET": MASTER} | variables
    table = stream_table("s", start, **settings)
    with CollectorProcess.of(folder, head + table, secrets) as running:
        yield running


def version_at(running: CollectorProcess) -> str:
    with urlopen(f"{running.url}/openapi.json") as answer:
        return str(json.load(answer)["info"]["version"])


def last_t(running: CollectorProcess) -> int:
    with urlopen(f"{running.url}/v1/streams/s/status") as answer:
        return int(json.load(answer)["last_release"])


def leads(database: Database, running: CollectorProcess) -> bool:
    with connect(database) as connection:
        row = connection.execute("SELECT holder FROM lease").fetchone()
    return row is not None and f"-{running.process.pid}-" in row[0]


def goes_on(running: CollectorProcess) -> None:
    reached = last_t(running)
    eventually(lambda: last_t(running) >= reached + 2, "two more releases are shown")


def delivers(device: Device) -> int:
    """Take part until a report was delivered."""
    device.observe("1")
    return len(eventually(lambda: device.poll(wait=2).delivered, "a report is delivered"))


@pytest.mark.parametrize("selection", ["slots", "roster"])
def test_neighbouring_releases_take_turns_in_leading(
    selection: str, wheel: Path, tmp_path: Path, database: Database
) -> None:
    start, path = datetime.now(UTC), {"PYTHONPATH": str(wheel)}
    with collector(tmp_path / "old", database, start, selection, **path) as old:
        assert version_at(old) == "0.2.0"
        goes_on(old)
        with (
            collector(tmp_path / "new", database, start, selection) as new,
            Device.create(tmp_path / "one.ldp", first_install=True) as one,
            Device.create(tmp_path / "two.ldp", first_install=True) as two,
        ):
            assert version_at(new) != "0.2.0"
            assert leads(database, old)  # by tables that the new one has changed
            one.enrol(old.url, "s", TOKEN, accept="not-looser")
            two.enrol(new.url, "s", TOKEN, accept="not-looser")
            delivered = delivers(one) + delivers(two)
            goes_on(new)

            old.process.send_signal(signal.SIGSTOP)
            try:
                eventually(lambda: leads(database, new), "the new one leads")
                goes_on(new)
                delivered += delivers(two)
            finally:
                old.process.send_signal(signal.SIGCONT)
            goes_on(old)  # it follows
            assert leads(database, new)
            delivered += delivers(one)
            new.stop()
            eventually(lambda: leads(database, old), "the old one leads again")
            goes_on(old)
            delivered += delivers(one)
            new.start()
            goes_on(new)
            old.stop()
            eventually(lambda: leads(database, new), "the new one leads for good")
            goes_on(new)

            refused = start_again(old)
            assert refused.returncode == 2
            assert "was written by a newer release (schema" in refused.stderr
            assert refused.stderr.count("\n") == 1
    with open_archive(database.url) as archive:
        chain = archive.chain(MASTER.encode())
        assert chain is not None
        assert archive.check_releases(chain, "s").damage is None
        found = archive.releases("s", 1)
    assert [one.t for one in found] == [*range(found[0].t, found[-1].t + 1)]
    assert sum(one.received for one in found) == delivered


def start_again(stopped: CollectorProcess) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ldpstream", "serve", str(stopped.file)],
        env={**os.environ, **stopped.secrets},
        capture_output=True,
        text=True,
        check=False,
    )
