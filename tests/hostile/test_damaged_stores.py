"""Some of the damaged stores of `damaged_stores.py`; the longer run is the program itself."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from ldpstream.collector.service import service
from tests.hostile.damaged_stores import DAMAGE, run

CASES = 150


def test_a_damaged_store_works_or_is_refused_in_one_line() -> None:
    outcomes = list(run(0, CASES))
    found = [(one.number, one.kind, one.said, one.line) for one in outcomes if one.finding]
    assert found == []
    assert {one.kind for one in outcomes} == DAMAGE.keys()
    assert {"store-damaged", "chain-broken", "store-version", "works"} <= {
        one.said for one in outcomes
    }


def test_a_collector_that_trusts_its_store_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "reading_store", nullcontext)
    assert any(one.finding for one in run(0, CASES))
