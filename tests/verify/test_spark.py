"""The engine on a real Spark cluster of two executors: exact, whatever is killed in mid-round."""

from __future__ import annotations

import json
import time
from pathlib import Path

import psycopg

from ldpstream.collector.reports.records import Records
from tests.engines.rounds import LABELS, Logged, a_round, logged, reports, wrong
from tests.engines.sparkling import MASTER, run_engine, running, write_config
from tests.jetstream import NatsServer, running_nats
from tests.postgres import new_database
from tests.waiting import eventually

MESSAGES, EACH = 24, 250


def append(at: Logged, t: int, messages: range) -> list[Records]:
    """Messages of a round, each with a repeat of the one before."""
    wanted = a_round(at.stream, t)
    appended = []
    for number in messages:
        records = reports(EACH, seed=1000 * t + number, devices=number * EACH)
        at.log.append(wanted, records)
        before = reports(EACH, seed=1000 * t + number - 1, devices=(number - 1) * EACH)
        if number:
            at.log.append(wanted, before)
        appended.append(records)
    return appended


def counted(at: Logged, t: int) -> None:
    at.log.end(a_round(at.stream, t))
    name = a_round(at.stream, t).name

    def done() -> bool:
        tally = at.counts.tally(at.stream, name)
        return tally is not None and tally.ended is not None

    eventually(done, f"round {t} is counted")


def test_counts_are_exact_whatever_is_killed(postgres_server: str, tmp_path: Path) -> None:
    with (
        running_nats() as server,
        new_database(postgres_server) as database,
        logged(server, database) as at,
    ):
        file = write_config(tmp_path / "c.toml", database, server, at.stream, LABELS)
        options = ["--config", str(file), "--master", MASTER]
        checkpoint = ["--checkpoint", str(tmp_path / "checkpoint")]
        expected: dict[int, list[Records]] = {}

        with running(tmp_path, "spark", *options, *checkpoint) as engine:
            expected[1] = append(at, 1, range(MESSAGES // 2))
            engine.kill_executor()
            expected[1] += append(at, 1, range(MESSAGES // 2, MESSAGES))
            counted(at, 1)

            expected[2] = append(at, 2, range(MESSAGES // 2))
            restart(server)
            expected[2] += append(at, 2, range(MESSAGES // 2, MESSAGES))
            counted(at, 2)

            expected[3] = append(at, 3, range(MESSAGES // 2))
            begun = at.counts.counted(at.stream)
            eventually(lambda: at.counts.counted(at.stream) > begun, "more is counted")
            expected[3] += append(at, 3, range(MESSAGES // 2, MESSAGES * 3 // 4))
            engine.kill()

        with running(tmp_path, "spark", *options, *checkpoint) as engine:
            expected[3] += append(at, 3, range(MESSAGES * 3 // 4, MESSAGES))
            counted(at, 3)
            assert engine.stop() == 0

        for t, records in expected.items():
            tally = at.counts.tally(at.stream, a_round(at.stream, t).name)
            assert not wrong(tally, *records)
            assert tally is not None
            assert tally.outcome.repeated == (MESSAGES - 1) * EACH
        the_recount_agrees_until_a_count_is_changed(tmp_path, database.url, options)


def the_recount_agrees_until_a_count_is_changed(
    folder: Path, database: str, options: list[str]
) -> None:
    here = run_engine(folder, "local", *options[:2], "--recount")
    assert here.returncode == 0, here.stderr
    with psycopg.connect(database) as connection:
        connection.execute(
            "UPDATE ldpstream.log_tally SET counts = set_byte(counts, 0, get_byte(counts, 0) # 1)"
            " WHERE round = '2-publication'"
        )
    there = run_engine(folder, "spark", *options, "--recount", "--json")
    assert there.returncode == 1, there.stderr
    rows = json.loads(there.stdout)
    assert {row["round"]: row["equal"] for row in rows} == {
        "1-publication": True,
        "2-publication": False,
        "3-publication": True,
    }
    assert [row["reports"] for row in rows] == [MESSAGES * EACH] * 3


def restart(server: NatsServer) -> None:
    server.kill()
    time.sleep(0.2)
    server.start()
