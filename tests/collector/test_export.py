"""Releases as files, from a store and from a running collector."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import uvicorn

from ldpstream.cli import run
from ldpstream.collector.api.app import build_app
from ldpstream.collector.credentials.read_tokens import read_token
from ldpstream.collector.releases.formats import MEDIA_TYPES, write
from ldpstream.collector.service.service import Service
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.names import ReleasedNames
from tests.collector.api import STREAM, Api, running
from tests.collector.helpers import SECRETS, config
from tests.collector.test_metrics import one_timestamp
from tests.waiting import eventually

COLUMNS = [
    *("t", "at_ms", "fresh", "missed", "asked", "received", "terms_version"),
    *("label", "attribute", "group", "value", "variance", "low", "high"),
]


def release(t: int, *, version: int = 1, **given: Any) -> StoredRelease:
    content: dict[str, Any] = {
        "t": t,
        "values": [0.5, 0.25, 0.25],
        "variance": [0.01, 0.02, 0.03],
        "low": [0.4, 0.2, 0.1],
        "high": [0.6, 0.3, 0.4],
        "fresh": t % 2 == 1,
    }
    if version > 1:
        content["terms_version"] = version
    usual = {"at_ms": 1000 * t, "asked": 10, "received": 9, "missed": False}
    return StoredRelease(t=t, content=content, **usual | given)


ROWS = [release(1), release(2, missed=True)]
LABELS = ("x", "t", 'a "quoted", label')  # as awkward as they may be
NAMES = ReleasedNames((LABELS,))


def table_of(kind: str, content: bytes) -> pl.DataFrame:
    file = io.BytesIO(content)
    return pl.read_parquet(file) if kind == "parquet" else pl.read_ipc(file)


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_tables_have_a_row_for_each_label(kind: str) -> None:
    table = table_of(kind, write(kind, "a", NAMES, ROWS))
    assert table.columns == COLUMNS
    assert table["label"].to_list() == [*LABELS, *LABELS]
    assert table.row(4, named=True) == {
        "t": 2,
        "at_ms": 2000,
        "fresh": False,
        "missed": True,
        "asked": 10,
        "received": 9,
        "terms_version": 1,
        "label": "t",
        "attribute": "",
        "group": "",
        "value": 0.25,
        "variance": 0.02,
        "low": 0.2,
        "high": 0.3,
    }


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_an_empty_table_has_the_same_columns(kind: str) -> None:
    empty, full = (table_of(kind, write(kind, "a", NAMES, rows)) for rows in ([], ROWS))
    assert empty.schema == full.schema
    assert empty.height == 0


def test_csv_and_ndjson_say_the_same() -> None:
    text = write("csv", "a", NAMES, ROWS).decode()
    header, *rows = csv.reader(io.StringIO(text))
    lines = [json.loads(one) for one in write("ndjson", "a", NAMES, ROWS).splitlines()]
    for row, line in zip(rows, lines, strict=True):
        parts = ("values", "variance", "low", "high")
        numbers = [number for part in parts for number in line[part]]
        assert [float(cell) for cell in row[7:]] == numbers
    assert header[7:11] == [*LABELS, "variance:x"]


CHANGED = ReleasedNames((("x", "y", "z"), ("z", "new", "x")))
"""The terms have changed: y is gone, and z and x have other places."""
BOTH = [release(1), release(2, version=2)]


def test_csv_of_several_versions_is_joined_by_name() -> None:
    header, old, new = csv.reader(io.StringIO(write("csv", "a", CHANGED, BOTH).decode()))
    rows = [dict(zip(header, row, strict=True)) for row in (old, new)]
    assert header[7:11] == ["z", "new", "x", "y"]
    assert [row["terms_version"] for row in rows] == ["1", "2"]
    assert [row["x"] for row in rows] == ["0.5", "0.25"]
    assert [row["y"] for row in rows] == ["0.25", ""]
    assert [row["new"] for row in rows] == ["", "0.25"]
    assert [row["variance:x"] for row in rows] == ["0.01", "0.03"]
    assert [row["high:y"] for row in rows] == ["0.3", ""]


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_tables_of_several_versions_have_the_labels_of_each(kind: str) -> None:
    table = table_of(kind, write(kind, "a", CHANGED, BOTH))
    assert table["label"].to_list() == ["x", "y", "z", "z", "new", "x"]
    assert table["terms_version"].to_list() == [1, 1, 1, 2, 2, 2]
    assert table.filter(pl.col("label") == "x")["value"].to_list() == [0.5, 0.25]


def test_json_of_several_versions_has_the_labels_of_each() -> None:
    told = json.loads(write("json", "a", CHANGED, BOTH))
    assert told["labels"] == ["z", "new", "x"]
    assert told["labels_of_versions"] == [["x", "y", "z"], ["z", "new", "x"]]
    assert [one.get("terms_version", 1) for one in told["releases"]] == [1, 2]
    plain = json.loads(write("json", "a", NAMES, ROWS))
    assert plain.keys() == {"stream", "labels", "releases"}


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_the_api_speaks_every_format(tmp_path: Path, kind: str) -> None:
    with running(tmp_path) as api:
        one_timestamp(api)
        by_name = api.client.get(f"{STREAM}/releases?format={kind}")
        by_type = api.client.get(f"{STREAM}/releases", headers={"Accept": MEDIA_TYPES[kind]})
    for answer in (by_name, by_type):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(MEDIA_TYPES[kind])
        assert answer.content == by_name.content


def test_without_polars_the_answer_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with running(tmp_path) as api:
        answer = api.client.get(f"{STREAM}/releases?format=arrow")
    assert answer.status_code == 406
    assert "ldpstream[data]" in answer.json()["detail"]
    assert export("--store", tmp_path / "c.sqlite", tmp_path / "out", "parquet") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


# The command


def export(place: str, where: object, out: Path, kind: str, *more: str) -> int:
    options = ["--stream", "a", "--out", str(out), "--format", kind, *more]
    return run(["export", place, str(where), *options])


def two_timestamps(api: Api) -> None:
    one_timestamp(api)
    api.pass_time(1_000)
    api.pass_time(9_000)
    eventually(lambda: api.service.streams["a"].hub.last_t == 2)


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet"])
def test_the_store_of_a_running_collector_is_exported(tmp_path: Path, kind: str) -> None:
    with running(tmp_path) as api:
        two_timestamps(api)
        assert export("--store", tmp_path / "c.sqlite", tmp_path / "out", kind) == 0
        answer = api.client.get(f"{STREAM}/releases?format={kind}")
    assert (tmp_path / "out").read_bytes() == answer.content


def test_since_leaves_out_what_came_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path) as api:
        two_timestamps(api)
    out = tmp_path / "out"
    assert export("--store", tmp_path / "c.sqlite", out, "ndjson", "--since", "2", "--json") == 0
    done = {"file": str(out), "stream": "a", "format": "ndjson", "releases": 1}
    assert json.loads(capsys.readouterr().out) == done
    assert [json.loads(line)["t"] for line in out.read_text().splitlines()] == [2]


@contextmanager
def served(service: Service) -> Iterator[str]:
    server = uvicorn.Server(
        uvicorn.Config(build_app(service), port=0, log_config=None, lifespan="on")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def test_a_collector_is_exported_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path) as api:
        two_timestamps(api)
    monkeypatch.setattr("ldpstream.cli.export.PAGE_NUMBERS", 1)
    private = config(tmp_path, mechanism="lbu", public=False)
    out = tmp_path / "out"
    with served(Service(private, SECRETS, api.clock)) as url:
        assert export("--collector", url, out, "csv") == 2
        assert "unknown, or private and needs a token" in capsys.readouterr().err
        token = read_token(SECRETS.admin, "a")
        assert export("--collector", url, out, "csv", "--token", token) == 0
        lines = tmp_path / "lines"
        assert export("--collector", url, lines, "ndjson", "--token", token) == 0
        revised = tmp_path / "revised"
        assert export("--collector", url, revised, "csv", "--token", token, "--revised") == 0
        assert revised.read_text().splitlines()[0].endswith("revised_high:y,revised_high:z")
    file = tmp_path / "collector.toml"
    file.write_text(CONFIG)
    same = tmp_path / "revised of the store"
    given = ("--revised", "--config", str(file))
    assert export("--store", tmp_path / "c.sqlite", same, "csv", *given) == 0
    assert same.read_bytes() == revised.read_bytes()
    file.write_text(CONFIG.replace('"a"', '"b"'))
    assert export("--store", tmp_path / "c.sqlite", same, "csv", *given) == 2
    assert export("--store", tmp_path / "c.sqlite", tmp_path / "same", "csv") == 0
    assert out.read_bytes() == (tmp_path / "same").read_bytes()
    assert export("--store", tmp_path / "c.sqlite", tmp_path / "same", "ndjson") == 0
    assert lines.read_bytes() == (tmp_path / "same").read_bytes()


CONFIG = """
[[stream]]
name = "a"
labels = ["x", "y", "z"]
epsilon = 1
window = 4
interval = "10s"
mechanism = "lbu"
oracle = "grr"
selection = "open"
population = 40
"""


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([], "--store"),
        (["--store", "none.sqlite"], "no such file"),
        (["--store", "none.sqlite", "--format", "xls"], "--format"),
        (["--store", "none.sqlite", "--collector", "http://127.0.0.1:1"], "--store"),
        (["--store", "none.sqlite", "--revised"], "--revised"),
    ],
)
def test_mistakes_are_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], word: str
) -> None:
    out = ["--out", str(tmp_path / "out")]
    assert run(["export", "--stream", "a", *out, *options]) == 2
    told = capsys.readouterr().err
    assert word in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_other_files_and_other_streams_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.sqlite"
    sqlite3.connect(other).close()
    assert export("--store", other, tmp_path / "out", "csv") == 2
    with running(tmp_path):
        pass
    given = ["--store", str(tmp_path / "c.sqlite"), "--out", str(tmp_path / "out")]
    assert run(["export", "--stream", "zz", *given]) == 2
    assert "use one of: a" in capsys.readouterr().err
