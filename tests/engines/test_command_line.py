"""`ldpstream engine`: what it needs is told in one line; nothing to recount is no error."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldpstream.cli import run
from ldpstream.collector.store.database import Database
from tests.engines.sparkling import write_config
from tests.jetstream import NatsServer

EXAMPLE = Path(__file__).parents[2] / "examples" / "stream.toml"


def test_a_collector_without_a_log_needs_no_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["engine", "local", "--config", str(EXAMPLE)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "add ingest =" in told


def test_spark_needs_a_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["engine", "spark", "--config", str(EXAMPLE), "--master", "local"]) == 2
    assert "--checkpoint is missing" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["local"], ["spark", "--master", "local"]])
def test_json_is_for_recounts(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["engine", *command, "--config", str(EXAMPLE), "--json"]) == 2
    assert capsys.readouterr().err == "ldpstream: --json is given; give --recount with it\n"


def test_a_database_that_is_away_is_told_in_one_line(
    nats_server: NatsServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = Database("postgresql://me@127.0.0.1:1/streams")
    file = write_config(tmp_path / "c.toml", nowhere, nats_server, "never", 4)
    assert run(["engine", "local", "--config", str(file)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"{nowhere} cannot be used" in told


def test_nothing_to_recount(
    nats_server: NatsServer, database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_config(tmp_path / "c.toml", database, nats_server, "never", 4)
    assert run(["engine", "local", "--config", str(file), "--recount"]) == 0
    assert "no complete round that has been counted" in capsys.readouterr().out
    assert run(["engine", "local", "--config", str(file), "--recount", "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"
