"""One person's wallet among hostile collectors: they ask, lie, lose, succeed; clocks move."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from random import Random

from ldpstream.audit.drills import RepeatedSource
from ldpstream.audit.hostile_collector import NANO, HostileCollector, make_terms
from ldpstream.audit.life import Life
from ldpstream.audit.machine import Machine, TrueTime
from ldpstream.device import Limit, Unreachable
from ldpstream.protocol.terms import Terms

SHARES = (1, NANO // 20, NANO // 4, NANO // 2, NANO, NANO, NANO + 1, 32 * NANO)
JUMPS_MS = (-180_000, -1, 59_000, 60_000, 600_000, 10**7)
LIMITS = ("1", "2", "3")
SPANS = ("10m", "1h")


class HostileWallet:
    """A wallet with many hostile streams, under limits that tighten and loosen."""

    def __init__(self, folder: Path, streams: int, seed: int) -> None:
        self.chance = Random(seed)
        machine = Machine(TrueTime(), drift=Fraction(1, 1000), up_ms=10**6)
        self.life = Life(folder, machine, self._terms(0), source=RepeatedSource(seed))
        self.life.install()
        self.life.set_limit(Limit(2, "1h"))
        for number in range(1, streams):
            self.life.join(self._terms(number))
        self.operations = 0

    def _terms(self, number: int) -> Terms:
        window = (1, 2, 4, 20)[number % 4]
        return make_terms(window, stream=f"hostile{number}")

    def live(self, operations: int) -> None:
        """Do so many operations."""
        acts: list[Callable[[], None]] = (
            [self.ask] * 14 + [self.wait] * 3 + [self.lie, self.lose, self.read_slowly]
        )
        acts += [self.jump, self.restart, self.leave_and_join, self.succeed, self.limit]
        acts += [self.reboot] + [self.storm] * 4
        while self.operations < operations:
            self.operations += 1
            self.chance.choice(acts)()

    @property
    def violations(self) -> list[str]:
        return self.life.broken_vows + self.life.faults

    def _any(self) -> tuple[str, HostileCollector]:
        return self.chance.choice(list(self.life.collectors.items()))

    def ask(self) -> None:
        """One collector asks for several rounds, of now, before and after, new and old names."""
        url, collector = self._any()
        says_ms = collector.says_ms()
        now = collector.terms.timestamp_at(self.life.true.now_ms() if says_ms is None else says_ms)
        collector.rounds = [
            collector.make_round(
                now + self.chance.choice((0, 0, 0, -1, 1)),
                self.chance.choice((None, f"{max(now, 0)}-a")),
                epsilon_nano=self.chance.choice(SHARES),
            )
            for _ in range(self.chance.choice((1, 1, 2)))
        ]
        process = self.life.process
        if process is None:
            return
        session = process.device.sessions.named(collector.terms.stream, url)
        with suppress(Unreachable):
            process.device._drive(session.poll(0), url)

    def storm(self) -> None:
        """Several collectors ask at once for all that their terms allow, at the right time."""
        life, process = self.life, self.life.process
        life.dawdle_before = life.dawdle_after = 0.0
        collectors = list(life.collectors.items())
        for url, collector in self.chance.sample(collectors, min(4, len(collectors))):
            collector.now_ms, collector.loses = None, lambda request: False
            collector.rounds = [collector.make_round(epsilon_nano=collector.terms.epsilon_nano)]
            if process is not None:
                session = process.device.sessions.named(collector.terms.stream, url)
                process.device._drive(session.poll(0), url)

    def wait(self) -> None:
        self.life.machine.wait(self.chance.choice((0.1, 20, 59.9, 60, 120, 900)))

    def lie(self) -> None:
        """A collector says that it is another time."""
        _, collector = self._any()
        lie_ms = self.chance.choice((None, 0, 0, -60_000, 60_000, 10**8))
        true = self.life.true
        collector.now_ms = lambda: None if lie_ms is None else true.now_ms() + lie_ms

    def lose(self) -> None:
        _, collector = self._any()
        lost = self.chance.random() < 0.3
        collector.loses = lambda request: lost and request.path.endswith("/reports")

    def read_slowly(self) -> None:
        self.life.dawdle_before = self.chance.choice((0, 0, 0, 1, 50))
        self.life.dawdle_after = self.chance.choice((0, 0, 0, 1, 50))

    def jump(self) -> None:
        """The wall clock is moved."""
        self.life.machine.move_wall(self.chance.choice(JUMPS_MS))

    def restart(self) -> None:
        self.life.start()

    def reboot(self) -> None:
        self.life.reboot(self.chance.choice((0, 5, 600)))

    def leave_and_join(self) -> None:
        """The person leaves a stream and joins it again; both are told."""
        url, collector = self._any()
        process = self.life.process
        if process is None:
            return
        loses, collector.loses = collector.loses, lambda request: False
        process.device.leave(collector.terms.stream, url)
        self.life._enrol(process, url)
        collector.loses = loses

    def succeed(self) -> None:
        """A collector offers new terms: stricter ones, or looser ones, which nobody accepts."""
        _, collector = self._any()
        terms = collector.terms
        window = self.chance.choice((terms.window, terms.window + 1, 2 * terms.window, 1))
        nano = self.chance.choice((terms.epsilon_nano, terms.epsilon_nano * 9 // 10, 2 * NANO))
        if window < terms.window or nano > terms.epsilon_nano or terms.version > 4:
            return
        collector.succeed(window=min(window, 50), epsilon_nano=max(nano, NANO // 4))
        self.storm()  # those who are asked now hear of it
        self.life.machine.wait(60)
        self.storm()

    def limit(self) -> None:
        """The application changes the limit."""
        limit = Limit(self.chance.choice(LIMITS), self.chance.choice(SPANS))
        self.storm()
        self.life.set_limit(limit)
        self.life.machine.wait(60)
        self.storm()
