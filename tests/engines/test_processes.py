"""Two collectors, a log and an engine, each a process of its own: killed in mid-round, exact."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import load
from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.credentials.secrets import Secrets
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.contract import RoundState, StoredRelease
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.store import PostgresStore
from ldpstream.machine_clock import SystemClock
from tests.collector.helpers import device_of
from tests.collector.test_process import call, report
from tests.engines.sparkling import running
from tests.jetstream import running_nats
from tests.serving import CollectorProcess
from tests.waiting import eventually

DEVICES = 30
CONFIG = """\
[collector]
listen = "127.0.0.1:0"
store = "{store}"
ingest = "{ingest}"
lease = "500ms"

[[stream]]
name = "a"
labels = ["x", "y", "z"]
epsilon = 1
window = 4
interval = "1h"
mechanism = "lbu"
oracle = "grr"
selection = "roster"
population = 30
"""


def test_a_collector_and_an_engine_are_killed_and_nothing_is_lost(
    database: Database, tmp_path: Path
) -> None:
    """Every device reports, some to both collectors; the round closes when all are counted."""
    with running_nats() as server:
        file = tmp_path / "collector.toml"
        file.write_text(CONFIG.format(store=database.url, ingest=server.settings.url))
        config = load(file)
        master = Secrets.load({}, config.folder).master
        keys = DeviceKeys(master, "a")
        with closing(PostgresStore(database, master)) as store:
            Coordinator(config.streams[0], store, ManualClock(SystemClock().wall_ms()))
            for number in range(DEVICES):
                store.enrol("a", device_of(number))
            engine = ["local", "--config", str(file)]
            with (
                CollectorProcess(file) as first,
                CollectorProcess(file) as second,
                running(tmp_path, *engine) as counting,
            ):
                one, other = first.port, second.port
                for port in (one, other):
                    told = call(
                        port, "GET", "/v1/streams/a/rounds?wait=30", Ldp_Device=device_of(0).hex()
                    )
                    assert told[1]["rounds"][0]["round"] == "1-publication"
                send(keys, one, range(12))
                send(keys, other, range(8, 20))
                first.kill()
                counting.kill()
                # All of it before it starts: what comes as it counts may wait for the deadline.
                send(keys, other, range(DEVICES))
                with running(tmp_path, *engine) as counting:
                    eventually(lambda: store.releases("a", 1, 1), "something is released")
                    assert counting.stop() == 0
                assert report(other, keys, 0)[0] == 410
            (stored,) = store.rounds("a", 0)
            (release,) = store.releases("a", 1, 1)
        assert stored.state is RoundState.TALLIED
        assert stored.support is not None
        expected = np.bincount(np.arange(DEVICES) % 3).tolist()
        assert (stored.support.reports, stored.support.counts.tolist()) == (DEVICES, expected)
        assert isinstance(release, StoredRelease)
        assert release.received == DEVICES


def send(keys: DeviceKeys, port: int, numbers: range) -> None:
    for number in numbers:
        status, answer = report(port, keys, number)
        assert (status, answer["status"]) == (202, "accepted")
