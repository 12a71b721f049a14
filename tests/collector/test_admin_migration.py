"""Stores that release 0.2.0 has written, by its own wheel, get the admin tables and are rotated."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ldpstream.collector.service.opening import open_place
from ldpstream.collector.store.database import Database
from tests.collector.admin_contract import FIRST, NEW, ROTATED, TOKEN, entry
from tests.collector.helpers import SECRETS
from tests.collector.store_contract import TERMS

WHEEL = Path(__file__).parents[1] / "fixtures" / "0.2.0" / "ldpstream-0.2.0-py3-none-any.whl"
PROGRAM = f"""
import sys
sys.path.insert(0, {str(WHEEL)!r})
from ldpstream import __version__
from ldpstream.collector.service.opening import open_place
assert __version__ == "0.2.0"
store = open_place(sys.argv[1], {SECRETS.master!r})
store.create_stream("a", {TERMS!r})
store.close()
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_store_of_0_2_0_is_rotated(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "old.sqlite")
    if kind == "postgres":
        database: Database = request.getfixturevalue("database")
        place = database.url
    subprocess.run([sys.executable, "-I", "-c", PROGRAM, place], check=True)
    with closing(open_place(place, SECRETS.master)) as store:
        assert (store.admin.serial(), store.admin.tokens(), store.admin.denied()) == (0, [], {})
        assert store.admin.silences() == {}
        assert store.admin.masters([SECRETS.master]) == FIRST
        store.admin.add_token(TOKEN, entry())
        store.admin.replace_masters(FIRST, ROTATED, entry())
    with closing(open_place(place, NEW)) as store:
        assert store.admin.masters([NEW]) == ROTATED
        assert store.check_releases("a").damage is None
        assert store.admin.check_log().damage is None
