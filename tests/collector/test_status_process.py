"""`ldpstream status`: every state, reached for real, at collectors in processes of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ldpstream.cli import run
from ldpstream.collector.store.database import Database
from tests.collector.operating import Admin, DeviceFleet
from tests.engines.sparkling import running as running_engine
from tests.jetstream import running_nats
from tests.serving import ENROLMENT, HEAD, TOKEN, CollectorProcess, stream_table
from tests.waiting import eventually

STREAM: dict[str, object] = {
    "labels": '["x", "y"]',
    "epsilon": 8,
    "window": 2,
    "interval": '"1s"',
    "mechanism": '"lpf"',
    "selection": '"slots"',
    "population": '"auto"',
    "public": "true",
}
Status = Callable[[str], tuple[int, dict[str, Any]]]


def table(name: str, **more: object) -> str:
    return stream_table(name, datetime.now(UTC), **STREAM | more) + "\n"


def status_of(collector: CollectorProcess, capsys: pytest.CaptureFixture[str]) -> Status:
    """Return what calls the command; it returns its exit status and what it says of a stream."""

    def call(stream: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        line = ["status", str(collector.file), "--url", collector.url, "--stream", stream]
        code = run([*line, "--json"])
        (told,) = json.loads(capsys.readouterr().out)
        return code, told

    return call


def test_every_state_of_a_fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Waiting, live, thin, paused, silent, retired and, when the store is gone, failing."""
    tables = [table("a"), table("few", population=4000), table("nobody")]
    text = HEAD + "".join(tables)
    with CollectorProcess.of(tmp_path, text, ENROLMENT) as collector:
        status, admin = status_of(collector, capsys), Admin.of(tmp_path, collector.url)
        assert collector.announced["page"] == f"{collector.url}/"
        assert collector.announced["tokens"]["admin"] == str(tmp_path / "admin.secret")

        def reaches(stream: str, state: str, code: int) -> None:
            eventually(lambda: status(stream)[1]["state"] == state)
            assert status(stream)[0] == code
            assert admin.call("GET", f"streams/{stream}")["state"] == state

        reaches("nobody", "waiting", 3)
        fleets = [DeviceFleet(collector.url, tmp_path / "d", "a", 20, TOKEN)]
        fleets.append(DeviceFleet(collector.url, tmp_path / "d", "few", 3, TOKEN))
        with fleets[0].running(), fleets[1].running():
            reaches("a", "live", 0)
            reaches("few", "thin", 3)
            capsys.readouterr()
            run(["pause", str(collector.file), "a", "--url", collector.url, "--json"])
            assert json.loads(capsys.readouterr().out)["state"] == "paused"
            reaches("a", "paused", 0)
            run(["resume", str(collector.file), "a", "--url", collector.url])
            reaches("a", "live", 0)
        reaches("a", "silent", 3)
        file = collector.file.read_text()
        collector.file.write_text(file + "retired = true\n")
        assert run(["reload", str(collector.file), "--url", collector.url]) == 0
        assert "changed: nobody: retired = false -> true" in capsys.readouterr().out
        reaches("nobody", "retired", 0)
        eventually(lambda: '"state": "silent"' in collector.log.read_text())
        (tmp_path / "collector.sqlite").rename(tmp_path / "elsewhere.sqlite")
        reaches("a", "failing", 4)


def test_an_engine_that_does_not_run_is_seen(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_nats() as server:
        head = HEAD.replace('"collector.sqlite"', f'"{database.url}"')
        text = f'{head}ingest = "{server.settings.url}"\n' + table("a")
        with CollectorProcess.of(tmp_path, text, ENROLMENT) as collector:
            status = status_of(collector, capsys)
            eventually(lambda: status("a")[1]["state"] == "behind")
            code, told = status("a")
            assert code == 4
            assert told["behind_seconds"] >= 3
            assert "an engine" in told["why"]
            eventually(lambda: (status("a")[1]["engine"] or {}).get("alive") is False)
            eventually(lambda: '"state": "behind"' in collector.log.read_text())
            with running_engine(tmp_path, "local", "--config", str(collector.file)):
                eventually(lambda: status("a")[1]["state"] == "waiting")
                eventually(lambda: status("a")[1]["engine"]["alive"])
