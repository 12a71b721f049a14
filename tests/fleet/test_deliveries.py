"""Deliveries of a gateway: what it hears in pauses, and when its terms have ended."""

from __future__ import annotations

import asyncio
import json

import pytest

from ldpstream.device.exchange import AsyncTransport, Connect, Request, Response, Unreachable
from ldpstream.errors import Problem
from ldpstream.fleet.deliveries import Deliveries
from ldpstream.protocol.notice import Halt, Notice


class Answering(AsyncTransport):
    """A collector that gives one answer, or none."""

    def __init__(self, answer: Response | None = None) -> None:
        self.answer = answer

    async def send(self, url: str, request: Request) -> Response:
        if self.answer is None:
            raise Unreachable(Problem.UNREACHABLE, url=url, what="nobody is there")
        return self.answer

    async def connect(self, url: str, step: Connect) -> None: ...

    async def close(self) -> None: ...


def test_a_paused_stream_stays_so_while_its_collector_is_away() -> None:
    deliveries = Deliveries(Answering(), "http://127.0.0.1:1", "a", halt=Halt.PAUSED)
    assert not asyncio.run(deliveries.goes_on(None, 1))
    assert deliveries.halt is Halt.PAUSED


def test_a_gateway_whose_terms_have_ended_hears_of_the_next() -> None:
    """One that was away for the whole overlap is told so by a refusal."""
    told = {"type": "urn:ldpstream:problem:terms-ended", "detail": "", "now_ms": 5}
    answer = Response(410, {}, json.dumps(told | {"successor": "ab" * 32}).encode())
    heard: list[Notice] = []
    deliveries = Deliveries(Answering(answer), "http://127.0.0.1:1", "a", heard=heard.append)
    sent = deliveries.send("7-publication", [b"report"], lambda: False, None)
    assert asyncio.run(sent) == [False]
    assert [(one.now_ms, one.successor) for one in heard] == [(5, "ab" * 32)]


@pytest.mark.parametrize(
    "body",
    [
        b"no JSON",
        b"[]",
        b"{}",
        b'{"accepted": 1}',
        b'{"accepted": true, "repeated": 0}',
        b'{"accepted": -1, "repeated": 0}',
        b'{"accepted": 1, "repeated": 1}',
    ],
)
def test_a_malformed_answer_judges_no_report(body: bytes) -> None:
    deliveries = Deliveries(Answering(Response(200, {}, body)), "http://127.0.0.1:1", "a")
    sent = deliveries.send("7-publication", [b"report"], lambda: False, None)
    assert asyncio.run(sent) == [False]
    assert (deliveries.delivered, deliveries.refused) == (0, {"answer-malformed": 1})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"type": "urn:ldpstream:problem:unavailable"}, "unavailable"),
        ({"of a proxy": "no problem body"}, "collector-refused"),
    ],
)
def test_a_refusal_is_counted_by_the_code_that_the_collector_gave(
    body: dict[str, str], reason: str
) -> None:
    answer = Response(403, {}, json.dumps(body).encode())
    deliveries = Deliveries(Answering(answer), "http://127.0.0.1:1", "a")
    asyncio.run(deliveries.send("7-publication", [b"report"], lambda: False, None))
    assert deliveries.refused == {reason: 1}
