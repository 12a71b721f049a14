"""A hundred hostile streams against one wallet, judged by what left the device, in true time.

The suite runs a thousand operations; `benchmarks/wallet.py` runs 100,000.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldpstream.audit.planted.bug import Bug
from ldpstream.audit.planted.wallets import WALLETS
from ldpstream.fleet.folders import memory_folder
from tests.hostile.wallet_world import HostileWallet

STREAMS = 100
OPERATIONS = 1000
SEEN = ["a limit that counts one stream", "a looser limit at once"]
"""The others have drills of their own; here the limit binds before what they break."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as made:
        yield Path(made)


def test_a_hundred_hostile_streams_get_no_more_than_the_limit(folder: Path) -> None:
    world = HostileWallet(folder, STREAMS, seed=1)
    world.live(OPERATIONS)
    assert world.violations == []
    assert world.operations == OPERATIONS
    assert len(world.life.transcript.sent) > 40, "the limit is used up, again and again"


@pytest.mark.parametrize(
    "bug", [bug for bug in WALLETS if bug.name in SEEN], ids=lambda bug: bug.name
)
def test_a_wallet_that_leaks_would_be_noticed(folder: Path, bug: Bug) -> None:
    with bug.planted():
        world = HostileWallet(folder, 3, seed=2)
        world.live(1500)
    assert world.violations
