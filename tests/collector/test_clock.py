"""The collector's time: the machine's clock, as far as its steady clock confirms it."""

from __future__ import annotations

import json
import logging
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.collector.clock import (
    ABSENCE_MS,
    FOLLOWED_MS,
    RENEWAL_MS,
    SETTLING_MS,
    SLEW,
    ClockFault,
    ConfirmedClock,
)
from ldpstream.errors import Mistake, Problem
from tests.collector.helpers import START_MS

HOUR = 3_600_000
DAY = 24 * HOUR
YEAR = 365 * DAY


@dataclass
class Machine:
    """A machine whose clocks the test moves; it has been up for a day unless a test says less."""

    true_ms: int = START_MS
    wrong_ms: int = 0
    """How far its wall clock is off."""
    up_ms: int = DAY
    name: str | None = "boot 1"

    def wall_ms(self) -> int:
        return self.true_ms + self.wrong_ms

    def steady_ms(self) -> int:
        return self.up_ms

    def boot(self) -> str | None:
        return self.name

    def live(self, milliseconds: int) -> None:
        self.true_ms += milliseconds
        self.up_ms += milliseconds

    def reboot(self, away_ms: int, wrong_ms: int = 0) -> None:
        self.true_ms += away_ms
        self.wrong_ms, self.up_ms, self.name = wrong_ms, 0, "boot 2"


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "clock.json"


def doubted(clock: ConfirmedClock) -> ClockFault:
    doubt = clock.doubt
    assert doubt is not None
    return doubt


steps = st.tuples(
    st.sampled_from([0, 1, 500, 60_000, HOUR]) | st.integers(0, 2 * HOUR),
    st.sampled_from([0, FOLLOWED_MS, -FOLLOWED_MS, FOLLOWED_MS + 1, YEAR, -YEAR])
    | st.integers(-2 * FOLLOWED_MS, 2 * FOLLOWED_MS),
    st.booleans(),
)


@given(st.lists(steps, max_size=12))
def test_whatever_the_machines_clock_does_the_steady_clock_bounds_the_time(
    lives: list[tuple[int, int, bool]],
) -> None:
    """Through restarts too. A clock that comes back is believed again, without a trace."""
    machine = Machine()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "clock.json"
        clock = ConfirmedClock(machine, file)
        assert clock.now_ms() == START_MS
        for passed, wrong, killed in lives:
            machine.live(passed)
            machine.wrong_ms = wrong
            if killed:
                clock = ConfirmedClock(machine, file)
            slewed = (machine.true_ms - START_MS) // SLEW
            now, doubt = clock.now_ms(), clock.doubt
            assert abs(now - machine.true_ms) <= FOLLOWED_MS + slewed
            if doubt is None:
                assert now == machine.wall_ms()
            else:
                assert doubt.ahead_ms == machine.wall_ms() - now
                assert abs(wrong) > FOLLOWED_MS - slewed
        machine.wrong_ms = 0
        assert (clock.now_ms(), clock.doubt) == (machine.true_ms, None)


@pytest.mark.parametrize("sign", [1, -1])
def test_small_steps_are_followed_and_do_not_add_up(
    machine: Machine, file: Path, sign: int
) -> None:
    clock = ConfirmedClock(machine, file)
    clock.now_ms()
    for _ in range(24 * 60):  # of a day, each minute by a second: 24 minutes in all
        machine.live(60_000)
        machine.wrong_ms += sign * 1000
        assert abs(clock.now_ms() - machine.true_ms) <= FOLLOWED_MS + DAY // SLEW
    assert doubted(clock).ahead_ms * sign > 0


def test_a_step_that_was_right_is_taken_over_in_time(machine: Machine, file: Path) -> None:
    """So that the next one is followed as well."""
    clock = ConfirmedClock(machine, file)
    clock.now_ms()
    machine.wrong_ms = FOLLOWED_MS
    for _ in range(SLEW * FOLLOWED_MS // RENEWAL_MS + 1):
        machine.live(RENEWAL_MS)
        assert clock.now_ms() == machine.wall_ms()
    machine.wrong_ms += FOLLOWED_MS
    assert (clock.now_ms(), clock.doubt) == (machine.wall_ms(), None)


@pytest.mark.parametrize(("wrong", "side"), [(YEAR, "ahead of"), (-YEAR, "behind")])
def test_a_clock_that_is_far_off_is_told_once_and_once_when_it_is_right_again(
    machine: Machine, file: Path, caplog: pytest.LogCaptureFixture, wrong: int, side: str
) -> None:
    clock = ConfirmedClock(machine, file)
    clock.now_ms()
    machine.wrong_ms = wrong
    for _ in range(3):
        machine.live(1000)
        assert clock.now_ms() == machine.true_ms
    assert doubted(clock).sentence == (
        f"the machine's clock is 365 days, 0:00:00 {side} the time that its steady clock confirms;"
        " set it or, if it is right, delete clock.json in the store's folder and start the"
        " collector again"
    )
    assert [one.getMessage() for one in caplog.records] == [doubted(clock).sentence]
    machine.wrong_ms = 0
    assert clock.now_ms() == machine.true_ms
    assert [one.getMessage() for one in caplog.records[1:]] == [
        "the machine's clock is believed again"
    ]


def test_a_restart_does_not_believe_what_the_process_before_it_did_not(
    machine: Machine, file: Path
) -> None:
    ConfirmedClock(machine, file).now_ms()
    machine.live(DAY)
    machine.wrong_ms = YEAR
    assert ConfirmedClock(machine, file).now_ms() == machine.true_ms
    file.unlink()  # as the message says
    clock = ConfirmedClock(machine, file)
    assert (clock.now_ms(), clock.doubt) == (machine.wall_ms(), None)


@pytest.mark.parametrize(
    "kept",
    [
        "",
        "[]",
        "7",
        '{"boot": "boot 1"}',
        '{"boot": "boot 1", "wall_ms": "x", "steady_ms": 0}',
        '{"boot": "boot 0", "wall_ms": 0, "steady_ms": 0}',
        json.dumps({"boot": "boot 1", "wall_ms": 0, "steady_ms": 2 * DAY}),
        json.dumps({"boot": "boot 1", "wall_ms": 10**30 - 1, "steady_ms": 0}),
        json.dumps({"boot": "boot 1", "wall_ms": 1 - 10**17, "steady_ms": 0}),
        json.dumps({"boot": "boot 1", "wall_ms": 0, "steady_ms": -(10**17)}),
        '{"boot": "boot 1", "wall_ms": 1e999, "steady_ms": 0}',
        "[" * 100_000,
        "\udcff",
    ],
)
def test_a_file_that_is_of_no_use_is_written_anew(machine: Machine, file: Path, kept: str) -> None:
    file.write_text(kept, errors="surrogateescape")
    assert ConfirmedClock(machine, file).now_ms() == START_MS
    assert json.loads(file.read_text()) == {
        "boot": "boot 1",
        "wall_ms": START_MS,
        "steady_ms": DAY,
    }
    assert [file] == list(file.parent.iterdir())


def test_a_folder_in_place_of_the_file_leaves_no_drafts(machine: Machine, file: Path) -> None:
    file.mkdir()
    assert ConfirmedClock(machine, file).now_ms() == machine.wall_ms()
    assert list(file.parent.iterdir()) == [file]


def test_where_boots_have_no_name_or_nothing_can_be_written_the_process_remembers(
    machine: Machine, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machine.name = None
    nameless = ConfirmedClock(machine, file)
    nameless.now_ms()
    assert not file.exists()
    machine.name = "boot 1"
    homeless = ConfirmedClock(machine, file.parent / "missing" / "clock.json")
    with caplog.at_level(logging.WARNING):
        homeless.now_ms()
    assert "clock.json cannot be written" in caplog.text
    machine.wrong_ms = YEAR
    assert nameless.now_ms() == homeless.now_ms() == machine.true_ms


# After a boot: nothing confirms the machine's clock.


def test_a_machine_that_starts_with_a_wrong_clock_has_time_to_set_it(
    machine: Machine, file: Path
) -> None:
    released = machine.true_ms
    ConfirmedClock(machine, file).now_ms()
    machine.reboot(60_000, wrong_ms=YEAR)
    clock = ConfirmedClock(machine, file, released)
    machine.live(SETTLING_MS - 1500)
    assert clock.now_ms() == released
    sentence = doubted(clock).sentence
    assert "started just now, and its clock is 365 days, 0:05:58 ahead" in sentence
    assert sentence.endswith("it will be trusted in 2 s")
    machine.wrong_ms = 0
    assert (clock.now_ms(), clock.doubt) == (machine.true_ms, None)


def test_a_collector_that_was_away_for_days_goes_on_when_its_machine_has_settled(
    machine: Machine, file: Path
) -> None:
    released = machine.true_ms
    machine.reboot(3 * DAY)
    clock = ConfirmedClock(machine, file, released)
    assert clock.now_ms() == released
    machine.live(SETTLING_MS)
    assert (clock.now_ms(), clock.doubt) == (machine.true_ms, None)
    machine.wrong_ms = YEAR
    assert clock.now_ms() == machine.true_ms


def test_a_short_absence_or_a_machine_that_is_up_for_long_needs_no_waiting(
    machine: Machine, file: Path
) -> None:
    released = machine.true_ms
    machine.reboot(ABSENCE_MS)
    assert ConfirmedClock(machine, file, released).now_ms() == machine.true_ms
    machine.live(3 * DAY)
    assert ConfirmedClock(machine, file, released).now_ms() == machine.true_ms


def test_a_clock_that_starts_in_the_past_and_is_set_is_followed(
    machine: Machine, file: Path
) -> None:
    """As on a machine without a battery, which goes on from where it was switched off."""
    released = machine.true_ms
    machine.reboot(DAY, wrong_ms=-DAY)
    clock = ConfirmedClock(machine, file, released)
    assert (clock.now_ms(), clock.doubt) == (released, None)
    machine.wrong_ms = 0
    machine.live(SETTLING_MS)
    assert (clock.now_ms(), clock.doubt) == (machine.true_ms, None)


def test_a_new_collector_on_a_new_machine_has_its_own_start_to_compare_with(
    machine: Machine, file: Path
) -> None:
    machine.reboot(0)
    clock = ConfirmedClock(machine, file)
    machine.live(1000)
    assert clock.now_ms() == machine.true_ms
    machine.wrong_ms = YEAR
    assert clock.now_ms() < machine.true_ms
    assert doubted(clock).ahead_ms > HOUR


# A store that several collectors share has a clock.


def test_the_clock_of_a_shared_store_confirms_the_machines(machine: Machine) -> None:
    machine.reboot(YEAR)
    clock = ConfirmedClock(machine, store_ms=machine.true_ms + 20)
    assert (clock.now_ms(), clock.doubt) == (machine.true_ms, None)
    machine.wrong_ms = YEAR
    assert clock.now_ms() == machine.true_ms
    assert doubted(clock).sentence.endswith("if it is right, start the collector again")


@pytest.mark.parametrize(("wrong", "side"), [(YEAR, "ahead of"), (-YEAR, "behind")])
def test_a_machine_with_another_time_than_a_shared_store_does_not_serve_it(
    machine: Machine, wrong: int, side: str
) -> None:
    machine.wrong_ms = wrong
    with pytest.raises(Mistake, match=f"365 days, 0:00:00 {side} that of the database") as refused:
        ConfirmedClock(machine, store_ms=machine.true_ms)
    assert refused.value.problem is Problem.CLOCKS_DIFFER
