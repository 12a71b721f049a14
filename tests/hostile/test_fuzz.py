"""Each decoder of `fuzz.py`, for a short time. The longer run is `benchmarks/fuzz.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ldpstream.errors import MalformedReport
from ldpstream.oracles import Oracle
from tests.hostile import fuzz


@pytest.fixture(autouse=True, scope="module")
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Files of events leave a cache behind; not in the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDPSTREAM_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_foreign_bytes_are_read_or_refused_in_words(name: str) -> None:
    quick = name in ("events CSV", "HTTP responses", "store file", "configuration")

    @settings(
        max_examples=60 if quick else 150,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        fuzz.TARGETS[name](data)

    check()


def test_a_decoder_that_accepts_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: the collector half forgets to look at the version."""
    collector = Oracle.GRR.collector(fuzz.LABELS, fuzz.EPSILON)
    honest = collector.decode_table

    def careless(table: object) -> object:
        try:
            return honest(table)  # type: ignore[arg-type]
        except MalformedReport:
            return honest(table[:0])  # type: ignore[index]

    monkeypatch.setattr(collector, "decode_table", careless)
    with pytest.raises(AssertionError):
        settings(max_examples=300, deadline=None, database=None, report_multiple_bugs=False)(
            given(st.data())(fuzz.reports(Oracle.GRR))
        )()
