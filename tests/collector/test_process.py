"""A real collector in a process of its own: killed, started again, stopped."""

from __future__ import annotations

import http.client
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ldpstream.collector.clock import SystemClock
from ldpstream.collector.config import load
from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.credentials.secrets import Secrets
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.protocol.authentication import report_mac, report_prefix
from tests.collector.helpers import device_of

SERVE = [sys.executable, "-c", "from ldpstream.cli import main; main()", "serve"]
CONFIG = """\
[collector]
listen = "127.0.0.1:0"
store = "data/collector.sqlite"

[[stream]]
name = "a"
labels = ["x", "y", "z"]
epsilon = 1
window = 4
interval = "1h"
mechanism = "lbu"
oracle = "grr"
selection = "roster"
population = 4
"""
PATH = "/v1/streams/a/rounds/{}/reports"
SECONDS = 60
"""Far more than anything here takes."""


@contextmanager
def collector(file: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A running collector and its port; killed at the end if it still runs."""
    with subprocess.Popen(
        [*SERVE, str(file)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("listening on "):
                    break
            else:
                raise AssertionError("the collector did not start")
            yield process, int(line.strip().rpartition(":")[2])
        finally:
            process.kill()


def call(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as connection:
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def report(
    port: int, keys: DeviceKeys, number: int, round_name: str = "1-publication"
) -> tuple[int, Any]:
    device, content = device_of(number), bytes([1, number % 3])
    mac = report_mac(keys.of(device), report_prefix("a", round_name), content)
    path = PATH.format(round_name)
    return call(port, "POST", path, content, Ldp_Device=device.hex(), Ldp_Mac=mac.hex())


def first_event(port: int) -> dict[str, Any]:
    """The first release of the feed, asked for as one that lost its connection would."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as connection:
        connection.request("GET", "/v1/streams/a/feed", headers={"Last-Event-ID": "0"})
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        while not (line := answer.readline()).startswith(b"data: "):
            pass
        answer.close()
    event: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
    return event


def test_kill_9_loses_nothing_and_a_signal_stops_in_good_order(tmp_path: Path) -> None:
    file = tmp_path / "collector.toml"
    file.write_text(CONFIG)
    config = load(file)
    master = Secrets.load({}, config.folder).master
    keys = DeviceKeys(master, "a")
    with closing(SqliteStore(config.store, master)) as store:
        Coordinator(config.streams[0], store, SystemClock())
        for number in range(4):
            store.enrol("a", device_of(number))

    with collector(file) as (process, port):
        told = call(port, "GET", "/v1/streams/a/rounds?wait=30", Ldp_Device="00" * 16)[1]
        assert told["rounds"][0]["round"] == "1-publication"
        for number in (0, 1):
            assert report(port, keys, number) == (202, {"status": "accepted"})
        process.kill()
        process.wait(SECONDS)

    with collector(file) as (process, port):
        told_again = call(port, "GET", "/v1/streams/a/rounds?wait=30", Ldp_Device="00" * 16)[1]
        assert told_again["rounds"] == told["rounds"]
        assert told_again["serial"] >= told["serial"]
        assert report(port, keys, 1) == (202, {"status": "repeated"})
        for number in (2, 3):
            assert report(port, keys, number) == (202, {"status": "accepted"})
        release = first_event(port)  # closed at once, since everyone has answered
        assert (release["t"], release["received"], release["fresh"]) == (1, 4, True)
        assert report(port, keys, 0)[0] == 410
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0

    with closing(SqliteStore(config.store, master)) as store:
        (stored,) = store.rounds("a", 0)
        assert stored.support is not None
        assert (stored.support.counts.tolist(), stored.support.reports) == ([2, 1, 1], 4)
        assert [one.to_json() for one in store.releases("a", 0, 9)] == [release]


def test_json_is_one_object_once_it_listens(tmp_path: Path) -> None:
    file = tmp_path / "collector.toml"
    file.write_text(CONFIG)
    with subprocess.Popen(
        [*SERVE, str(file), "--json"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        (stream,) = told["streams"]
        answer = call(int(told["url"].rpartition(":")[2]), "GET", "/v1/streams/a")[1]
        assert (stream["stream"], stream["pin"]) == ("a", answer["pin"])
        assert stream["terms"] == answer["terms"]
        process.terminate()
        assert process.wait(SECONDS) == 0
        assert process.stdout.read() == ""


def test_a_collector_may_have_as_many_connections_as_it_is_told(tmp_path: Path) -> None:
    file = tmp_path / "collector.toml"
    file.write_text(CONFIG + "[collector.limits]\nconnections = 400\n")
    kind = resource.RLIMIT_NOFILE
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (256, before[1]))  # as a shell with a low limit
    try:
        with collector(file) as (process, _):
            assert resource.prlimit(process.pid, kind)[0] > 400
    finally:
        resource.setrlimit(kind, before)


def test_mistakes_end_in_one_line_and_status_2(tmp_path: Path) -> None:
    file = tmp_path / "collector.toml"
    file.write_text(CONFIG)
    config = load(file)
    with closing(SqliteStore(config.store, Secrets.load({}, config.folder).master)):
        run = subprocess.run(
            [*SERVE, str(file)], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "in use by another collector" in run.stderr
