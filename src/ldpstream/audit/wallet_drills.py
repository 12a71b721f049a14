"""Drills with a wallet: several streams under one limit, successors of terms, levels of privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ldpstream.audit.hostile_collector import NANO, make_terms
from ldpstream.audit.life import Life
from ldpstream.audit.machine import Machine, TrueTime
from ldpstream.device import Limit
from ldpstream.protocol.terms import Terms

CAREFUL = {"name": "careful", "epsilon_nano": NANO // 2, "window": 8, "oracle": "grr"}


def _installed(folder: Path, terms: Terms, level: str = "") -> Life:
    life = Life(folder, Machine(TrueTime()), terms)
    life.collector.level = level
    life.install()
    return life


def ask_all(life: Life) -> None:
    """Ask all streams for all of epsilon."""
    for collector in life.collectors.values():
        collector.rounds = [collector.make_round(epsilon_nano=collector.terms.epsilon_nano)]
    if life.process is not None:
        life.process.device.poll()


def two_streams_under_a_limit(folder: Path) -> list[str]:
    """Ask two streams of two collectors, each for all of the limit."""
    life = _installed(folder, make_terms(window=1))
    life.set_limit(Limit(1, "20m"))
    life.join(make_terms(window=1, stream="another"))
    for _ in range(5):
        ask_all(life)
        life.machine.wait(120)
    return life.broken_vows


def limit_that_is_loosened(folder: Path) -> list[str]:
    """Raise the limit right after a report, and ask again before its span has passed."""
    life = _installed(folder, make_terms(window=1))
    for epsilon in (1, 2, 3):
        life.set_limit(Limit(epsilon, "20m"))
        ask_all(life)
        life.machine.wait(120)
    return life.broken_vows


def successor_with_a_longer_window(folder: Path) -> list[str]:
    """Lengthen the window right after a report: older debits count again."""
    life = _installed(folder, make_terms(window=1))
    ask_all(life)
    life.collector.succeed(window=4)  # four times longer: a device goes over by itself
    for _ in range(5):
        life.machine.wait(120)
        ask_all(life)
    return life.broken_vows


def careful_person_becomes_less_so(folder: Path) -> list[str]:
    """Move to a looser level after a report at a stricter one."""
    slots: dict[str, Any] = {
        "selection": "slots",
        "deadline_ms": 54_000,
        "version": 3,
        "levels": [CAREFUL],
    }
    life = _installed(folder, make_terms(window=2, **slots), level="careful")
    life.machine.wait(20)
    if life.process is not None:
        life.process.device.poll(10 * 60)
        life.move_to_level("")
        for _ in range(4):
            life.process.device.poll(5 * 60)
    return life.broken_vows


def left_behind_a_decoy(folder: Path) -> list[str]:
    """Leave a stream, join another one, and then the first one again."""
    life = _installed(folder, make_terms(window=20))
    ask_all(life)
    if life.process is not None:
        life.process.device.leave()
        life.join(make_terms(window=1, stream="decoy"))
        life.enrol_again()
        life.machine.wait(60)
        ask_all(life)
    return life.broken_vows


ALL = (
    two_streams_under_a_limit,
    limit_that_is_loosened,
    successor_with_a_longer_window,
    careful_person_becomes_less_so,
    left_behind_a_decoy,
)
