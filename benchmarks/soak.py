"""Soak test: a collector with real devices is killed again and again; then all books are checked.

    .venv/bin/python benchmarks/soak.py --seconds S [--devices N] [--under-attack] [--json]
                                        [--write] [--keep DIR]

A real `ldpstream serve` with its store on disk; thousands of real devices in one process, each with
a ledger and a connection of its own, on loopback; 5 % of requests and 5 % of responses lost. About
every 30 s the collector is killed (SIGKILL) at a random instant and started again on the same port
and store, every fourth time after more than a whole timestamp. When all have stopped,
`tests/fleet/evidence` judges by files alone: every ledger, the store, a log of the wire, and a
diary of when the collector was up. Exit status 1 if a promise was broken.

--under-attack adds the strangers of `attackers.py`, and measures what a visitor notices of them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ldpstream.device.async_transport import AsyncHttpTransport
from ldpstream.fleet.fault_injection import FaultRates
from ldpstream.fleet.fleet import Fleet, FleetOutcome, FleetPlan, file_name
from ldpstream.fleet.folders import memory_folder
from ldpstream.streams.synthetic import named

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fleet.evidence.books import read_releases
from tests.fleet.evidence.diary import Life, write_diary
from tests.fleet.evidence.judgement import Evidence, Findings
from tests.fleet.evidence.ledgers import make_with_history
from tests.fleet.evidence.wire import WireLog
from tests.hostile.strangers import Place
from tests.serving import ENROLMENT, HEAD, TOKEN, CollectorProcess

from attackers import KINDS, Seen, attacked

PAGE = Path(__file__).parents[1] / "docs" / "soak.md"
FIGURES = PAGE.with_suffix(".json")
ATTACK = "\n## Under attack\n"
"""Where the second part of the page begins, which a run of its own writes."""
STREAM = "soak"
INTERVAL = 5.0
MECHANISM = "lpf"
UNASKED = ("lpu", "lpf")
"""Mechanisms whose devices report in slots."""
WINDOW = 10
LABELS = 4
LOSS = 0.05
KILL_EVERY = 30.0
LONG_ABSENCE = 4
"""Each time after this many kills the collector stays down for more than a timestamp."""
ENROLLING_PER_SECOND = 150
STARTING_SECONDS = 8
"""What a start may take on a busy machine."""
LEAST_UP = 2.0
"""Seconds between a start and the next kill, however long the start has taken."""

STREAM_TABLE = """
[collector.limits]
connections_per_address = 100000  # the devices share one

[[stream]]
name = "{stream}"
labels = {labels}
epsilon = 1.0
window = {window}
interval = "{interval_ms}ms"
start = {start}
mechanism = "{mechanism}"
oracle = "grr"
selection = "{selection}"
population = {devices}
"""


@dataclass(frozen=True)
class Setting:
    """The parameters of a run."""

    seconds: float
    devices: int
    interval: float
    mechanism: str
    kill_every: float = KILL_EVERY
    seed: int = 0
    under_attack: bool = False

    @property
    def selection(self) -> str:
        """Slots, except with mechanisms that must ask."""
        return "slots" if self.mechanism in UNASKED else "open"


@dataclass(frozen=True)
class Soaked:
    """The result of a run."""

    setting: Setting
    findings: Findings
    outcome: FleetOutcome
    attack: dict[str, object] = field(default_factory=dict)
    """What was measured beside attackers, if there were any."""

    def row(self) -> dict[str, object]:
        """Return the result as a row, with the verdict first."""
        found = asdict(self.findings)
        verdict = (
            "kills",
            "violations",
            "lost",
            "double_counted",
            "missing_releases",
            "changed_releases",
        )
        return {
            **{name: found.pop(name) for name in verdict},
            **found,
            "seconds": round(self.outcome.seconds, 1),
            "interval": self.setting.interval,
            "mechanism": self.setting.mechanism,
            "selection": self.setting.selection,
            "refused": self.outcome.refused,
            **self.attack,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--devices", type=int, default=5000)
    parser.add_argument("--interval", type=float, default=INTERVAL, help="seconds of a timestamp")
    parser.add_argument("--mechanism", default=MECHANISM)
    parser.add_argument("--kill-every", type=float, default=KILL_EVERY, help="seconds, on average")
    parser.add_argument("--seed", type=int, default=0, help="of values, faults and kills")
    parser.add_argument("--under-attack", action="store_true", help="beside attackers")
    parser.add_argument("--keep", type=Path, help="leave the evidence in this folder")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    setting = Setting(
        options.seconds,
        options.devices,
        options.interval,
        options.mechanism,
        options.kill_every,
        options.seed,
        options.under_attack,
    )
    soaked = soak(setting, options.keep)
    if options.json:
        print(json.dumps(soaked.row()))
    else:
        for name, figure in soaked.row().items():
            print(f"{name:18} {figure}")
    if options.write:
        write(soaked)
    sys.exit(0 if soaked.findings.clean else 1)


def soak(setting: Setting, keep: Path | None = None) -> Soaked:
    """Run in temporary folders; if anything is wrong, keep the evidence for a closer look."""
    _allow_connections(setting.devices + 2000 * setting.under_attack)
    with (
        tempfile.TemporaryDirectory() as on_disk,
        # Devices have disks of their own; here they would all wait for this one.
        tempfile.TemporaryDirectory(dir=memory_folder()) as in_memory,
    ):
        soaked = asyncio.run(Run(setting, Path(on_disk), Path(in_memory)).run())
        if keep is None and not soaked.findings.clean:
            keep = Path(tempfile.mkdtemp(prefix="ldpstream-soak-"))
        if keep is not None:
            shutil.copytree(on_disk, keep, dirs_exist_ok=True)
            shutil.copytree(in_memory, keep / "ledgers")
            print(f"the evidence is in {keep}", file=sys.stderr)
        return soaked


class Run:
    """A run of the soak test, and the evidence that it leaves."""

    def __init__(self, setting: Setting, folder: Path, ledgers: Path) -> None:
        self._setting = setting
        self._chance = random.Random(setting.seed)
        self._collector = Collector(folder, setting)
        self._evidence = Evidence(folder, ledgers, STREAM)
        self._enrolled = asyncio.Event()

    async def run(self) -> Soaked:
        for number in range(1, self._setting.devices + 1):
            make_with_history(self._evidence.ledgers / file_name(number))
        self._collector.configure()
        await self._collector.start()
        try:
            with WireLog(AsyncHttpTransport(), self._evidence.wire) as wire:
                fleet = Fleet(self._plan(), self._progress, transport=wire)
                killing = asyncio.create_task(self._kill_now_and_then())
                with self._attacked() as seen:
                    watching = asyncio.create_task(self._collector.watch(seen))
                    outcome = await fleet.run()
                    watching.cancel()
                await killing
        finally:
            await self._collector.stop()
        lives = self._collector.lives
        write_diary(self._evidence.diary, lives)
        up = [(life.ready_ms, life.ended_ms) for life in lives]
        attack = seen.row(up) if self._setting.under_attack else {}
        return Soaked(self._setting, self._evidence.judge(), outcome, attack)

    def _attacked(self) -> contextlib.AbstractContextManager[Seen]:
        if not self._setting.under_attack:
            return contextlib.nullcontext(Seen())
        return attacked(int(self._collector.url.rpartition(":")[2]), STREAM)

    def _plan(self) -> FleetPlan:
        setting = self._setting
        return FleetPlan(
            url=self._collector.url,
            stream=STREAM,
            token=TOKEN,
            source=named(f"zipf:labels={LABELS}", users=setting.devices, timestamps=1000),
            devices=setting.devices,
            seconds=setting.seconds,
            faults=FaultRates(loss=LOSS),
            seed=setting.seed,
            folder=self._evidence.ledgers,
        )

    def _progress(self, stage: str, done: int, of: int) -> None:
        if of and done == of:
            self._enrolled.set()
        if done % 1000 == 0:
            print(f"{stage} {done or ''}", file=sys.stderr, flush=True)

    async def _kill_now_and_then(self) -> None:
        """Kill the collector at random, but not too late for it to come back and go on."""
        await self._enrolled.wait()
        setting = self._setting
        now = time.monotonic()
        end = now + setting.seconds - STARTING_SECONDS - 2 * setting.interval
        absences = 0
        while (now := now + self._chance.uniform(0.5, 1.5) * setting.kill_every) < end:
            await asyncio.sleep(max(now - time.monotonic(), LEAST_UP))
            absences += 1
            away = self._chance.uniform(0, 1)
            if absences % LONG_ABSENCE == 0:
                away = self._chance.uniform(1, 1.5) * setting.interval
            await self._collector.kill()
            await asyncio.sleep(away)
            await self._collector.start()


@dataclass
class Collector:
    """`ldpstream serve`, again and again on one port and one store, and its diary."""

    folder: Path
    setting: Setting
    lives: list[Life] = field(default_factory=list)
    _serving: CollectorProcess = field(init=False)
    _ready_ms: int = 0

    @property
    def url(self) -> str:
        return self._serving.url

    @property
    def store(self) -> Path:
        return Evidence(self.folder, self.folder, STREAM).store

    def configure(self) -> None:
        """Write the configuration; timestamp 1 begins when everyone should have enrolled."""
        setting = self.setting
        enrolling = timedelta(seconds=3 + setting.devices / ENROLLING_PER_SECOND)
        start = datetime.now(UTC) + enrolling
        text = STREAM_TABLE.format(
            stream=STREAM,
            labels=json.dumps([str(label) for label in range(LABELS)]),
            window=WINDOW,
            interval_ms=round(1000 * setting.interval),
            start=start.isoformat(timespec="milliseconds"),
            mechanism=setting.mechanism,
            selection=setting.selection,
            devices=setting.devices,
        )
        self._serving = CollectorProcess.of(self.folder, HEAD + text, ENROLMENT)

    async def start(self) -> None:
        await asyncio.to_thread(self._serving.start)
        self._ready_ms = _now_ms()

    async def watch(self, seen: Seen) -> None:
        """Note the most memory that any of the processes held."""
        while True:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, StopIteration):
                resident = Place(self._serving.process.pid).resident
                seen.largest_bytes = max(seen.largest_bytes, resident)
            await asyncio.sleep(0.2)

    async def kill(self) -> None:
        """SIGKILL, without warning."""
        released = read_releases(self.store, STREAM)
        # Before the wait: after it, thousands of closed connections are handled first.
        killed_ms = _now_ms()
        self._serving.process.kill()
        await asyncio.to_thread(self._serving.kill)  # waits for its end
        self._note(killed_ms, killed=True, released=released)

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL if that is not heard."""
        if self._serving.process.poll() is not None:
            return
        told_ms = _now_ms()  # what begins after this is not its business any more
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._serving.stop)
        self._note(told_ms, killed=False, released={})

    def _note(
        self, ended_ms: int, *, killed: bool, released: dict[int, tuple[object, ...]]
    ) -> None:
        self.lives.append(Life(self._ready_ms, ended_ms, killed, released))
        kind = "killed" if killed else "stopped"
        late = _now_ms() - ended_ms
        print(f"collector {kind} ({len(self.lives)}), noticed after {late} ms", file=sys.stderr)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _allow_connections(devices: int) -> None:
    """Raise the limit of open files for this process and the collector, which inherits it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < devices + 200:
        raise SystemExit(f"{devices} connections need more than {hard} open files (ulimit -Hn)")


def write(soaked: Soaked) -> None:
    """Write this run's part of the page and of the figures; the other part stays."""
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    figures["under attack" if soaked.setting.under_attack else "soak"] = soaked.row()
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    first, _, second = PAGE.read_text().partition(ATTACK)
    if soaked.setting.under_attack:
        second = section(soaked)
    else:
        first = page(soaked)
    PAGE.write_text(first + ATTACK + second if second else first)


def command(setting: Setting) -> str:
    flags = f"--seconds {setting.seconds:g} --devices {setting.devices}"
    if setting.interval != INTERVAL:
        flags += f" --interval {setting.interval:g}"
    if setting.mechanism != MECHANISM:
        flags += f" --mechanism {setting.mechanism}"
    if setting.under_attack:
        flags += " --under-attack"
    return f".venv/bin/python benchmarks/soak.py {flags} --write"


def section(soaked: Soaked) -> str:
    found, seen = soaked.findings, soaked.attack
    return f"""
Made by `{command(soaked.setting)}`; figures in [soak.json](soak.json).
For {soaked.outcome.seconds:.0f} s with {found.devices:,} devices,
{soaked.setting.mechanism.upper()} and selection by {soaked.setting.selection}, beside attackers
(`benchmarks/attackers.py`) in a process of their own, on the same {os.cpu_count()} cores:
{KINDS}. A visitor asks for `/v1/health`
on a new connection, and again 0.1 s after each answer, so that a long wait is one figure among many
short ones; what was asked, or still waited for, while the collector was down is left out.

| | |
|---|---:|
| kills | {found.kills} |
| **violations**, **lost**, **double counted**, **missing** and **changed releases** | \
{found.violations}, {found.lost}, {found.double_counted}, {found.missing_releases}, \
{found.changed_releases} |
| reports acknowledged | {found.acknowledged:,} |
| of debits in the ledgers | {found.debits:,} |
| connections and batches of attackers | {seen["attacks"]:,} |
| health: questions | {seen["health_questions"]:,} |
| without an answer | {seen["health_unanswered"]} |
| median | {seen["health_p50_ms"]} ms |
| 99th percentile | {seen["health_p99_ms"]} ms |
| slowest | {seen["health_worst_ms"]} ms |
| most memory of the collector | {seen["largest_rss_mb"]} MB |
"""


def page(soaked: Soaked) -> str:
    setting, found = soaked.setting, soaked.findings
    return f"""# The soak

Made by `{command(setting)}` on
{os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}), shared with \
other work.

{found.devices:,} real devices, each with a ledger and a connection of its own, against one
`ldpstream serve` with its store on disk, for {soaked.outcome.seconds:.0f} s: \
{setting.mechanism.upper()}, epsilon 1, w = {WINDOW},
{LABELS} labels, GRR, selection by {setting.selection}. {LOSS:.0%} of requests and {LOSS:.0%} of \
responses are lost. The collector is
killed (SIGKILL) at a random instant, every {setting.kill_every:g} s on average, and started again \
on the same port and
store; every fourth time it stays away for a whole timestamp. Timestamps last \
{setting.interval:g} s.

| judged afterwards, from files alone | |
|---|---:|
| kills | {found.kills} |
| **violations**: spans of w intervals of own time beyond epsilon in any ledger; reports that left \
without their debit, or in other bytes the second time | {found.violations} |
| **lost**: acknowledged reports that are not in the tally | {found.lost} |
| **double counted**: support in a tally beyond that of all distinct reports sent | \
{found.double_counted} |
| **missing releases**: timestamps not released, or carried over though the collector was up | \
{found.missing_releases} |
| **changed releases**: other after a restart than before it | {found.changed_releases} |
| debits in the ledgers | {found.debits:,} |
| reports acknowledged | {found.acknowledged:,} |
| reports counted | {found.counted:,} |
| reports that may have been counted, though no answer says so | {found.uncertain:,} |
| rounds | {found.rounds:,} |
| releases | {found.releases:,} |
| of them carried over, as the collector was away | {found.missed} |

How it is judged (`tests/fleet/evidence/`; `tests/verify/test_soak_checks.py` plants each
of these faults and sees that it is found):

- A trigger in each device's file keeps what the ledger forgets after w timestamps, so that all
  windows of the run are summed.
- Every report is logged when it is handed to the network, and again when its answer comes back. In
  each round, label by label: support of the acknowledged reports <= stored counts <= support of
  those that may have arrived. The two ends differ only by reports that were under way when the
  collector was killed, or got no answer within 10 s: a report counted twice could hide among
  these, and nowhere else. In all other rounds the tally is exactly the set of accepted reports.
- A release may be carried over only if, by the diary of its processes, the collector was up for at
  most one second between the timestamp's beginning and its last deadline.
- The releases are read from the store just before each kill, and compared with those at the end.

Debits that were never acknowledged are devices that came too late: their round was over, or the
collector was away. Nothing is refunded.
"""


if __name__ == "__main__":
    main()
