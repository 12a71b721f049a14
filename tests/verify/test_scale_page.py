"""The commands of docs/scale.md for one machine, as they stand there but for ports and database."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg

from ldpstream.collector.store.database import Database
from tests.programs import FETCHED, free_port, program

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
SECONDS = 120


def block(kind: str, section: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)
    assert found is not None, f"there is no {kind} block in the section"
    return found[1]


def test_two_collectors_a_log_and_an_engine_on_one_machine(
    tmp_path: Path, database: Database
) -> None:
    program("nats-server")
    section = PAGE.read_text().partition("### All of it on one machine")[2].partition("\n### ")[0]
    ports = {number: free_port() for number in (4222, 8081, 8082)}
    files = {"nats.conf": block("conf", section), "one.toml": block("toml", section)}
    script = block("sh", section)
    for name, text in files.items():
        placed = text.replace("postgresql:///streams", database.url)
        (tmp_path / name).write_text(with_ports(placed, ports))
    paths = (str(Path(sys.executable).parent), str(FETCHED), os.environ["PATH"])
    environment = os.environ | {"PATH": os.pathsep.join(paths)}
    # What is started in the background is awaited by the port that it listens on, and ended.
    lines = with_ports(script, ports).splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("ldpstream fleet"))
    waiting = [wait_line(port) for port in ports.values()]
    ending = "trap 'kill $(jobs -p); wait' EXIT"
    done = subprocess.run(
        ["bash", "-euc", "\n".join([ending, *lines[:first], *waiting, *lines[first:]])],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=4 * SECONDS,
        check=False,
    )
    assert (tmp_path / "sin.csv").exists(), done.stderr
    with (tmp_path / "sin.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["received"]) for row in rows) > 0, done.stderr
    with psycopg.connect(database.url) as connection:
        holders = connection.execute("SELECT count(*) FROM ldpstream.lease").fetchone()
    assert holders == (1,)


def with_ports(text: str, ports: dict[int, int]) -> str:
    """Replace the ports, all at once: a free one may be among them."""
    return re.sub("|".join(map(str, ports)), lambda found: str(ports[int(found[0])]), text)


def wait_line(port: int) -> str:
    """Return a command that ends when somebody listens on a port."""
    return (
        f"for _ in $(seq {10 * SECONDS}); do"
        f" (: < /dev/tcp/127.0.0.1/{port}) 2>/dev/null && break; sleep 0.1; done"
    )
