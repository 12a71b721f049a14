"""docs/guarantee.md: every step names tests that exist, and one of them is here."""

from __future__ import annotations

import ast
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ldpstream.audit.empirical import MECHANISMS
from ldpstream.audit.planted import BUGS
from ldpstream.device.account import Account, Outcome, Reading
from ldpstream.device.rules import SilenceReason
from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle
from ldpstream.protocol.answers import Refused, Round
from tests.device.collectors import NANO, Bench, a_round

ROOT = Path(__file__).parents[2]
GUARANTEE = (ROOT / "docs" / "guarantee.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def defined(file: Path) -> set[str]:
    """Names of the tests, and of the classes of tests, in a file."""
    nodes = ast.parse(file.read_text()).body
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED.findall(GUARANTEE))))
def test_a_named_test_exists(file: str, name: str) -> None:
    assert name.startswith(("test_", "Test"))
    assert name in defined(ROOT / file)


def test_every_step_names_its_tests() -> None:
    steps = re.split(r"^### ", GUARANTEE, flags=re.MULTILINE)[1:]
    assert len(steps) == 6
    assert all(NAMED.search(step) for step in steps)


def section(page: str, name: str) -> str:
    return page.partition(f"<!-- {name}: begin -->")[2].partition(f"<!-- {name}: end -->")[0]


def test_the_trust_page_has_every_randomiser_mechanism_and_bug() -> None:
    """So that it is written anew when one is added."""
    page = (ROOT / "docs" / "trust.md").read_text()
    for name, rows in {
        "audit-exact": [*Oracle, *Numeric],
        "audit-attacks": [mechanism.upper() for mechanism in MECHANISMS],
        "audit-planted": [bug.name for bug in BUGS],
    }.items():
        table = section(page, name)
        assert [row for row in rows if f"| {row} |" not in table] == []
        assert "**no**" not in table


def spoken(folder: Path, value: str) -> list[tuple[int, str]]:
    """The rounds that a device answers when it holds this value; all have the same secret."""
    bench = Bench(folder / f"{value}.ldp")
    bench.create().close()
    with closing(sqlite3.connect(bench.path)) as connection:
        connection.execute("UPDATE device SET secret = zeroblob(32)")
        connection.commit()
    device = bench.enrolled()
    assert device.sessions.wallet.memory.secret == bytes(32)
    device.observe(value)
    for t in range(1, 41):
        bench.clock.pass_timestamps(t - bench.t)
        bench.ask(device, a_round(t, f"{t}-half", epsilon_nano=NANO // 2, rate=[1, 2]))
        bench.ask(device, a_round(t, f"{t}-third", epsilon_nano=NANO // 3, rate=[1, 3]))
    return [(sent.t, sent.round) for sent in bench.collector.sent]


def test_whether_a_device_speaks_does_not_depend_on_its_value(memory: Path) -> None:
    north, *others = (spoken(memory, value) for value in ("north", "east", "south", "west"))
    assert 10 < len(north) < 50  # it does both, for the coin and for the budget
    assert all(other == north for other in others)


def test_a_coin_of_the_value_would_be_noticed(memory: Path) -> None:
    (bug,) = (bug for bug in BUGS if bug.name == "a coin of the value")
    with bug.planted():
        assert spoken(memory, "north") != spoken(memory, "east")


def test_a_device_that_speaks_by_its_value_would_be_noticed(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Account.consider

    def shy(self: Account, pin: str, asked: Round | Refused, reading: Reading) -> Outcome:
        held = reading(self.enrolled.terms, self._source)
        return honest(self, pin, asked, reading) if held else SilenceReason.NOT_SELECTED

    monkeypatch.setattr(Account, "consider", shy)
    assert spoken(memory, "north") != spoken(memory, "east")
