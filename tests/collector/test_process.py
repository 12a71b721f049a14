"""A real collector in a process of its own: killed, started again, stopped."""

from __future__ import annotations

import http.client
import json
import re
import resource
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import load
from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.credentials.secrets import Secrets
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.machine_clock import SystemClock
from ldpstream.protocol.authentication import report_mac, report_prefix
from ldpstream.protocol.slots import is_turn
from tests.collector.helpers import device_of
from tests.serving import SERVE, CollectorProcess
from tests.waiting import eventually

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
    pin = call(port, "GET", "/v1/streams/a")[1]["pin"]
    mac = report_mac(keys.of(device), report_prefix("a", pin, round_name), content)
    path = PATH.format(round_name)
    return call(port, "POST", path, content, Ldp_Device=device.hex(), Ldp_Mac=mac.hex())


def outcome(port: int, keys: DeviceKeys, number: int, round_name: str = "1-publication") -> Any:
    """The status of a report's answer, and what it says of the report."""
    status, answer = report(port, keys, number, round_name)
    return status, answer["status"]


def first_event(port: int) -> dict[str, Any]:
    """The first release of the feed, requested like a client that reconnects."""
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
    collector = CollectorProcess.of(tmp_path, CONFIG)
    config = load(collector.file)
    master = Secrets.load({}, config.folder).master
    keys = DeviceKeys(master, "a")
    with closing(SqliteStore(config.store, master)) as store:
        Coordinator(config.streams[0], store, ManualClock(SystemClock().wall_ms()))
        for number in range(4):
            store.enrol("a", device_of(number))

    with collector:
        port = collector.port
        told = call(port, "GET", "/v1/streams/a/rounds?wait=30", Ldp_Device=device_of(0).hex())[1]
        assert told["rounds"][0]["round"] == "1-publication"
        for number in (0, 1):
            assert outcome(port, keys, number) == (202, "accepted")
        collector.kill()
        collector.start()
        told_again = call(
            port, "GET", "/v1/streams/a/rounds?wait=30", Ldp_Device=device_of(0).hex()
        )[1]
        assert told_again["rounds"] == told["rounds"]
        assert told_again["serial"] >= told["serial"]
        assert outcome(port, keys, 1) == (202, "repeated")
        for number in (2, 3):
            assert outcome(port, keys, number) == (202, "accepted")
        release = first_event(port)  # closed at once, since everyone has answered
        assert (release["t"], release["received"], release["fresh"]) == (1, 4, True)
        assert report(port, keys, 0)[0] == 410
        assert collector.stop() == 0

    with closing(SqliteStore(config.store, master)) as store:
        (stored,) = store.rounds("a", 0)
        assert stored.support is not None
        assert (stored.support.counts.tolist(), stored.support.reports) == ([2, 1, 1], 4)
        assert [one.to_json() for one in store.releases("a", 0, 9)] == [release]


def test_kill_9_in_a_slot_loses_nothing(tmp_path: Path) -> None:
    """Devices report unasked; those whose slot it is not are refused, before the kill and after."""
    stream = CONFIG.replace("roster", "slots").replace("lbu", "lpu")
    with CollectorProcess.of(tmp_path, stream) as collector:
        master = Secrets.load({}, load(collector.file).folder).master
        keys, port = DeviceKeys(master, "a"), collector.port
        due = [number for number in range(40) if is_turn(keys.of(device_of(number)), 4, 1)]
        others = [number for number in range(40) if number not in due]
        assert outcome(port, keys, due[0]) == (202, "accepted")
        assert outcome(port, keys, others[0]) == (403, 403)
        collector.kill()
        collector.start()
        assert outcome(port, keys, due[0]) == (202, "repeated")
        assert outcome(port, keys, due[1]) == (202, "accepted")
        assert outcome(port, keys, others[0]) == (403, 403)
        early = report(port, keys, due[0], "2-publication")
        assert (early[0], early[1]["type"]) == (425, "urn:ldpstream:problem:round-early")
        status = call(port, "GET", "/v1/streams/a/status")[1]
        assert [one["received"] for one in status["rounds"]] == [2]


def test_json_is_one_object_once_it_listens(tmp_path: Path) -> None:
    with CollectorProcess.of(tmp_path, CONFIG) as collector:
        (stream,) = collector.announced["streams"]
        answer = call(collector.port, "GET", "/v1/streams/a")[1]
        assert (stream["stream"], stream["pin"]) == ("a", answer["pin"])
        assert stream["terms"] == answer["terms"]
        collector.process.terminate()
        assert collector.process.communicate(timeout=SECONDS)[0] == ""
        assert collector.process.returncode == 0


def test_words_say_where_it_listens_and_that_it_stopped(tmp_path: Path) -> None:
    file = CollectorProcess.of(tmp_path, CONFIG).file
    with subprocess.Popen([*SERVE, str(file)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(6)]
        stream, pin, page, admin, enrolment, address = lines
        process.terminate()
        assert process.stdout.read() == "stopped\n"
    assert stream.startswith("a: lbu with grr, epsilon 1 in 4 timestamps")
    assert pin.startswith("  pin ")
    assert re.fullmatch(r"page: http://127\.0\.0\.1:\d+/\n", page)
    assert admin == f"admin token: in {tmp_path / 'data' / 'admin.secret'}\n"
    assert enrolment == f"enrolment token: in {tmp_path / 'data' / 'enrolment.secret'}\n"
    assert re.fullmatch(r"listening on http://127\.0\.0\.1:\d+\n", address)


def test_a_collector_may_have_as_many_connections_as_it_is_told(tmp_path: Path) -> None:
    limited = CONFIG + "[collector.limits]\nconnections = 400\n"
    kind = resource.RLIMIT_NOFILE
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (256, before[1]))  # as a shell with a low limit
    try:
        with CollectorProcess.of(tmp_path, limited) as collector:
            assert resource.prlimit(collector.process.pid, kind)[0] > 400
    finally:
        resource.setrlimit(kind, before)


def test_a_start_on_a_port_in_use_leaves_no_secrets_behind(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        collector = CollectorProcess.of(tmp_path, CONFIG.replace(":0", f":{port}"))
        with pytest.raises(RuntimeError):
            collector.start()
    assert f"cannot listen on 127.0.0.1:{port}" in collector.log.read_text()
    assert not list(tmp_path.rglob("*.secret"))


def test_mistakes_end_in_one_line_and_status_2(tmp_path: Path) -> None:
    collector = CollectorProcess.of(tmp_path, CONFIG)
    config = load(collector.file)
    store = SqliteStore(config.store, Secrets.load({}, config.folder).master)
    with closing(store), pytest.raises(RuntimeError) as failed:
        collector.start()
    assert collector.process.returncode == 2
    said = collector.log.read_text()
    assert said.count("\n") == 1
    assert "in use by another collector" in said
    assert said in failed.value.__notes__[0]


HASTY = """
import os, signal, sys
from pathlib import Path
import ldpstream.collector.service.warm_up as slow
from ldpstream.cli import main

file, warm_up = Path(sys.argv[1]), slow.warm_up

def reloaded(streams):
    file.write_text(file.read_text().replace("population = 4", "population = 40"))
    os.kill(os.getpid(), signal.SIGHUP)
    warm_up(streams)

slow.warm_up = reloaded
sys.argv = ["ldpstream", "serve", *sys.argv[1:]]
main()
"""


def test_a_reload_that_comes_while_it_starts_ends_nothing(tmp_path: Path) -> None:
    """As from a service manager; it is carried out once the collector listens."""
    collector = CollectorProcess.of(tmp_path, CONFIG)
    collector.command = (sys.executable, "-c", HASTY)
    with collector:
        eventually(lambda: "population = 4 -> 40" in collector.log.read_text())
