"""The world itself: clocks do what they say, the judge counts as it should, runs are repeatable."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

import pytest

from ldpstream.audit import drills, wallet_drills
from ldpstream.audit.drills import Drill, RepeatedSource
from ldpstream.audit.hostile_collector import NANO, make_terms
from ldpstream.audit.judge import Draw, PersonTranscript
from ldpstream.audit.life import Life
from ldpstream.audit.machine import START_MS, Machine, TrueTime
from ldpstream.audit.planted import BUGS
from ldpstream.audit.planted.bug import Bug
from ldpstream.device.exchange import Pause, Request
from ldpstream.fleet.folders import memory_folder


def test_a_wall_clock_is_skewed_drifts_and_can_be_set() -> None:
    true = TrueTime()
    machine = Machine(true, skew_ms=500, drift=Fraction(1, 100))
    assert machine.wall_ms() == START_MS + 500
    machine.wait(10)
    assert machine.wall_ms() == true.now_ms() + 600
    machine.set_wall(0)
    assert machine.wall_ms() == true.now_ms()
    machine.move_wall(-7)
    assert machine.wall_ms() == true.now_ms() - 7
    assert machine.steady_ms() == 10_000  # whatever became of the wall clock


@pytest.mark.parametrize(("counts_sleep", "passed"), [(True, 70_000), (False, 10_000)])
def test_a_steady_clock_counts_sleep_or_does_not(counts_sleep: bool, passed: int) -> None:
    machine = Machine(TrueTime(), counts_sleep=counts_sleep, up_ms=5000)
    machine.wait(10)
    machine.sleep(60)
    assert machine.steady_ms() == passed + 5000
    boot = machine.boot()
    machine.reboot(down_seconds=3)
    assert machine.steady_ms() == 0
    assert machine.boot() not in (None, boot)


def test_a_steady_clock_may_run_slow_and_never_fast() -> None:
    machine = Machine(TrueTime(), pace=Fraction(9, 10), names_boots=False)
    machine.wait(10)
    assert machine.steady_ms() == 9000
    machine.reboot()
    assert machine.boot() is None
    with pytest.raises(ValueError, match="fast"):
        Machine(TrueTime(), pace=Fraction(11, 10))


def test_two_machines_live_in_one_time() -> None:
    true = TrueTime()
    one, other = Machine(true), Machine(true, skew_ms=1000)
    one.sleep(5)
    assert other.wall_ms() - one.wall_ms() == 1000
    assert one.boot() != other.boot()
    with pytest.raises(ValueError, match="back"):
        true.advance_us(-1)


def test_clocks_can_be_set_between_two_looks() -> None:
    machine = Machine(TrueTime())
    machine.before_look = lambda: machine.move_wall(1000)
    first = machine.wall_ms()
    assert machine.wall_ms() == first + 1000


def judged(*draws: tuple[int, int], span_ms: int = 1000) -> list[str]:
    """The judgement of reports that were read at these microseconds and cost so much of 10."""
    transcript = PersonTranscript(TrueTime())
    for number, (read_us, nano) in enumerate(draws):
        transcript.drawn(Draw((number, "a"), nano, read_us, b"x"))
    return transcript.violations(10, span_ms)


def test_the_judge_counts_in_half_open_spans_wherever_they_begin() -> None:
    assert judged((0, 10), (1_000_000, 10)) == []
    assert judged((0, 10), (999_999, 1)) != []
    assert judged((500_000, 4), (900_000, 4), (1_400_000, 2)) == []
    assert judged((500_000, 4), (900_000, 4), (1_400_000, 3)) != []
    assert judged((0, 5), (999_999, 5), (1_000_000, 5)) == []


def test_the_judge_wants_one_payload_and_a_debit_on_disk() -> None:
    true = TrueTime()
    transcript = PersonTranscript(true)
    first, again = Draw((1, "a"), 1, 0), Draw((1, "a"), 1, 10)
    transcript.drawn(first)
    assert transcript.departed((1, "a"), b"x", first, lambda key, report: True) is first
    assert transcript.departed((1, "a"), b"x", None, lambda key, report: True) is first
    assert transcript.violations(10, 1000) == []
    transcript.drawn(again)
    transcript.departed((1, "a"), b"y", again, lambda key, report: False)
    assert transcript.violations(10, 1000) == [
        "round (1, 'a') was drawn again while its debit was kept",
        "round (1, 'a') left before it was on disk",
    ]
    transcript.departed((1, "a"), b"z", None, lambda key, report: True)
    assert transcript.violations(10, 1000)[1] == (
        "round (1, 'a'): bytes left that nothing was drawn for"
    )


def test_what_a_fault_kept_back_counts_when_it_leaves_and_when_it_was_read() -> None:
    transcript = PersonTranscript(TrueTime())
    kept = Draw((1, "a"), 10, 123)
    transcript.drawn(kept)
    assert transcript.sent == []
    transcript.departed((1, "a"), b"x", None, lambda key, report: True)
    assert [(one.read_us, one.report) for one in transcript.sent] == [(123, b"x")]


def a_day(folder: Path) -> list[tuple[tuple[int, str], int, bytes | None]]:
    """A day of a device on a machine with all kinds of trouble."""
    machine = Machine(TrueTime(), drift=Fraction(1, 500), counts_sleep=False)
    life = Life(folder, machine, make_terms(window=4), source=RepeatedSource(3))
    life.install()
    for hour in range(24):
        for _ in range(20):
            life.ask(life.collector.make_round(epsilon_nano=NANO // 4))
            machine.wait(60)
        machine.sleep(1200)
        machine.move_wall((-1) ** hour * 59_000)
        life.reboot(20) if hour % 5 == 4 else life.start()
    assert life.violations == []
    start_us = START_MS * 1000
    return [(one.key, one.read_us - start_us, one.report) for one in life.transcript.sent]


def test_a_world_is_repeatable() -> None:
    days = []
    for _ in range(2):
        with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
            days.append(a_day(Path(folder)))
    assert days[0] == days[1]
    assert len(days[0]) > 400


@pytest.mark.parametrize(
    "drill", [*drills.ALL, *wallet_drills.ALL], ids=lambda drill: drill.__name__
)
def test_a_device_keeps_its_promise_in_every_drill(memory: Path, drill: Drill) -> None:
    assert drill(memory) == []


@pytest.mark.parametrize(
    "bug", [bug for bug in BUGS if bug.drill is not None], ids=lambda bug: bug.name
)
def test_a_planted_bug_is_seen_in_its_drill(memory: Path, bug: Bug) -> None:
    assert bug.drill is not None
    with bug.planted():
        assert bug.drill(memory)


def test_a_twin_sees_all_that_could_tell(memory: Path) -> None:
    """Coins that say yes and no, lost answers, pauses before tries, waits for budget."""
    life = drills.twin(memory / "twin", lambda us: 1)
    steps = [step for _, step in life.collector.seen]
    sent = [step.path for step in steps if isinstance(step, Request) and step.method == "POST"]
    pauses = {step.seconds for step in steps if isinstance(step, Pause)}
    assert 20 < len(set(sent)) < life.collector.named / 2
    assert len(sent) > 1.5 * len(set(sent))
    assert {1.0, 2.0, 4.0} < pauses  # between tries; the others wait for budget
    other = drills.twin(memory / "other", lambda us: 0)
    assert [one.key for one in other.transcript.sent] == [one.key for one in life.transcript.sent]
    assert [one.report for one in other.transcript.sent] != [
        one.report for one in life.transcript.sent
    ]


def test_every_drill_has_its_bug() -> None:
    assert {bug.drill for bug in BUGS} - {None} == {*drills.ALL, *wallet_drills.ALL}
