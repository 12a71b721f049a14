"""Compare a device's reports with what its window allows, under imperfect clocks and machines.

    .venv/bin/python benchmarks/clocks.py [--days N] [--json] [--write]

w = 20, one minute, epsilon 1, for a week of simulated time (`ldpstream.audit.life`). A collector
asks at every timestamp while the device is awake, for either a twentieth of epsilon or all of it.
An ideal clock counts what the window allows. Exit status 1 if the device sent more than that.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ldpstream.audit.hostile_collector import NANO, make_terms
from ldpstream.audit.life import Life
from ldpstream.audit.machine import Machine, TrueTime
from ldpstream.fleet.folders import memory_folder
from sections import table, write_section

PAGE = Path(__file__).parents[1] / "docs" / "device.md"
COMMAND = ".venv/bin/python benchmarks/clocks.py --write"
WINDOW = 20
MINUTE = 60
DAY = 24 * 60
"""A day, in minutes."""


@dataclass
class Week:
    """A device that is asked once a minute while it is awake."""

    life: Life
    minutes: int
    nano: int
    asked_us: list[int] = field(default_factory=list)

    @property
    def minute(self) -> int:
        return self.life.collector.t - 1

    @property
    def going_on(self) -> bool:
        return self.minute < self.minutes

    def ask(self) -> None:
        """Ask in this minute."""
        self.asked_us.append(self.life.true.us)
        self.life.ask(self.life.collector.make_round(epsilon_nano=self.nano))

    def awake(self, minutes: int) -> None:
        """Ask 5 s into each of the next `minutes` minutes."""
        for _ in range(minutes):
            if not self.going_on:
                return
            self.ask()
            self._to_next_minute()

    def _to_next_minute(self) -> None:
        passed_us = (self.life.true.us - self.life.terms.start_ms * 1000) % (MINUTE * 10**6)
        self.life.machine.wait(MINUTE + 5 - passed_us / 10**6)

    def asleep(self, minutes: int) -> None:
        self.life.machine.sleep(MINUTE * minutes)

    @property
    def sent(self) -> int:
        return len(self.life.transcript.sent)

    @property
    def allowed(self) -> int:
        """Return how many of the reports asked for an ideal clock would allow."""
        left: list[int] = []
        for at in self.asked_us:
            later = [one for one in left[-WINDOW:] if one > at - WINDOW * MINUTE * 10**6]
            if (len(later) + 1) * self.nano <= NANO:
                left.append(at)
        return len(left)


def sleeps_16_of_24_hours(week: Week) -> None:
    while week.going_on:
        week.awake(8 * 60)
        week.asleep(16 * 60)


def asleep_10_minutes_after_every_15(week: Week) -> None:
    while week.going_on:
        week.awake(15)
        week.asleep(10)


def clock_3_timestamps_ahead_then_corrected(week: Week) -> None:
    week.life.machine.set_wall(3 * MINUTE * 1000)
    week.life.start()
    week.awake(1)
    week.life.machine.set_wall(0)
    week.awake(week.minutes)


def clock_jumps_daily(week: Week) -> None:
    """Set the clock an hour ahead on one day, and back on the next."""
    jump_ms = 3_600_000
    while week.going_on:
        week.awake(DAY)
        week.life.machine.move_wall(jump_ms)
        jump_ms = -jump_ms


def restarts_every_10_minutes(week: Week) -> None:
    while week.going_on:
        week.awake(10)
        week.life.start()


def reboots_daily(week: Week) -> None:
    while week.going_on:
        week.awake(DAY)
        week.life.reboot(down_seconds=20)


def woken_every_15_minutes_for_10_seconds(week: Week) -> None:
    while week.going_on:
        week.ask()
        week.life.machine.wait(10)
        week.life.machine.sleep(15 * MINUTE - 10)


SCENARIOS: dict[str, tuple[Callable[[Week], None], str]] = {
    "sleeps 16 of 24 hours": (sleeps_16_of_24_hours, ""),
    "asleep 10 minutes after every 15": (asleep_10_minutes_after_every_15, "15 of 870 in a day"),
    "clock 3 timestamps ahead, corrected after a minute": (
        clock_3_timestamps_ahead_then_corrected,
        "0 of 10,080",
    ),
    "clock jumps by an hour, daily": (clock_jumps_daily, ""),
    "process restarts every 10 minutes": (restarts_every_10_minutes, ""),
    "machine reboots daily": (reboots_daily, ""),
    "woken every 15 minutes for 10 seconds": (woken_every_15_minutes_for_10_seconds, ""),
}
"""Scenarios for a device, and what release 0.1.0 sent, where that was measured."""


@dataclass(frozen=True)
class Row:
    """The result of one scenario."""

    scenario: str
    counts_sleep: bool
    nano: int
    sent: int
    allowed: int
    violations: list[str]


def live(job: tuple[str, bool, int, int]) -> Row:
    """Play one scenario with one kind of steady clock."""
    name, counts_sleep, nano, days = job
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        machine = Machine(TrueTime(), counts_sleep=counts_sleep, up_ms=3_600_000)
        life = Life(Path(folder), machine, make_terms(WINDOW))
        life.install()
        machine.wait(5)
        week = Week(life, days * DAY, nano)
        SCENARIOS[name][0](week)
        return Row(name, counts_sleep, nano, week.sent, week.allowed, life.violations)


def page(rows: list[Row], days: int) -> str:
    def cell(name: str, counts_sleep: bool, nano: int) -> str:
        (row,) = [
            one
            for one in rows
            if (one.scenario, one.counts_sleep, one.nano) == (name, counts_sleep, nano)
        ]
        return f"{row.sent:,} of {row.allowed:,}"

    head = ["", "epsilon/20 a minute", "the same, stops asleep", "epsilon at once"]
    head += ["the same, stops asleep", "release 0.1.0, epsilon/20"]
    cells = [
        [name, *(cell(name, sleep, nano) for nano in SHARES for sleep in (True, False)), before]
        for name, (_, before) in SCENARIOS.items()
    ]
    return (
        f"Made by `{COMMAND}`: w = 20, one minute, {days} simulated days; reports sent, of those"
        " that an ideal clock would allow of the ones asked for. *Stops asleep*: with a steady"
        " clock that does not count time asleep.\n\n" + table(head, cells)
    )


SHARES = (NANO // WINDOW, NANO)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table into docs/device.md")
    given = parser.parse_args()
    jobs = [
        (name, sleep, nano, given.days)
        for nano in SHARES
        for name in SCENARIOS
        for sleep in (True, False)
    ]
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(live, jobs))
    if given.json:
        print(json.dumps([vars(row) for row in rows], indent=1))
    else:
        print(page(rows, given.days))
    if given.write:
        write_section(PAGE, "clocks", page(rows, given.days))
    raise SystemExit(any(row.violations for row in rows))


if __name__ == "__main__":
    main()
