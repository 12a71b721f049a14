"""The examples of devices in Python, as programs of their own, against a real collector."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from ldpstream.device.status import read_status
from tests.bridges.test_mqtt import bridge, mosquitto
from tests.programs import free_port
from tests.serving import TOKEN, serving, stream_table

EXAMPLES = Path(__file__).parents[2] / "examples"
SLOTS = {"selection": '"slots"', "window": 2, "population": 2, "interval": '"1s"'}
MOST_LINES = 68


@contextmanager
def running(example: str, *arguments: str) -> Iterator[Iterator[str]]:
    """Run an example, and yield the lines that it prints."""
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        try:
            yield iter(started.stdout)
        finally:
            started.terminate()


def turns_in(lines: Iterator[str], number: int) -> list[int]:
    """Return the timestamps of reports, until so many are accepted; others came too late."""
    turns, accepted = [], 0
    while accepted < number:
        t, status = next(lines).split(maxsplit=1)
        turns.append(int(t))
        accepted += status == "accepted\n"
        late = status == "undelivered\n" or "round-closed" in status  # on a busy machine
        assert late or status == "accepted\n", status
    return turns


def test_a_job_in_plain_http_reports_in_its_slots_and_goes_on(tmp_path: Path) -> None:
    labels = {"labels": '["idle", "busy"]', "oracle": '"grr"'}
    file = tmp_path / "load.json"
    with serving(tmp_path, stream_table("s", datetime.now(UTC), **SLOTS | labels)) as url:
        given = (url, "s", TOKEN, str(file))
        with running("plain_http.py", *given) as lines:
            first = turns_in(lines, 2)
        known = json.loads(file.read_text())
        assert file.stat().st_mode & 0o777 == 0o600
        with running("plain_http.py", *given) as lines:
            again = turns_in(lines, 2)
        assert json.loads(file.read_text())["device"] == known["device"]
    turns = [*first, *again]
    assert all(later - earlier >= 2 for earlier, later in pairwise(turns))


def test_the_job_in_plain_http_is_as_short_as_it_says() -> None:
    text = (EXAMPLES / "plain_http.py").read_text()
    tree, others = ast.parse(text), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            others.add(node.lineno)
        elif isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node):
            words = node.body[0]
            others |= {*range(words.lineno, (words.end_lineno or 0) + 1)}
    numbered = enumerate(text.splitlines(), 1)
    code = [line for number, line in numbered if line.strip() and number not in others]
    assert len(code) <= MOST_LINES


def test_a_meter_reports_over_mqtt(tmp_path: Path) -> None:
    table = stream_table(
        "meter", datetime.now(UTC), **SLOTS | {"range": "[0, 16]", "oracle": '"auto"'}
    )
    table = re.sub(r"labels = .*\n", "", table)
    file = tmp_path / "meter.ldp"
    with serving(tmp_path, table) as url, mosquitto(tmp_path, free_port()) as broker:
        bridging = bridge(url, broker, "meter")
        try:
            with running("meter_mqtt.py", url, TOKEN, broker, str(file)) as lines:
                assert next(line for line in lines if line != "delivered 0\n") == "delivered 1\n"
        finally:
            bridging.terminate()
            bridging.communicate(timeout=30)
    (stream,) = read_status(file).streams
    assert stream.terms.stream == "meter"
