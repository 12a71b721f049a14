"""A real collector on a machine whose clock is a year ahead for a while."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

from ldpstream.collector.clock import FOLLOWED_MS
from ldpstream.collector.config import load
from ldpstream.collector.credentials.secrets import Secrets
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.protocol.terms import Terms
from tests.collector.test_process import CONFIG, call
from tests.serving import CollectorProcess
from tests.waiting import eventually

SHIFTED = Path(__file__).with_name("shifted_collector.py")
YEAR_MS = 365 * 24 * 3_600_000


class Wrong:
    """How far the wall clock of the collector is off, in a file that it reads."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "offset"
        self.set(0)

    def set(self, milliseconds: int) -> None:
        draft = self.file.with_suffix(".new")
        draft.write_text(str(milliseconds))
        draft.rename(self.file)


def released(port: int) -> int:
    t: int = call(port, "GET", "/v1/streams/a/status")[1]["last_release"]
    return t


def two_more(port: int) -> int:
    """The last timestamp released, when two more have been than at the call."""
    before = released(port)
    eventually(lambda: released(port) >= before + 2, "two more releases")
    return released(port)


def assert_told(port: int) -> None:
    status, told = call(port, "GET", "/v1/ready")
    assert (status, told["status"], told["failures"]) == (503, "not ready", {})
    assert told["clock"].startswith("the machine's clock is 36")
    assert "ahead of the time that its steady clock confirms; set it or, if it" in told["clock"]
    status, told = call(port, "GET", "/v1/streams/a/status")
    assert abs(told["clock_ahead_ms"] - YEAR_MS) < FOLLOWED_MS
    assert abs(told["now_ms"] - time.time_ns() // 1_000_000) < FOLLOWED_MS
    assert "; but the machine's clock is 36" in told["doing"]


def test_a_year_ahead_for_a_while_costs_no_timestamp(tmp_path: Path) -> None:
    file, wrong = tmp_path / "collector.toml", Wrong(tmp_path)
    file.write_text(CONFIG.replace("1h", "500ms").replace("roster", "open"))
    serve = (sys.executable, str(SHIFTED), str(wrong.file))

    with CollectorProcess(file, command=serve) as collector:
        port = collector.port
        two_more(port)
        assert call(port, "GET", "/v1/ready")[0] == 200
        wrong.set(YEAR_MS)
        two_more(port)
        assert_told(port)
        collector.kill()
        told = "ahead of the time that its steady clock confirms"
        assert collector.log.read_text().count(told) == 1
        collector.start()
        two_more(port)
        assert_told(port)
        wrong.set(0)
        assert call(port, "GET", "/v1/ready")[0] == 200
        last = two_more(port)
        assert collector.stop() == 0
        assert collector.log.read_text().count("is believed again") == 1

    config = load(file)
    with closing(SqliteStore(config.store, Secrets.load({}, config.folder).master)) as store:
        stored, releases = store.stream("a"), store.releases("a", 0, 10_000)
    assert stored is not None
    now_ms = time.time_ns() // 1_000_000
    assert last <= stored.last_t <= Terms.read(stored.terms).timestamp_at(now_ms)
    first = releases[0].t  # a busy machine may miss the first of all
    assert [one.t for one in releases] == list(range(first, stored.last_t + 1))
    assert max(one.at_ms for one in releases) <= now_ms
