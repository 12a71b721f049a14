"""Hostile scenarios with one device, each played in a moment and judged exactly.

Each is a hole of an earlier release, or one that a small mistake would open. A device that keeps
its rules shows no violation in any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from ldpstream.audit.asker import NANO, make_terms
from ldpstream.audit.life import Life, Values
from ldpstream.audit.machine import Machine, TrueTime
from ldpstream.device.witness import CounterFile
from ldpstream.errors import LdpStreamError

Drill = Callable[[Path], list[str]]
"""A hostile scenario, played in an empty folder; it returns the violations that were found."""

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
WINDOW = 20
SPAN = WINDOW * 60
"""Seconds: w = 20, one minute."""


def _installed(folder: Path, window: int = WINDOW, machine: Machine | None = None) -> Life:
    life = Life(folder, machine or Machine(TrueTime()), make_terms(window))
    life.install()
    return life


# --- clocks ---------------------------------------------------------------------------------------


def edge_of_a_timestamp(folder: Path) -> list[str]:
    """W = 1: asked 0.1 s before a timestamp ends and 0.1 s after, again and again."""
    life = _installed(folder, window=1)
    for _ in range(3):
        life.machine.wait(59.9)
        life.ask()
        life.machine.wait(0.2)
        life.ask()
        life.machine.wait(59.9)
    return life.violations


def neighbours_of_now(folder: Path) -> list[str]:
    """W = 1: asked for the timestamps before, at and after now, near an edge."""
    life = _installed(folder, window=1)
    life.machine.wait(595)
    now = life.asker.t
    life.ask(*(life.asker.a_round(t) for t in (now - 1, now, now + 1)))
    return life.violations


def wall_clock_while_running(folder: Path) -> list[str]:
    """The wall clock jumps forward, by hours and by 59 s, and the collector says the same."""
    life = _installed(folder)
    skew_ms = 0
    life.asker.now_ms = lambda: life.true.now_ms() + skew_ms
    for jump_ms in (HOUR_MS, HOUR_MS, *[59_000] * 25, -HOUR_MS, 3 * HOUR_MS):
        skew_ms += jump_ms
        life.machine.move_wall(jump_ms)
        life.ask(life.asker.a_round(life.terms.timestamp_at(life.true.now_ms() + skew_ms)))
        life.machine.wait(1)
    return life.violations


def wall_clock_between_restarts(folder: Path) -> list[str]:
    """The wall clock is set forward while the process is down, further each time."""
    life = _installed(folder)
    for turn in range(4):
        life.ask()
        life.machine.move_wall((turn + 1) * HOUR_MS)
        life.machine.wait(1)
        life.start()
    return life.violations


def wall_clock_between_boots(folder: Path) -> list[str]:
    """The wall clock is set forward while the machine is off."""
    life = _installed(folder)
    for _ in range(3):
        life.ask()
        life.machine.move_wall(HOUR_MS)
        life.reboot(down_seconds=5)
    return life.violations


def marks_and_reboots(folder: Path) -> list[str]:
    """Own time is put on disk again and again, and the machine reboots right after."""
    life = _installed(folder)
    life.ask()
    for turn in range(8):
        life.machine.wait(SPAN / 10)
        life.ask(life.asker.a_round(rate=[0, 1]))
        if turn % 3 == 2:
            life.reboot()
        life.ask()
    return life.violations


def long_reading(folder: Path) -> list[str]:
    """W = 1: the application takes 50 s to look at the value, and is asked again 10 s later."""
    life = _installed(folder, window=1)
    for _ in range(3):
        life.dawdle_before = 50
        life.ask()
        life.dawdle_before = 0
        life.machine.wait(10)
        life.ask()
        life.machine.wait(60)
    return life.violations


def moved_to_a_machine_that_is_up_for_long(folder: Path) -> list[str]:
    """The file moves, with its witness, to a machine that is up for days; clocks are right."""
    true = TrueTime()
    machines = [Machine(true, up_ms=days * DAY_MS) for days in (1, 9)]
    life = Life(
        folder,
        machines[0],
        make_terms(WINDOW),
        witness=lambda _: CounterFile(folder / "counter"),
    )
    life.install()
    for turn in range(4):
        life.ask()
        true.advance_ms(1000)
        life.move_to(machines[(turn + 1) % 2])
        life.start()
    return life.violations


# --- files ----------------------------------------------------------------------------------------


def copy_comes_back(folder: Path) -> list[str]:
    """A copy made 1 s after a commit comes back by renaming a folder, and by switching a link."""
    found = []
    for name in ("rename_back", "link_to"):
        (folder / name).mkdir()
        life = _installed(folder / name)
        life.ask(life.asker.a_round(epsilon_nano=NANO // 2))
        life.machine.wait(1)
        copied = life.copy()
        life.machine.wait(30)
        life.ask(life.asker.a_round(epsilon_nano=NANO // 2))
        life.machine.wait(30)
        getattr(life, name)(copied)
        life.start()
        life.ask(life.asker.a_round(epsilon_nano=NANO // 2))
        found += life.violations
    return found


def lost_ledger(folder: Path) -> list[str]:
    """The file is lost, and the application starts as it always does."""
    life = _installed(folder)
    life.ask()
    life.lose()
    life.machine.wait(60)
    life.start()
    life.ask()
    return life.violations


def two_processes_on_one_file(folder: Path) -> list[str]:
    """Two processes take turns: a loss is a fault too."""
    life = _installed(folder)
    processes, sent, asked = [life.process, life.another()], 0, 3 * WINDOW
    for turn in range(asked):
        share = life.asker.a_round(epsilon_nano=NANO // WINDOW)
        sent += len(life.ask(share, by=processes[turn % 2]))
        life.machine.wait(60)
    lost = (
        [] if sent == asked else [f"only {sent} of {asked} reports that epsilon allows were sent"]
    )
    return life.violations + lost


# --- values ---------------------------------------------------------------------------------------

SEEDS = 12
"""Pairs of lives: a report that depends on a value differs in a pair with a chance of 0.46 (GRR,
two labels, epsilon 1). The draws are the same in every run, so nothing is left to chance."""


class SeededSource:
    """Draws that are the same in two lives."""

    def __init__(self, seed: int) -> None:
        self._draws = Random(seed)  # noqa: S311 # nosec B311 - to compare, not to protect

    def coin(self, favour: int, total: int) -> bool:
        return self._draws.randrange(total) < favour

    def below(self, bound: int) -> int:
        return self._draws.randrange(bound)


def _twins(folder: Path, this: Values, that: Values) -> list[str]:
    """Compare two lives with the same draws, whose values differ within one span only.

    Whether a device speaks must not differ. The reports that may differ are those that depend on
    the values of the span: together they cost at most epsilon.
    """
    depend: dict[tuple[int, str], int] = {}
    for seed in range(SEEDS):
        lives = []
        for name, value in (("this", this), ("that", that)):
            (folder / f"{name}{seed}").mkdir()
            lives.append(_spoken(folder / f"{name}{seed}", seed, value))
        if lives[0].keys() != lives[1].keys():
            return ["whether the device speaks depends on its value"]
        depend |= {
            key: nano for key, (nano, report) in lives[0].items() if lives[1][key] != (nano, report)
        }
    spent = sum(depend.values())
    return [f"{spent} nano-epsilon depend on the values of one window"] if spent > NANO else []


def _spoken(folder: Path, seed: int, value: Values) -> dict[tuple[int, str], tuple[int, bytes]]:
    """Return what a device says in six windows."""
    life = Life(folder, Machine(TrueTime()), make_terms(), source=SeededSource(seed))
    start_us = life.true.us
    life.value = lambda us: value(us - start_us)
    life.install()
    for _ in range(6):
        try:
            life.ask()
        except LdpStreamError:  # the application has seen its end
            break
        life.machine.wait(60)
    return {
        draw.key: (draw.nano, draw.report)
        for draw in life.transcript.sent
        if draw.report is not None
    }


def _first_window(value: int) -> Callable[[int], int | None]:
    return lambda us: value if us < 60_000_000 else None


def value_gets_unknown(folder: Path) -> list[str]:
    """The value is known for one window, and unknown from then on."""
    return _twins(folder, _first_window(0), _first_window(1))


def unusable_value(folder: Path) -> list[str]:
    """The value of one window is none that the stream has."""
    return _twins(folder, _first_window(0), _first_window(99))


ALL = (
    edge_of_a_timestamp,
    neighbours_of_now,
    wall_clock_while_running,
    wall_clock_between_restarts,
    wall_clock_between_boots,
    marks_and_reboots,
    long_reading,
    moved_to_a_machine_that_is_up_for_long,
    copy_comes_back,
    lost_ledger,
    two_processes_on_one_file,
    value_gets_unknown,
    unusable_value,
)
