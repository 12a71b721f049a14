"""The commands of administrators, at a real collector."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ldpstream.cli import run
from ldpstream.cli.operation import SHOWN
from tests.collector.helpers import device_of
from tests.device.scripted import ScriptedServer, Talk
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
    assert call("tokens", "revoke", "field") == [{"name": "field", "revoked": True}]
    (listed,) = call("tokens", "list")
    assert listed["revoked_ms"] is not None
    denied = [{"stream": "a", "device": device_of(n).hex()} for n in (1, 2)]
    assert call("deny", "add", "a", *(one["device"] for one in denied)) == denied
    assert do("deny", "add", "a", denied[0]["device"]) == 0
    assert capsys.readouterr().out == "a: 2 device(s) denied\n"
    assert call("deny", "remove", "a", denied[0]["device"]) == denied[1:]
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
        "deny",
        "allow",
        "silence",
        "end-silence",
    ]
    assert do("admin", "log") == 0
    assert "create-token" in capsys.readouterr().out
    collector.stop()
    assert do("keys", "status") == 1  # not a user's mistake; `export` and `fleet` say the same
    assert "does not answer" in capsys.readouterr().err


ROW = {"t": 1, "at_ms": 1, "asked": 1, "received": 1, "missed": False}
ALMOST = [
    {},
    {"streams": [], "labels": ["x"], "releases": {}},
    {"streams": {"a": 1}, "labels": 1, "releases": [1]},
    {"streams": {"a": {}}, "labels": ["x"], "releases": [{}]},
    {"streams": {"a": {"state": "odd"}}, "labels": ["x"], "releases": [ROW]},
    {
        "streams": {"a": dict.fromkeys(SHOWN, "odd")},
        "labels": ["x"],
        "releases": [ROW | {"fresh": True, "terms_version": 1, "values": 1}],
    },
]
"""What a program answers that imitates the API: each lacks a part, or has another one."""


@pytest.mark.parametrize(
    "answer", [b"<html>", b"[1]", b"[" * 100_000, *(json.dumps(one).encode() for one in ALMOST)]
)
@pytest.mark.parametrize("command", ["status", "export"])
def test_a_server_that_is_no_collector_is_told_in_a_line(
    command: str, answer: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "collector.toml"
    file.write_text(HEAD + STREAM)
    (tmp_path / "admin.secret").write_text("a" * 64)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\nConnection: close\r\n\r\n"

    def say(talk: Talk) -> None:
        if talk.hear():
            talk.say(head.encode() + answer)

    with ScriptedServer(say) as server:
        given = {
            "status": [str(file), "--url", server.url],
            "export": ["--collector", server.url, "--stream", "a", "--out", str(tmp_path / "o")],
        }
        assert run([command, *given[command]]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "check that the address is that of an ldpstream collector" in line


ODD: list[object] = [5, True, None, [5], {"x": 5}, "\ud800", []]


@pytest.mark.parametrize("part", ODD, ids=repr)
@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["tokens", "list"], "tokens"),
        (["deny", "list"], "devices"),
        (["admin", "log"], "entries"),
        (["alerts", "silence"], "rules"),
        (["reload"], "refused"),
        (["pause"], "state"),
        (["status"], "streams"),
        (["export"], "labels_of_versions"),
    ],
    ids=lambda one: one if isinstance(one, str) else " ".join(one),
)
@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden"])
def test_odd_parts_of_an_answer_are_no_traceback(
    command: list[str],
    name: str,
    status: str,
    part: object,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "collector.toml"
    file.write_text(HEAD + STREAM)
    (tmp_path / "admin.secret").write_text("a" * 64)
    told = {"stream": "a", "why": "", "changes": [], "stays": [], "labels": ["x"], "releases": []}
    first = json.dumps({**told, "type": part, "detail": part, name: part}).encode()
    answers = iter([first])  # later ones end what goes on page by page

    def say(talk: Talk) -> None:
        if talk.hear():
            body = next(answers, b"{}")
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            talk.say(head.encode() + body)

    with ScriptedServer(say) as server:
        more = ["a"] if command[-1] in ("silence", "pause") or command[0] == "deny" else []
        given = [str(file), *more, "--url", server.url]
        if command == ["export"]:
            given = ["--collector", server.url, "--stream", "a", "--out", str(tmp_path / "o")]
        assert run([*command, *given]) in (0, 1, 2, 3, 4)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://x:port", "http://a b", "http://[::1", "x", "http://"])
def test_what_is_no_address_is_told_in_a_line(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "collector.toml"
    file.write_text(HEAD + STREAM)
    (tmp_path / "admin.secret").write_text("a" * 64)
    assert run(["status", str(file), "--url", url]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "give its URL, such as" in line
