"""A real collector under `http_fuzz.py`, for a short time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.http_fuzz import SECONDS, TOKENS, collector, fuzz, fuzz_raw, resident_bytes
from tests.serving import CollectorProcess

MOST_GROWTH = 16 << 20
"""Bytes. Caches and arenas settle in the first calls, which are not counted; 1,000 requests that
leaked their 16 KiB of buffers each would be found."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    with collector(tmp_path_factory.mktemp("collector")) as running:
        yield running


@pytest.mark.filterwarnings("ignore")  # of the fuzzing library, about itself
def test_no_call_of_any_operation_breaks_the_collector(served: CollectorProcess) -> None:
    fuzz(served, 10, None)  # warm-up
    before = resident_bytes(served)
    for token in (None, *TOKENS.values()):
        found = fuzz(served, 15, token)
        assert found.wrong == []
        assert found.slowest < SECONDS
        assert found.calls > 100, "hardly anything was called"
    assert resident_bytes(served) - before < MOST_GROWTH


def test_ideas_of_our_own(served: CollectorProcess) -> None:
    """Regressions among them: digits that are no ASCII digits, and numbers that no integer holds,
    were server errors in Last-Event-ID, `since` and `after`."""
    found = fuzz_raw(served)
    assert found.wrong == []
    assert found.slowest < SECONDS


def test_no_token_in_the_log(served: CollectorProcess) -> None:
    """After all of the above, with every token in hundreds of requests."""
    logged = served.log.read_text()
    assert not any(token in logged for token in TOKENS.values())
