"""The commands of administrators, at a real collector."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ldpstream.cli import run
from tests.collector.helpers import device_of
from tests.serving import HEAD, CollectorProcess

STREAM = """
[[stream]]
name = "a"
labels = ["x", "y"]
epsilon = 1
window = 2
interval = "1s"
population = 40
[[stream.alert]]
name = "nobody"
no_reports = "5m"
"""


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[CollectorProcess]:
    with CollectorProcess.of(tmp_path, HEAD + STREAM) as running:
        yield running


def test_an_administrator_needs_the_configuration_alone(
    collector: CollectorProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*words: str) -> Any:
        group, command, *rest = words
        line = [group, command, str(collector.file), *rest, "--url", collector.url]
        capsys.readouterr()
        assert run([*line, "--json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    def do(*words: str) -> int:
        group, command, *rest = words
        return run([group, command, str(collector.file), *rest, "--url", collector.url])

    secret = collector.file.with_name("master.secret")
    before = secret.read_text()
    (status,) = call("keys", "status")
    assert (status["earlier"], status["new"]) == (None, None)
    (prepared,) = call("keys", "rotate", "--prepare")
    assert Path(prepared["file"]).exists()
    (rotated,) = call("keys", "rotate")
    assert (rotated["current"], rotated["earlier"]) == (prepared["new"], status["current"])
    assert secret.read_text() != before
    assert do("keys", "drop") == 2
    assert "keys of the earlier master secret" in capsys.readouterr().err
    (dropped,) = call("keys", "drop", "--anyway")
    assert dropped["earlier_is_good"] is False
    (token,) = call("tokens", "create", "field", "--stream", "a", "--most-uses", "3")
    assert len(token["token"]) == 64
    assert do("tokens", "revoke", "field") == 0
    (listed,) = call("tokens", "list")
    assert listed["revoked_ms"] is not None
    assert do("deny", "add", "a", device_of(1).hex(), device_of(2).hex()) == 0
    assert do("deny", "remove", "a", device_of(1).hex()) == 0
    assert [one["device"] for one in call("deny", "list", "a")] == [device_of(2).hex()]
    (listed,) = call("alerts", "silence", "a", "nobody", "2h")
    assert listed["silenced_until_ms"] > 0
    assert do("alerts", "silence", "a", "nobody") == 2
    assert do("alerts", "silence", "a", "somebody", "2h") == 2
    assert "the only name of a rule" in capsys.readouterr().err
    (listed,) = call("alerts", "silence", "a", listed["id"], "--end")
    assert listed["silenced_until_ms"] is None
    assert [one["action"] for one in call("admin", "log")] == [
        "prepare-master",
        "rotate-master",
        "drop-master",
        "create-token",
        "revoke-token",
        "deny",
        "allow",
        "silence",
        "end-silence",
    ]
    assert do("admin", "log") == 0
    assert "create-token" in capsys.readouterr().out
    collector.stop()
    assert do("keys", "status") == 2
    assert "does not answer" in capsys.readouterr().err


class Website(BaseHTTPRequestHandler):
    """A program that answers everything, and is no collector."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    def log_message(self, *_: object) -> None: ...


def test_the_address_of_another_program_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDPSTREAM_ADMIN_TOKEN", "a token for administrators")
    file = tmp_path / "stream.toml"
    file.write_text(HEAD + STREAM)
    with HTTPServer(("127.0.0.1", 0), Website) as website:
        threading.Thread(target=website.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{website.server_port}"
        assert run(["status", str(file), "--url", url]) == 2
        website.shutdown()
    assert "the address is that of an ldpstream collector" in capsys.readouterr().err
