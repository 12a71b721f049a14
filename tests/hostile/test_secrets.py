"""Tokens and keys stay where they belong: not in logs, URLs, errors, metrics or others' files."""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from ldpstream.collector.credentials.read_tokens import read_token
from ldpstream.collector.credentials.secrets import Secrets
from ldpstream.collector.json_logging import JsonLines
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.device import Unreachable
from ldpstream.device.store import DeviceStore
from ldpstream.errors import Mistake
from tests.collector.helpers import SECRETS
from tests.device.collectors import TOKEN, Bench, ScriptedWitness, a_round, device_key
from tests.hostile.http_fuzz import TOKENS, collector
from tests.serving import CollectorProcess

SECRET = "a secret that must never be seen, 0123"
DEVICE = "0f" * 16
SHOWN = "1f" * 32


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    with collector(tmp_path_factory.mktemp("secrets")) as running:
        yield running


def seen_by(at: CollectorProcess) -> Iterator[tuple[str, str]]:
    """Everything that a collector says, to anyone, except what it is asked to hand out."""
    admin, enrolment, master = TOKENS.values()
    reader = read_token(admin.encode(), "roster")
    paths = ["/v1/streams", "/v1/ready", "/v1/health", "/metrics", "/v1/admin/status", "/nowhere"]
    for stream in ("open", "roster", "none"):
        parts = ("", "/status", "/releases", "/alerts", "/rounds", "/share", "/devices")
        paths += [f"/v1/streams/{stream}{part}" for part in parts]
    for token in (None, admin, enrolment, master, reader, SECRET):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        for path in paths:
            for method in ("GET", "POST"):
                answer = requests.request(
                    method, at.url + path, headers=headers, data=b"{" + SECRET.encode(), timeout=10
                )
                granted = path.endswith("/share") and answer.ok
                if not granted:
                    yield f"{method} {path}", answer.text + str(answer.headers)
    yield "log", at.log.read_text()


def test_nothing_that_a_collector_says_holds_a_secret(served: CollectorProcess) -> None:
    admin = TOKENS["LDPSTREAM_ADMIN_TOKEN"]
    url = f"{served.url}/v1/streams/roster/devices"
    headers = {"Authorization": f"Bearer {TOKENS['LDPSTREAM_ENROLMENT_TOKEN']}"}
    body: dict[str, Any] = {"secret": SHOWN, "version": 2}
    enrolled = requests.post(url, json=body, headers=headers, timeout=60).json()
    secrets = [
        *TOKENS.values(),
        SHOWN,
        enrolled["key"],
        read_token(admin.encode(), "open"),
        read_token(admin.encode(), "roster"),
        SECRET,
    ]
    looked_at = 0
    for where, text in seen_by(served):
        looked_at += 1
        for secret in secrets:
            assert secret not in text, f"{where} shows a secret"
    assert looked_at > 100


def test_no_secret_is_asked_for_in_an_address(served: CollectorProcess) -> None:
    """Addresses end up in logs, histories and proxies: tokens travel in a header only."""
    described = requests.get(f"{served.url}/openapi.json", timeout=60).json()
    names = {
        parameter["name"].lower()
        for operations in described["paths"].values()
        for operation in operations.values()
        for parameter in operation.get("parameters", ())
        if parameter["in"] in ("query", "path")
    }
    assert "stream" in names
    assert not [name for name in names if "token" in name or "key" in name or "secret" in name]


def test_the_log_cuts_out_what_looks_like_a_secret() -> None:
    """The second lock: even if a call gave a token away, the line would not."""
    for text in (f"Bearer {SECRET.split()[0]}xyz", "ab" * 32, f"device {DEVICE} came"):
        record = logging.LogRecord("a", logging.INFO, "", 0, text, (), None)
        line = json.loads(JsonLines().format(record))["message"]
        assert "[removed]" in line
        assert DEVICE not in line


def test_what_holds_a_secret_does_not_show_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "device.ldp")
    device = bench.enrolled()
    key = device_key("regions", device.session.account.number.hex())
    memory = DeviceStore(bench.path, ScriptedWitness()).load()
    collector_secrets = Secrets(SECRET.encode(), SECRET.encode(), SECRET.encode())
    shown = repr([memory, memory.enrolments, collector_secrets, bench.collector.requests])
    for secret in (TOKEN, key.hex(), repr(key), repr(memory.secret), SECRET):
        assert secret not in shown


def test_errors_do_not_tell(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "device.ldp")
    bench.collector.loses = lambda request: True
    with pytest.raises(Unreachable) as lost:
        bench.enrolled()
    assert TOKEN not in repr(lost.value) + str(lost.value)
    file = tmp_path / "short.secret"
    file.write_text("too short")
    with pytest.raises(Mistake) as short:
        Secrets.load({"master": file}, tmp_path, {})
    assert "too short" not in str(short.value).replace("is too short", "")


@contextmanager
def lax_umask() -> Iterator[None]:
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {one.name: stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir() if one.is_file()}


def test_files_are_for_their_owner_only_under_a_lax_umask(tmp_path: Path) -> None:
    with lax_umask():
        bench = Bench(tmp_path / "ledgers" / "device.ldp")
        bench.path.parent.mkdir()
        bench.ask(bench.enrolled(), a_round(1))
        with closing(SqliteStore(tmp_path / "data" / "c.sqlite", SECRETS.master)) as store:
            store.create_stream("a", {})
            Secrets.load({}, tmp_path / "data", {})
            found = modes(tmp_path / "data") | modes(tmp_path / "ledgers")
    assert {"c.sqlite", "c.sqlite-wal", "c.sqlite.lock", "master.secret", "device.ldp"} <= set(
        found
    )
    assert {name: oct(mode) for name, mode in found.items() if mode != 0o600} == {}


def test_a_store_of_an_earlier_release_is_closed_to_others(tmp_path: Path) -> None:
    with lax_umask():
        (tmp_path / "c.sqlite").touch(0o644)
        SqliteStore(tmp_path / "c.sqlite", SECRETS.master).close()
    assert modes(tmp_path)["c.sqlite"] == 0o600


def test_the_journal_of_a_ledger_is_closed_to_others(tmp_path: Path) -> None:
    """While a commit is under way, the journal holds parts of the ledger."""
    seen: dict[str, int] = {}
    with lax_umask():
        bench = Bench(tmp_path / "device.ldp")
        device = bench.enrolled()
        store: Any = device.sessions.wallet.store
        honest = store._witness.stamp

        def looking(file: object) -> str:
            seen.update(modes(tmp_path))
            return str(honest(file))

        store._witness.stamp = looking
        bench.ask(device, a_round(1))
    assert seen
    assert set(seen.values()) == {0o600}
