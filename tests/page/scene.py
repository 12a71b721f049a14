"""A collector in a process of its own, with a past and a crowd, for a browser to look at."""

from __future__ import annotations

import contextlib
import hashlib
import math
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np

from ldpstream.collector.alerts.evaluator import AlertEvaluator
from ldpstream.collector.config import StreamConfig, load
from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.mechanisms.mechanism import drive
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.mechanisms.registry import build
from ldpstream.oracles import Oracle
from ldpstream.oracles.collector_half import Support
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.authentication import report_mac, report_prefix
from ldpstream.protocol.terms import Terms
from tests.serving import HEAD, CollectorProcess

MASTER = "master secret of the page's tests"
ENROLMENT = "enrolment-token-of-the-tests"
ADMIN = "admin-token-of-the-page-tests"
SECRETS = {
    "LDPSTREAM_MASTER_SECRET": MASTER,
    "LDPSTREAM_ENROLMENT_TOKEN": ENROLMENT,
    "LDPSTREAM_ADMIN_TOKEN": ADMIN,
}
XSS = '<img src=x onerror="window.pwned=1">'

Truth = Callable[[int, int], list[float]]
"""From t and the number of labels: the share of each."""


def waves(t: int, labels: int) -> list[float]:
    """A few large labels that take turns, and many small ones."""
    shares = []
    for label in range(labels):
        turn = 1 + 0.75 * math.sin(t / (19 + 7 * label) + 1.9 * label)
        shares.append(turn * 0.82**label + 0.01)
    if t % 240 > 180:
        shares[1] += 1.1
    return [share / sum(shares) for share in shares]


@dataclass
class Scene:
    """A folder with a configuration, and the collector that runs it."""

    folder: Path
    streams: str

    def __post_init__(self) -> None:
        self.collector = CollectorProcess.of(self.folder, HEAD + self.streams, SECRETS)

    @property
    def url(self) -> str:
        return self.collector.url

    @property
    def store(self) -> Path:
        return self.folder / "collector.sqlite"

    def stream(self, name: str) -> StreamConfig:
        return next(one for one in load(self.collector.file).streams if one.name == name)

    def releases(self, stream: str, *, revised: bool = False) -> list[dict[str, Any]]:
        asked = f"limit=10000&revised={str(revised).lower()}"
        answer = httpx.get(f"{self.url}/v1/streams/{stream}/releases?{asked}", timeout=120)
        releases: list[dict[str, Any]] = answer.json()["releases"]
        return releases

    def hold(self, name: str, contents: Sequence[Mapping[str, Any]]) -> None:
        """Give a stream a past of releases with these contents, the last of them a second ago."""
        config = self.stream(name)
        interval = config.interval_ms
        start = int(time.time() * 1000) - len(contents) * interval - 1000
        mechanism = build(config.mechanism, config.settings)
        oracle = mechanism.noise.oracle
        terms = Terms(name, config.values, config.epsilon, config.window, interval, start, oracle)
        releases = [
            StoredRelease(t, start + t * interval, {"t": t, **content}, 100, 100, missed=False)
            for t, content in enumerate(contents, start=1)
        ]
        with closing(SqliteStore(self.store, MASTER.encode())) as store:
            store.create_stream(name, terms.to_json())
            store.release(name, releases, mechanism.save(), 0)

    def remember(self, name: str, timestamps: int, truth: Truth, ahead_ms: int = 0) -> None:
        """Give a stream a past, as its mechanism would have released it.

        The next timestamp begins in `ahead_ms`: time for the collector to start.
        """
        config = self.stream(name)
        rng = np.random.default_rng(1)
        mechanism = build(config.mechanism, config.settings)
        oracle = Oracle(mechanism.noise.oracle)
        now = int(time.time() * 1000) + ahead_ms
        start = now - timestamps * config.interval_ms
        terms = Terms(
            name, config.values, config.epsilon, config.window, config.interval_ms, start, oracle
        )
        releases, rounds = [], []
        for t in range(1, timestamps + 1):
            asked: list[int] = []
            shares = truth(t, len(config.labels))

            def answer(
                ask: Ask, t: int = t, shares: list[float] = shares, asked: list[int] = asked
            ) -> Tally:
                asked.append(ask.users)
                held = rng.multinomial(ask.users, shares).astype(np.int64)
                lab = oracle.lab(len(config.labels), ask.epsilon)
                support = lab.sample_support(held, rng)
                rounds.append((t, ask, support))
                collector = oracle.collector(len(config.labels), ask.epsilon)
                return Tally.of(collector, support, config.population)

            content = drive(mechanism.step(t), answer).to_json()
            came = sum(asked) - int(rng.integers(0, 1 + sum(asked) // 20))
            at_ms = start + t * config.interval_ms
            releases.append(StoredRelease(t, at_ms, content, sum(asked), came, missed=False))
        with closing(SqliteStore(self.store, MASTER.encode())) as store:
            store.create_stream(name, terms.to_json())
            evaluator = AlertEvaluator(name, config.alerts, store, sends=False)
            store.release(name, releases, mechanism.save(), timestamps - config.window)
            evaluator.catch_up()  # what fired then is on the timeline
        self.count(name, rounds)

    def count(self, name: str, rounds: Sequence[tuple[int, Ask, Support]]) -> None:
        """Store rounds of a stream's past, each with what was counted at its t."""
        with closing(sqlite3.connect(self.store)) as file, file:  # all at once: it has no readers
            file.executemany(
                "INSERT INTO round (stream, t, name, purpose, state, epsilon_nano, users,"
                " rate_share, rate_whole, report_bytes, opened_ms, deadline_ms, closed_ms,"
                " roster_size, counts, reports) SELECT id, ?, ? || '-' || ?, ?, 'tallied', ?, ?,"
                " 1, 1, 1, 0, 0, 0, 0, ?, ? FROM stream WHERE name = ?",
                [
                    (
                        *(t, t, ask.purpose, ask.purpose, ask.epsilon.nano, ask.users),
                        *(support.counts.astype("<i8").tobytes(), support.reports, name),
                    )
                    for t, ask, support in rounds
                ],
            )


@dataclass
class Crowd:
    """Devices as far as the collector sees them: signed reports, many a round."""

    scene: Scene
    stream: str
    truth: Truth = waves

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._answered: set[str] = set()
        self._config = self.scene.stream(self.stream)
        self._keys = DeviceKeys(MASTER.encode(), self.stream)

    def _run(self) -> None:
        serial = 0
        while not self._stopping.is_set():
            try:
                with httpx.Client(timeout=60) as client:
                    while not self._stopping.is_set():
                        serial = self._listen(client, serial)
            except (httpx.HTTPError, KeyError, ValueError):
                serial = 0
                self._stopping.wait(0.1)

    def _listen(self, client: httpx.Client, serial: int) -> int:
        here = f"{self.scene.url}/v1/streams/{self.stream}"
        heard = client.get(f"{here}/rounds", params={"after": serial, "wait": 1}).json()
        for asked in heard["rounds"]:
            if asked["round"] not in self._answered:
                self._answered.add(asked["round"])
                terms, status = (
                    client.get(here).json()["terms"],
                    client.get(f"{here}/status").json(),
                )
                number = sum(one["asked"] for one in status["rounds"])
                for batch in self._batches(asked, heard["pin"], terms["oracle"], number):
                    client.post(f"{here}/rounds/{asked['round']}/batch", content=batch)
        return int(heard["serial"])

    def _batches(self, asked: dict[str, Any], pin: str, oracle: str, number: int) -> list[bytes]:
        """About as many as are asked, each of another device."""
        config, t, name = self._config, asked["t"], asked["round"]
        rng = random.Random(f"{name} of {self.stream}")
        number = rng.randint(number * 9 // 10, number)
        device = Oracle(oracle).device(len(config.labels), Epsilon(asked["epsilon_nano"]))
        source = _Source(rng)
        values = rng.choices(range(len(config.labels)), self.truth(t, len(config.labels)), k=number)
        prefix = report_prefix(self.stream, pin, name)
        records = []
        for place, value in enumerate(values):
            own = hashlib.sha256(f"{t} {place}".encode()).digest()[:16]
            report = device.encode(device.perturb(value, source))
            records.append(own + report_mac(self._keys.of(own), prefix, report) + report)
        return [b"".join(records[at : at + 5000]) for at in range(0, len(records), 5000)]

    @contextlib.contextmanager
    def reporting(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self._thread.join(15)


class _Source:
    def __init__(self, source: random.Random) -> None:
        self._source = source

    def coin(self, favour: int, total: int) -> bool:
        return self._source.randrange(total) < favour

    def below(self, bound: int) -> int:
        return self._source.randrange(bound)


def stream_table(name: str, labels: list[str] | None, **given: object) -> str:
    """A [[stream]] of the configuration; one without labels is given a range."""
    keys: dict[str, object] = {
        "name": name,
        "labels": labels,
        "epsilon": 2,
        "window": 6,
        "interval": "500ms",
        "mechanism": "lpa",
        "selection": "open",
        "population": 600,
    } | given
    lines = [f"{key} = {_toml(value)}" for key, value in keys.items() if value is not None]
    return "\n[[stream]]\n" + "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, str):
        return "'" + value + "'"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"'{key}' = {_toml(one)}" for key, one in value.items()) + "}"
    return str(value).lower()
