"""Every decoder that sees foreign bytes, each with what to feed it and what it may do with it.

A target draws an input and checks what came of it: an answer that makes sense, or an error of the
catalogue. Anything else (another exception, a hang) is a finding. `test_fuzz.py` runs each for a
short time, `benchmarks/fuzz.py` for as long as one likes.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ldpstream.collector.alerts.webhook import check_url
from ldpstream.collector.api.ingest import _mac
from ldpstream.collector.api.limits import has_token
from ldpstream.collector.config import parse
from ldpstream.collector.credentials.device_keys import StreamKeys
from ldpstream.collector.intake.validation import validate
from ldpstream.collector.reports.records import Records
from ldpstream.collector.reports.verdicts import Verdict
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.selection import OpenSelection
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.device import LedgerUnusable, Oracle, read_status
from ldpstream.device.answers import read_key, read_object, refusal_in, retry_after
from ldpstream.device.exchange import Address, Response
from ldpstream.device.http1 import AnswerReader, BadAnswer
from ldpstream.domain import Domain
from ldpstream.errors import MalformedReport, Mistake
from ldpstream.fleet.folders import memory_folder
from ldpstream.numeric import Numeric
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.randomness import SystemSource
from ldpstream.protocol.answers import Announcement, Refused
from ldpstream.protocol.limits import HEAD_BYTES
from ldpstream.protocol.names import device_number
from ldpstream.protocol.terms import Terms, TermsRefused
from ldpstream.streams.counts import read_counts
from ldpstream.streams.longform import read_events
from tests.collector.helpers import SECRETS, new_round
from tests.device.collectors import NUMBERS, Bench, a_round, make_terms

LABELS = 12
EPSILON = Epsilon.of(1)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**31, 2**53, 2**63, 2**64, 10**30, -1, 0])
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["", "²", "٣", "9" * 5000, "\x00", "\ud800"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


def changed(valid: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A valid object with some of its parts replaced, missing or added; or anything at all."""

    def build(given: tuple[dict[str, Any], list[str]]) -> dict[str, Any]:
        replaced, missing = given
        return {name: part for name, part in (valid | replaced).items() if name not in missing}

    names = st.sampled_from(sorted(valid)) | st.text(max_size=6)
    near = st.tuples(
        st.dictionaries(names, JSON, max_size=2),
        st.lists(st.sampled_from(sorted(valid)), max_size=1),
    ).map(build)
    return near | JSON


@st.composite
def damaged(draw: st.DrawFn, valid: bytes) -> bytes:
    """Bytes with some flipped, some cut off, some put in."""
    content = bytearray(valid)
    for place, mask in draw(st.lists(st.tuples(st.integers(0), st.integers(1, 255)), max_size=6)):
        if content:
            content[place % len(content)] ^= mask
    if draw(st.booleans()):
        at = draw(st.integers(0, len(content)))
        content[at:at] = draw(st.binary(max_size=16))
    if draw(st.booleans()):
        del content[draw(st.integers(0, len(content))) :]
    return bytes(content)


Target = Callable[[st.DataObject], None]


def reports(oracle: Oracle) -> Target:
    """Both halves refuse the same bytes, and read and count the others alike."""
    device, collector = oracle.device(LABELS, EPSILON), oracle.collector(LABELS, EPSILON)

    def check(data: st.DataObject) -> None:
        honest = device.encode(device.perturb(3, SystemSource()))
        wire = data.draw(st.binary(max_size=24) | damaged(honest))
        try:
            report = device.decode(wire)
        except MalformedReport:
            try:
                collector.decode([wire])
            except MalformedReport:
                return
            raise AssertionError("the collector reads what the device half refuses") from None
        assert device.encode(report) == wire, "one report, two ways to write it"
        counts = collector.support(collector.decode([wire])).counts.tolist()
        assert counts == [device.supports(report, label) for label in range(LABELS)]

    return check


def numbers(numeric: Numeric) -> Target:
    """Reports of numbers, in the same way."""
    device = numeric.device(LABELS, EPSILON)

    def check(data: st.DataObject) -> None:
        honest = device.encode(device.perturb(3, SystemSource()))
        wire = data.draw(st.binary(max_size=24) | damaged(honest))
        with suppress(MalformedReport):
            assert device.encode(device.decode(wire)) == wire

    return check


TERMS = Terms("a", Domain.numbered(LABELS), EPSILON, 4, 10_000, 0, Oracle.GRR)


@cache
def _asking(oracle: Oracle) -> tuple[OpenRound, StreamKeys, OpenSelection]:
    collector = oracle.collector(LABELS, EPSILON)
    stored = new_round(report_bytes=collector.device.report_bytes)
    keys = StreamKeys.of_master(b"master secret of the tests", "a")
    return OpenRound(TERMS, stored, collector, None), keys, OpenSelection(EPSILON, 4, 40)


def batches(data: st.DataObject) -> None:
    """Of a batch of anything, no record is accepted, and nothing breaks."""
    asking, keys, selection = _asking(data.draw(st.sampled_from(list(Oracle))))
    width = HEAD_BYTES + asking.stored.report_bytes
    rows = data.draw(st.lists(st.binary(min_size=width, max_size=width), min_size=1, max_size=40))
    verdicts, _ = validate(
        Records.of(b"".join(rows), asking.stored.report_bytes), asking, keys, selection
    )
    assert (verdicts == Verdict.MAC).all(), "nobody has signed this"


def announcements(data: st.DataObject) -> None:
    valid = {"serial": 3, "pin": "0" * 64, "rounds": [a_round(1)], "t": 1, "now_ms": 5}
    sent = data.draw(changed(valid | {"rounds": data.draw(st.lists(changed(a_round(1))))}))
    with suppress(Refused):
        read = Announcement.read(sent)
        for one in read.rounds:
            assert isinstance(one, Refused) or (one.t >= 1 and one.epsilon_nano >= 1)


def answers(data: st.DataObject) -> None:
    """Whatever bytes a collector answers with."""
    valid = json.dumps({"type": "urn:ldpstream:problem:token", "detail": "x"}).encode()
    deep = st.integers(1, 20_000).map(lambda depth: b"[" * depth)
    body = data.draw(st.binary(max_size=64) | damaged(valid) | deep)
    after = data.draw(st.text(max_size=8) | st.sampled_from(["9" * 5000, "²", "-1", "1e9"]))
    response = Response(data.draw(st.integers(100, 599)), {"retry-after": after}, body)
    assert 0 <= retry_after(response) <= 3600
    assert len(str(refusal_in(response, "x"))) < 500
    with suppress(Refused):
        read_object(response, "x")
    with suppress(Refused):
        assert len(read_key(data.draw(JSON))) == 32


def terms(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([{}, {"other": "west"}, NUMBERS]))
    sent = data.draw(changed(json.loads(make_terms(**kind).canonical)))
    with suppress(TermsRefused):
        read = Terms.read(sent)
        assert Terms.read(json.loads(read.canonical)) == read
        read.timestamp_at(0)


def http(data: st.DataObject) -> None:
    """What a socket yields: an answer, or the one error that transports call unreachable."""
    valid = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    content = data.draw(st.binary(max_size=80) | damaged(valid) | damaged(chunked))

    reader = AnswerReader()
    with suppress(BadAnswer):
        response = reader.feed(content) or reader.end()
        assert 200 <= response.status < 600


CONFIG = """[collector]
listen = "127.0.0.1:0"
store = "c.sqlite"
[collector.limits]
batch = 100
[collector.alerts]
webhook = "http://localhost/x"
[[stream]]
name = "a"
labels = ["x", "y"]
epsilon = 1.5
window = 4
interval = "10s"
start = 2030-01-01T00:00:00Z
mechanism = "lpu"
oracle = "grr"
selection = "open"
population = 40
public = true
[stream.deadlines]
publication = 0.9
[stream.thresholds]
x = 0.5
[[stream.alert]]
label = "x"
above = 0.5
for = "1m"
"""
TOML = st.sampled_from(
    [
        *("nan", "inf", "-1", "0", "0.5", "1e400", "9" * 25, "9" * 5000),
        *('"²s"', '"٣:²"', '":²"', '"1s2"', '"99999999999999999999d"', '"[:"', '""', '"x"'),
        *("[1]", "{}", "[[]]", "{a=1}", "[" * 3000, '["x","x"]', "true", '"\\u0000"'),
        *("2030-01-01", "0001-01-01T00:00:00Z", '"lpf"', '"roster"', '"robust"'),
    ]
)


def configurations(data: st.DataObject) -> None:
    """A file with values replaced, lines left out, or other bytes."""
    lines = CONFIG.splitlines()
    for place in data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=3)):
        name, equals, _ = lines[place].partition(" = ")
        lines[place] = name + equals + data.draw(TOML) if equals else data.draw(st.text(max_size=9))
    text = "\n".join(lines)
    if data.draw(st.booleans()):
        text = data.draw(damaged(text.encode())).decode(errors="replace")
    with suppress(Mistake):
        parse(text, Path("collector.toml"))


def _ignore(note: str) -> None: ...


COUNTS = b"x,y\n3,5\n8,0\n"
EVENTS = b"user,time,place\na,2024-05-01T12:30:00,x\nb,2024-05-01T12:40:00,y\n"


def counts(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        file = Path(folder) / "counts.csv"
        cells = st.sampled_from([b"3", b"-1", b"9" * 19, b"9" * 5000, b"", "²".encode(), b"0x1"])
        row = st.tuples(cells, cells).map(lambda pair: b"x,y\n" + b",".join(pair))
        file.write_bytes(data.draw(st.binary(max_size=40) | damaged(COUNTS) | row))
        with suppress(Mistake):
            read_counts(file, tell=_ignore)


def events(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        file = Path(folder) / "events.csv"
        file.write_bytes(data.draw(damaged(EVENTS)))
        every = data.draw(st.sampled_from(["10min", "1h", "1", "0", "²", "9" * 30 + "d"]))
        bins = data.draw(st.sampled_from([None, None, "equal:3", "0,1,2", "equal:²", "nan,1"]))
        with suppress(Mistake):
            read_events(
                file,
                user="user",
                time="time",
                value="place",
                every=every,
                bins=bins,
                tell=_ignore,
            )


class _Asks:
    """As much of a request as the token check looks at."""

    def __init__(self, header: str) -> None:
        self.headers = {"authorization": header}


def headers(data: st.DataObject) -> None:
    """Tokens, device numbers, codes and URLs."""
    text = data.draw(st.text(max_size=40) | st.text("0123456789abcdef²٣ ", max_size=40))
    assert not has_token(_Asks(f"Bearer {text}"), b"a token that nobody guesses")  # type: ignore[arg-type]
    for check in (device_number, lambda given: _mac(given.encode("latin-1", "replace"))):
        with suppress(Mistake):
            assert len(check(text)) == 16
    with suppress(Mistake):
        check_url("webhook", "http://" + text)
    with suppress(Mistake):
        Address.of("http://" + text)


@cache
def _ledger() -> bytes:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        bench = Bench(Path(folder) / "device.ldp")
        bench.ask(bench.enrolled(), a_round(1))
        return bench.path.read_bytes()


def ledgers(data: st.DataObject) -> None:
    """A device's file, as its owner's tools read it."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        file = Path(folder) / "device.ldp"
        file.write_bytes(data.draw(damaged(_ledger())))
        with suppress(LedgerUnusable, Mistake):
            read_status(file)


@cache
def _store() -> bytes:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        file = Path(folder) / "c.sqlite"
        with closing(SqliteStore(file, SECRETS.master)) as store:
            store.create_stream("a", json.loads(make_terms().canonical))
            store.open_round("a", new_round())
            row = np.arange(34, dtype=np.uint8).reshape(1, 34)
            store.accept("a", "1-publication", Records(row))
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return file.read_bytes()


def stores(data: st.DataObject) -> None:
    """A collector's file that the disk has altered: opened, or refused in words."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        file = Path(folder) / "c.sqlite"
        file.write_bytes(data.draw(damaged(_store())))
        with suppress(Mistake), closing(SqliteStore(file, SECRETS.master)) as store:
            store.received("a", "1-publication")


TARGETS: dict[str, Target] = {
    **{f"reports of {oracle}": reports(oracle) for oracle in Oracle},
    **{f"reports of {numeric}": numbers(numeric) for numeric in Numeric},
    "batches of reports": batches,
    "announcements": announcements,
    "answers of a collector": answers,
    "terms": terms,
    "HTTP responses": http,
    "configuration": configurations,
    "counts CSV": counts,
    "events CSV": events,
    "tokens, numbers, URLs": headers,
    "ledger file": ledgers,
    "store file": stores,
}

runs: Counter[str] = Counter()
"""Inputs tried so far, by target."""
