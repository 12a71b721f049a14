"""The roster: who leaves is not asked again, and who does not answer ever more rarely."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.rounds.selection import Asked, RosterSelection
from ldpstream.collector.store.contract import NO_RESTS, NewRound
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.mechanisms.messages import Ask, Purpose
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.authentication import leave_message, message_mac
from tests.collector.api import ENROL, STREAM, Api, assert_problem, running
from tests.collector.driving import World
from tests.collector.helpers import (
    SECRETS,
    device_of,
    enrolment,
    new_round,
    report_of,
    stream_config,
    unsigned,
)

EPSILON = Epsilon.of(1)


# Leaving


def farewell(api: Api, number: int, stream: str = "a", **other: str) -> Any:
    device = device_of(number)
    mac = message_mac(DeviceKeys(SECRETS.master, stream).of(device), leave_message(stream))
    headers = {"Ldp-Device": device.hex(), "Ldp-Mac": mac.hex()} | other
    return api.client.delete(f"/v1/streams/{stream}/devices", headers=headers)


@pytest.mark.parametrize("selection", ["slots", "open", "roster"])
def test_leaving_is_told_alike_by_every_stream_and_as_often_as_wanted(
    tmp_path: Path, selection: str
) -> None:
    with running(tmp_path, selection=selection, mechanism="lpu") as api:
        api.client.post(f"{STREAM}/devices", json=enrolment(1), headers=ENROL)
        for number in (1, 1, 2):
            answer = farewell(api, number)
            assert (answer.status_code, answer.json()) == (200, {"status": "left"})
        assert api.service.store.left("a").tolist() == ([0] if selection == "roster" else [])


def test_nobody_can_send_another_device_away(tmp_path: Path) -> None:
    with running(tmp_path, selection="roster") as api:
        api.client.post(f"{STREAM}/devices", json=enrolment(1), headers=ENROL)
        for wrong in (
            {"Ldp-Mac": "00" * 16},
            {"Ldp-Device": device_of(2).hex()},
            {"Ldp-Device": "no"},
            {"Ldp-Mac": api.signer(1).question("a")["Ldp-Mac"]},
        ):
            assert_problem(farewell(api, 1, **wrong), 401, "report-mac")
        assert_problem(api.client.delete(f"{STREAM}/devices", headers=ENROL), 401, "report-mac")
        assert api.service.store.left("a").tolist() == []


def test_who_has_left_is_not_asked_again(tmp_path: Path) -> None:
    with running(tmp_path, selection="roster", mechanism="lbu") as api:
        for number in (1, 2, 3):
            api.client.post(f"{STREAM}/devices", json=enrolment(number), headers=ENROL)
        farewell(api, 2)
        api.pass_time(10_000)
        asking = api.asking()
        assert asking.asked is not None
        assert asking.asked_mask.tolist() == [True, False, True]
        assert_problem(api.post(asking, 2, report_of(asking, 2)), 403, "report-not-asked")


@pytest.mark.parametrize("public", [True, False])
def test_a_farewell_to_a_private_stream_tells_nothing(tmp_path: Path, public: bool) -> None:
    with running(tmp_path, public=public, selection="roster") as api:
        unknown = farewell(api, 1, "never")
        assert_problem(unknown, 404, "stream-unknown")
        unsigned_ = farewell(api, 1, **{"Ldp-Mac": "00" * 16})
        if public:
            assert_problem(unsigned_, 401, "report-mac")
        else:
            assert unsigned_.text.replace("'a'", "'never'") == unknown.text
        assert farewell(api, 1).status_code == 200


# Silence


class Enrolled(SimpleNamespace):
    """A store with a roster and nothing else."""

    def roster(self, stream: str, first: int) -> bytes:
        return b"".join(map(device_of, range(first, self.size)))

    def left(self, stream: str) -> Any:
        return np.array(self.gone, np.int64)

    def rests(self, stream: str) -> Any:
        return NO_RESTS


def asked_by(selection: RosterSelection, t: int, users: int) -> NewRound:
    choice = selection.choose(t, Ask(users, EPSILON, Purpose.PUBLICATION))
    assert choice.asked is not None
    stored = new_round(
        t, users=users, roster_size=choice.asked.roster_size, asked=choice.asked.packed
    )
    selection.remember(stored)
    return stored


def test_devices_that_never_answer_do_not_fill_the_samples() -> None:
    """1,000 fakes beside 100 honest devices, 20 asked at a timestamp: at first 1.8 are honest.

    Over the last 40 of 60 windows two in three of those asked are honest (runs differ by .003), and
    an honest device is asked in 88 % of windows (.004). The bounds are tens of deviations away, and
    more than seven in the first window, where 400 are drawn from 1,100.
    """
    window, population, honest = 20, 400, 100
    store: Any = Enrolled(size=1100, gone=[])
    selection = RosterSelection(EPSILON, window, population, store, "a")
    asked, true = [], []
    for t in range(1, 60 * window + 1):
        stored = asked_by(selection, t, population // window)
        numbers = np.flatnonzero(Asked.of(stored).mask())
        answering = numbers[numbers < honest]
        asked.append(len(numbers))
        true.append(len(answering))
        devices = b"".join(device_of(number) for number in answering.tolist())
        heard = np.frombuffer(devices, np.uint8).reshape(-1, 16)
        selection.answered(stored, iter([heard] if len(heard) else []))
    first, last = slice(window), slice(20 * window, None)
    assert sum(true[first]) / sum(asked[first]) < 0.18
    assert sum(true[last]) / sum(asked[last]) > 0.5
    assert sum(true[last]) / (40 * honest) > 0.8


def test_a_device_that_speaks_again_is_asked_as_often_as_before() -> None:
    window = 2
    store: Any = Enrolled(size=2, gone=[])
    selection = RosterSelection(EPSILON, window, 2, store, "a")
    when: list[int] = []
    for t in range(1, 200):
        stored = asked_by(selection, t, 2)
        if Asked.of(stored).mask()[0]:
            when.append(t)
        speaks = [1] if t < 100 else [0, 1]
        parts = b"".join(device_of(n) for n in speaks if Asked.of(stored).mask()[n])
        devices = np.frombuffer(parts, np.uint8).reshape(-1, 16)
        selection.answered(stored, iter([devices] if len(devices) else []))
    waits = [after - before for before, after in pairwise(when)]
    assert waits[:5] == [2, 4, 8, 16, 32]
    assert set(waits[7:]) == {2}


def test_a_round_that_nobody_answers_says_nothing_of_anyone() -> None:
    store: Any = Enrolled(size=3, gone=[])
    selection = RosterSelection(EPSILON, 2, 3, store, "a")
    for t in range(1, 9):
        stored = asked_by(selection, t, 3)
        assert selection.answered(stored, iter(())).tolist() == []
        assert selection.answered(stored, None).tolist() == []
        assert len(Asked.of(stored)) == (3 if t % 2 else 0)


def test_a_restart_does_not_forget_who_is_silent(tmp_path: Path) -> None:
    config = stream_config(tmp_path, mechanism="lpu", selection="roster", window=2, population=4)
    world = World(config, tmp_path / "store.sqlite")
    world.enrol_everyone()
    asked: dict[int, list[int]] = {}
    while len(asked) < 8:
        with closing(SqliteStore(world.file, SECRETS.master)) as store:
            coordinator = Coordinator(config, store, world.clock)
            wake = coordinator.advance()
            if coordinator.open is not None:
                opened = coordinator.open
                asked[opened.stored.t] = np.flatnonzero(opened.asked_mask).tolist()
                speaking = [place for place in asked[opened.stored.t] if place]
                if speaking and not store.received("a", opened.name):
                    records = [(place + 1, report_of(opened, place + 1)) for place in speaking]
                    store.accept("a", opened.name, unsigned(*records))
            world.clock.advance_to(max(wake, world.clock.now_ms()))
    times = [t for t, places in asked.items() if 0 in places]
    with closing(SqliteStore(world.file, SECRETS.master)) as store:
        rests = store.rests("a").tolist()
    assert len(times) <= 3, "at t, t + 2 at the earliest, and t + 6"
    assert [place for place, _, _ in rests] == [0]
    assert rests[0][1] >= 2
