"""Several real collectors on one database, and the devices that talk to any of them."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from ldpstream.collector.config import Config, load
from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.reports.records import Records
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.loading import open_round_of
from ldpstream.collector.store.contract import RoundState, StoredRelease, StoredRound
from ldpstream.collector.store.postgres.store import PostgresStore
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.messages import BATCH, path_of
from ldpstream.protocol.terms import Terms
from tests.collector.driving import counts_of
from tests.collector.helpers import SECRETS, Signer, enrolment, report_of
from tests.serving import read_announcement
from tests.waiting import eventually

LAUNCHER = Path(__file__).with_name("frail_collector.py")
ENVIRONMENT = os.environ | {
    "LDPSTREAM_MASTER_SECRET": SECRETS.master.decode(),
    "LDPSTREAM_ENROLMENT_TOKEN": SECRETS.enrolment.decode(),
    "LDPSTREAM_ADMIN_TOKEN": SECRETS.admin.decode(),
}
BEARER = f"Bearer {SECRETS.admin.decode()}"


@dataclass(frozen=True)
class Collector:
    """A running collector process, and a client for it."""

    pid: int
    port: int
    orders: Path

    def call(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as line:
            line.request(method, path, body, named)
            answer = line.getresponse()
            return answer.status, json.loads(answer.read())

    @contextmanager
    def reading(self, path: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
        """Open a response that may have no end, such as a feed."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as line:
            line.request("GET", path, headers=named)
            yield line.getresponse()

    def page(self) -> bytes:
        with self.reading("/") as answer:
            assert answer.status == 200
            return answer.read()

    @property
    def leads(self) -> bool:
        answer = self.call("GET", "/v1/admin/status", Authorization=BEARER)[1]
        return bool(answer["streams"]["a"]["conducting"])

    def order(self, point: str, when: str, number: signal.Signals) -> None:
        draft = self.orders.with_suffix(".draft")
        draft.write_text(f"{point} {when} {number.name}")
        draft.rename(self.orders)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    @property
    def state(self) -> str:
        """The state of the process as the operating system gives it: T is stopped, X is dead."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return "X"
        return stat.rpartition(")")[2].split()[0].replace("Z", "X")


@dataclass
class Group:
    """The collectors of one configuration file."""

    file: Path
    launcher: subprocess.Popen[str]
    collectors: list[Collector] = field(default_factory=list)
    started: int = 0

    @property
    def config(self) -> Config:
        return load(self.file)

    def start(self, number: int = 1) -> None:
        """Start some at the same moment; they are listed when they listen."""
        with ExitStack() as stack:
            for pid, announcement, orders in [self._fork(stack) for _ in range(number)]:
                url = read_announcement(announcement)["url"]
                self.collectors.append(Collector(pid, int(url.rpartition(":")[2]), orders))

    def _fork(self, stack: ExitStack) -> tuple[int, IO[str], Path]:
        """Start one; the pipe that it will announce its address on is closed with the stack."""
        assert self.launcher.stdin is not None
        assert self.launcher.stdout is not None
        self.started += 1
        kinds = ("announcement", "log", "orders")
        paths = [self.file.with_name(f"{kind}-{self.started}") for kind in kinds]
        os.mkfifo(paths[0])
        reading = os.open(paths[0], os.O_RDONLY | os.O_NONBLOCK)  # does not wait for a writer
        os.set_blocking(reading, True)
        announcement = stack.enter_context(os.fdopen(reading))
        print(self.file, *paths, file=self.launcher.stdin, flush=True)
        return int(self.launcher.stdout.readline()), announcement, paths[-1]

    @property
    def leader(self) -> Collector:
        """The collector that leads the stream; waits until there is one."""
        return eventually(lambda: [one for one in self.running if one.leads], "one leads")[0]

    @property
    def running(self) -> list[Collector]:
        return [one for one in self.collectors if one.state not in "TX"]


@contextmanager
def group_of(file: Path, number: int) -> Iterator[Group]:
    with subprocess.Popen(
        [sys.executable, str(LAUNCHER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
    ) as launcher:
        group = Group(file, launcher)
        try:
            group.start(number)
            yield group
        except BaseException as error:
            for log in file.parent.glob("log-*"):
                error.add_note(f"{log.name}:\n{log.read_text()}")
            raise
        finally:
            os.killpg(launcher.pid, signal.SIGKILL)  # with all that it has forked


@dataclass
class Crowd:
    """All devices. Each sends its report to two collectors, and retries until it knows whether the
    report counts.
    """

    group: Group
    store: PostgresStore
    size: int
    seed: int = 1
    asked: dict[str, StoredRound] = field(default_factory=dict)
    """Every round as it was first seen."""
    counted: dict[str, set[int]] = field(default_factory=dict)
    """Devices whose report counts, as a collector has answered."""
    unsure: dict[str, set[int]] = field(default_factory=dict)
    """Devices that never got an answer."""
    seen: dict[int, Any] = field(default_factory=dict)
    """Every release as it was first seen."""
    _stopping: threading.Event = field(default_factory=threading.Event)
    _failure: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config = self.group.config.streams[0]
        stored = self.store.stream("a")
        assert stored is not None
        self.terms = Terms.read(stored.terms)
        self.history = TermsHistory((self.terms,))
        self.keys = DeviceKeys(SECRETS.master, "a")
        self.random = random.Random(self.seed)
        self._thread = threading.Thread(target=self._live)

    def enrol(self) -> None:
        """Enrol all devices, at the collectors in turn."""
        for number in range(1, self.size + 1):
            collector = self.group.collectors[number % len(self.group.collectors)]
            body = json.dumps(enrolment(number)).encode()
            token = f"Bearer {SECRETS.enrolment.decode()}"
            status, _ = collector.call(
                "POST",
                "/v1/streams/a/devices",
                body,
                Authorization=token,
                Content_Type="application/json",
            )
            assert status == 201

    def __enter__(self) -> Crowd:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _live(self) -> None:
        try:
            while not self._stopping.is_set():
                for one in self.store.rounds("a", max([0, *self.seen])):
                    if self._is_forgotten(one):
                        continue
                    first = self.asked.setdefault(one.name, one)
                    assert (one.asked, one.roster_size) == (first.asked, first.roster_size), one
                    if one.state is RoundState.OPEN and one.name not in self.counted:
                        self.answer(open_round_of(self.config, self.history, one))
                self.look()
                self._stopping.wait(0.02)
        except BaseException as error:
            self._failure.append(error)

    def _is_forgotten(self, one: StoredRound) -> bool:
        """Return whether the round is older than the window: whom it asked is forgotten then."""
        stored = self.store.stream("a")
        assert stored is not None
        return one.t <= stored.last_t - self.config.window

    def answer(self, asking: OpenRound) -> None:
        """Send the reports of the devices in two parts, each to two collectors."""
        numbers = (np.flatnonzero(asking.asked_mask) + 1).tolist()
        counted = self.counted.setdefault(asking.name, set())
        unsure = self.unsure.setdefault(asking.name, set())
        self.random.shuffle(numbers)
        for part in (numbers[::2], numbers[1::2]):
            if not part:
                continue
            heard = [self.submit(asking, part) for _ in range(2)]
            if True in heard:
                counted |= set(part)
            elif None in heard:
                unsure |= set(part)

    def submit(self, asking: OpenRound, part: list[int]) -> bool | None:
        """Send reports; return whether they count, or None if no collector has answered."""
        records = [Signer(n, self.keys).record(asking, report_of(asking, n)) for n in part]
        path = path_of(BATCH, stream="a", round=asking.name)
        doubtful = False
        for _ in range(20):
            try:
                status, told = self.random.choice(self.group.running).call(
                    "POST", path, b"".join(records)
                )
            except (OSError, http.client.HTTPException):
                doubtful = True
                continue
            if status == 200:
                good = told["accepted"] + told["repeated"]
                assert good in (0, len(part)), told
                return None if doubtful and not good else bool(good)
            if status in (404, 410):
                return None if doubtful else False
            assert status == 503, told
            doubtful = True
            time.sleep(0.05)
        return None

    def look(self) -> None:
        """Read the releases at some collector, and check that none has changed."""
        try:
            status, told = self.random.choice(self.group.running).call(
                "GET", "/v1/streams/a/releases"
            )
        except (OSError, http.client.HTTPException):
            return
        if status == 200:
            for one in told["releases"]:
                assert self.seen.setdefault(one["t"], one) == one, (self.seen[one["t"]], one)

    def goes_on(self) -> None:
        """Wait for more releases."""
        last = max([0, *self.seen])
        eventually(lambda: self._failure or max([0, *self.seen]) > last, "there are releases")
        self._raise_failure()

    def _raise_failure(self) -> None:
        """Raise here what was raised in the thread."""
        if self._failure:
            raise self._failure[0]

    def judge(self) -> list[StoredRelease]:
        """Check everything that must be true of the store now; return its releases."""
        self._raise_failure()
        releases = self.store.releases("a", 0, 10_000)
        first = releases[0].t
        assert [one.t for one in releases] == list(range(first, first + len(releases)))
        assert all(self.seen[one.t] == one.to_json() for one in releases if one.t in self.seen)
        rounds = self.store.rounds("a", 0)
        assert len({one.name for one in rounds}) == len(rounds)
        assert [one.t for one in rounds] == sorted(one.t for one in rounds)  # as they were opened
        assert not {one.t for one in rounds} & {one.t for one in releases if one.missed}
        for one in rounds:
            if one.t <= releases[-1].t:
                assert one.state is RoundState.TALLIED
            if one.support is not None and one.name in self.asked:
                self._judge_tally(one, self.asked[one.name])
        assert self._most_spent() <= self.terms.epsilon.nano
        return releases

    def _judge_tally(self, stored: StoredRound, as_asked: StoredRound) -> None:
        assert stored.support is not None
        counted = self.counted.get(stored.name, set())
        unsure = self.unsure.get(stored.name, set())
        reports = stored.support.reports
        assert len(counted) <= reports <= len(counted) + len(unsure - counted), stored.name
        if counted and not unsure - counted:
            asking = open_round_of(self.config, self.history, as_asked)
            packed = b"".join(
                Signer(n, self.keys).record(asking, report_of(asking, n)) for n in counted
            )
            expected = counts_of(asking, Records.of(packed, stored.report_bytes))
            assert stored.support.counts.tolist() == expected.tolist(), stored.name

    def _most_spent(self) -> int:
        last = max([0, *(one.t for one in self.asked.values())])
        spent = np.zeros((last + self.config.window, self.size), np.int64)
        for one in self.asked.values():
            mask = open_round_of(self.config, self.history, one).asked_mask
            spent[one.t, : len(mask)] += mask * one.epsilon_nano
        windows = [spent[t : t + self.config.window].sum(axis=0) for t in range(last + 1)]
        return int(np.max(windows))
