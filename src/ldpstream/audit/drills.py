"""Drills: hostile scenarios with one device, each simulated quickly and judged exactly.

Each exploits a hole of an earlier release, or one that a small mistake would open. A device that
keeps its rules shows no violation in any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

from ldpstream.audit.hostile_collector import KEY, NANO, make_terms
from ldpstream.audit.life import Life, Values
from ldpstream.audit.machine import START_MS, Machine, TrueTime
from ldpstream.device.exchange import Pause, Request
from ldpstream.device.witness import CounterFile
from ldpstream.durations import DAY_MS, HOUR_MS
from ldpstream.errors import LdpStreamError
from ldpstream.protocol.authentication import report_mac, report_prefix
from ldpstream.protocol.messages import MAC_HEADER, SubmitReport

Drill = Callable[[Path], list[str]]
"""A hostile scenario, which runs in an empty folder and returns the violations found."""

WINDOW = 20
SPAN = WINDOW * 60
"""The seconds of a window: w = 20 timestamps of one minute."""


def _installed(
    folder: Path, window: int = WINDOW, machine: Machine | None = None, **terms: Any
) -> Life:
    life = Life(folder, machine or Machine(TrueTime()), make_terms(window, **terms))
    life.install()
    return life


# --- clocks ---------------------------------------------------------------------------------------


def edge_of_a_timestamp(folder: Path) -> list[str]:
    """Ask 0.1 s before a timestamp ends and 0.1 s after, again and again, with w = 1."""
    life = _installed(folder, window=1)
    for _ in range(3):
        life.machine.wait(59.9)
        life.ask()
        life.machine.wait(0.2)
        life.ask()
        life.machine.wait(59.9)
    return life.violations


def neighbours_of_now(folder: Path) -> list[str]:
    """Ask for the previous, the current and the next timestamp, near an edge, with w = 1."""
    life = _installed(folder, window=1)
    life.machine.wait(595)
    now = life.collector.t
    life.ask(*(life.collector.make_round(t) for t in (now - 1, now, now + 1)))
    return life.violations


def wall_clock_while_running(folder: Path) -> list[str]:
    """Make the wall clock jump, by hours and by 59 s, and the collector agree with it."""
    life = _installed(folder)
    skew_ms = 0
    life.collector.now_ms = lambda: life.true.now_ms() + skew_ms
    for jump_ms in (HOUR_MS, HOUR_MS, *[59_000] * 25, -HOUR_MS, 3 * HOUR_MS):
        skew_ms += jump_ms
        life.machine.move_wall(jump_ms)
        life.ask(life.collector.make_round(life.terms.timestamp_at(life.true.now_ms() + skew_ms)))
        life.machine.wait(1)
    return life.violations


def wall_clock_between_restarts(folder: Path) -> list[str]:
    """Set the wall clock forward while the process is down, further each time."""
    life = _installed(folder)
    for turn in range(4):
        life.ask()
        life.machine.move_wall((turn + 1) * HOUR_MS)
        life.machine.wait(1)
        life.start()
    return life.violations


def wall_clock_between_boots(folder: Path) -> list[str]:
    """Set the wall clock forward while the machine is off."""
    life = _installed(folder)
    for _ in range(3):
        life.ask()
        life.machine.move_wall(HOUR_MS)
        life.reboot(down_seconds=5)
    return life.violations


def marks_and_reboots(folder: Path) -> list[str]:
    """Save own time again and again, and reboot the machine right after."""
    life = _installed(folder)
    life.ask()
    for turn in range(8):
        life.machine.wait(SPAN / 10)
        life.ask(life.collector.make_round(rate=[0, 1]))
        if turn % 3 == 2:
            life.reboot()
        life.ask()
    return life.violations


def turns_by_a_lying_clock(folder: Path) -> list[str]:
    """Tell a device with slots, in answer to each report, that its next turn has come."""
    life = _installed(folder, window=4, selection="slots", deadline_ms=54_000)
    lie_ms = 0
    life.collector.now_ms = lambda: life.true.now_ms() + lie_ms
    life.ask()
    for _ in range(5):
        lie_ms += life.terms.promise.span
        life.machine.move_wall(life.terms.promise.span)
        life.start()  # it takes the time from the wall clock, until the collector tells it
        if life.process is not None:
            life.process.device.poll(5)
    return life.violations


def leaves_and_joins_again(folder: Path) -> list[str]:
    """Leave the stream after each report, and join it again."""
    life = _installed(folder)
    for _ in range(3):
        life.ask()
        life.rejoin()
        life.machine.wait(30)
    return life.violations


def long_reading(folder: Path) -> list[str]:
    """Let the application take 50 s to read the value, and ask again 10 s later, with w = 1."""
    life = _installed(folder, window=1)
    for _ in range(3):
        life.dawdle_before = 50
        life.ask()
        life.dawdle_before = 0
        life.machine.wait(10)
        life.ask()
        life.machine.wait(60)
    return life.violations


def reading_outlasts_its_timestamp(folder: Path) -> list[str]:
    """Ask 10 s before a timestamp ends, while the application takes 20 s to read the value."""
    life = _installed(folder, window=1)
    life.machine.wait(50)
    life.dawdle_before = 20
    life.ask()
    return life.violations + [
        f"a value was read at {read} and left as one of {draw.key[0]}"
        for draw in life.transcript.sent
        if (read := life.terms.timestamp_at(draw.read_us // 1000)) != draw.key[0]
    ]


def moved_to_a_machine_that_is_up_for_long(folder: Path) -> list[str]:
    """Move the file, with its witness, to a machine up for days; clocks are right."""
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


# --- counting -------------------------------------------------------------------------------------


def one_report_too_many(folder: Path) -> list[str]:
    """Ask, within a window, for k reports of epsilon/k, which fit, and for one more."""
    life, promised = _installed(folder), 4
    sent = 0
    for _ in range(promised + 1):
        sent += len(life.ask(life.collector.make_round(epsilon_nano=NANO // promised)))
        life.machine.wait(60)
    lost = [] if sent >= promised else [f"only {sent} of {promised} promised reports were sent"]
    return life.violations + lost


# --- files ----------------------------------------------------------------------------------------


def copy_comes_back(folder: Path) -> list[str]:
    """Restore a copy made 1 s after a commit, by renaming a folder and by switching a link."""
    found = []
    for name in ("rename_back", "link_to"):
        (folder / name).mkdir()
        life = _installed(folder / name)
        life.ask(life.collector.make_round(epsilon_nano=NANO // 2))
        life.machine.wait(1)
        copied = life.copy()
        life.machine.wait(30)
        life.ask(life.collector.make_round(epsilon_nano=NANO // 2))
        life.machine.wait(30)
        getattr(life, name)(copied)
        life.start()
        life.ask(life.collector.make_round(epsilon_nano=NANO // 2))
        found += life.violations
    return found


def lost_ledger(folder: Path) -> list[str]:
    """Lose the file, and start the application as usual."""
    life = _installed(folder)
    life.ask()
    life.lose()
    life.machine.wait(60)
    life.start()
    life.ask()
    return life.violations


def two_processes_on_one_file(folder: Path) -> list[str]:
    """Let two processes take turns on a file; a report that is not sent is a fault, too."""
    life = _installed(folder)
    processes, sent, asked = [life.process, life.another()], 0, 3 * WINDOW
    for turn in range(asked):
        share = life.collector.make_round(epsilon_nano=NANO // WINDOW)
        sent += len(life.ask(share, by=processes[turn % 2]))
        life.machine.wait(60)
    lost = (
        [] if sent == asked else [f"only {sent} of {asked} reports that epsilon allows were sent"]
    )
    return life.violations + lost


# --- values ---------------------------------------------------------------------------------------

SEEDS = 12
"""Pairs of lives: a report that depends on a value differs in a pair with probability 0.46 (GRR,
two labels, epsilon 1). The draws are the same in every run, so the result is deterministic."""


class RepeatedSource:
    """A source with the same draws in two lives."""

    def __init__(self, seed: int) -> None:
        self._draws = Random(seed)  # nosec B311 # noqa: S311 - to compare, not to protect

    def coin(self, favour: int, total: int) -> bool:
        return self._draws.randrange(total) < favour

    def below(self, bound: int) -> int:
        return self._draws.randrange(bound)


def _twins(folder: Path, this: Values, that: Values) -> list[str]:
    """Compare two lives with the same draws, whose values differ within one span only.

    Whether a device reports must not differ. Reports that differ depend on the values of the span:
    together they may cost at most epsilon.
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
    """Return the reports of a device in six windows."""
    life = Life(folder, Machine(TrueTime()), make_terms(), source=RepeatedSource(seed))
    start_us = life.true.us
    life.value = lambda us: value(us - start_us)
    life.install()
    for _ in range(6):
        try:
            life.ask()
        except LdpStreamError:  # the application has crashed
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
    """Compare two values that are known for one window, and unknown from then on."""
    return _twins(folder, _first_window(0), _first_window(1))


def unusable_value(folder: Path) -> list[str]:
    """Compare a value of the stream with an unknown one, in one window."""
    return _twins(folder, _first_window(0), _first_window(99))


HELD: tuple[Values, ...] = (
    lambda us: 0,
    lambda us: 1,
    lambda us: None,
    lambda us: us // 30_000_000 % 2,
)
"""What each of four twins holds: one label, the other, none, and both in turn."""


def twins_seen_from_outside(folder: Path) -> list[str]:
    """Compare twins that differ only in their values: all but the reports must look the same."""
    lives = [twin(folder / str(number), value) for number, value in enumerate(HELD)]
    found = [line for life in lives for line in (*life.violations, *_wrong_macs(life))]
    first, *others = ([_outside(*step) for step in life.collector.seen] for life in lives)
    for other in others:
        pairs = zip_longest(first, other, fillvalue="nothing more")
        found += [f"{a}; with another value {b}" for a, b in pairs if a != b][:1]
    return found


def twin(folder: Path, value: Values) -> Life:
    """Simulate a life with rates below 1, lost answers, retries, repeats, waits and restarts."""
    folder.mkdir()
    draws, losses = RepeatedSource(1), RepeatedSource(2)
    life = Life(folder, Machine(TrueTime()), make_terms(window=2), source=draws, value=value)
    life.install()
    life.become_a_twin()
    life.collector.seen.clear()
    turn = 0

    def loses(request: Request) -> bool:
        return losses.coin(9 if turn % 6 == 5 and request.method == "POST" else 2, 10)

    life.collector.loses = loses
    asked: list[dict[str, Any]] = []
    for turn in range(100):
        fresh = [
            life.collector.make_round(epsilon_nano=NANO // 4, rate=[1, 2]),
            life.collector.make_round(epsilon_nano=NANO // 2, rate=[1, 3]),
        ]
        life.ask(*asked, *fresh)
        asked = fresh
        life.machine.wait(20)
        if turn % 8 == 7:
            life.start()
    return life


def _outside(us: int, step: Request | Pause) -> str:
    """Return all of a step except the bytes of a report and its MAC."""
    at = f"{us - 1000 * START_MS} us:"
    if isinstance(step, Pause):
        return f"{at} a pause of {step.seconds} s"
    headers, body = dict(step.headers), step.body
    if isinstance(step.message, SubmitReport):
        headers[MAC_HEADER], body = "its MAC", bytes(len(body))
    return f"{at} {step.method} {step.path} {headers} {body!r} for {step.patience} s"


def _wrong_macs(life: Life) -> list[str]:
    sent = [(step, step.message) for _, step in life.collector.seen if isinstance(step, Request)]
    reports = [(step, told.round) for step, told in sent if isinstance(told, SubmitReport)]
    return [
        f"round {name}: its MAC is not that of its bytes"
        for step, name in reports
        if step.headers.get(MAC_HEADER)
        != report_mac(KEY, report_prefix(life.terms.stream, life.terms.pin, name), step.body).hex()
    ]


ALL = (
    edge_of_a_timestamp,
    neighbours_of_now,
    wall_clock_while_running,
    wall_clock_between_restarts,
    wall_clock_between_boots,
    marks_and_reboots,
    turns_by_a_lying_clock,
    leaves_and_joins_again,
    long_reading,
    reading_outlasts_its_timestamp,
    moved_to_a_machine_that_is_up_for_long,
    one_report_too_many,
    copy_comes_back,
    lost_ledger,
    two_processes_on_one_file,
    value_gets_unknown,
    unusable_value,
    twins_seen_from_outside,
)
