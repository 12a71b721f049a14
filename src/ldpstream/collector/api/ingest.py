"""The hot routes: reports, one by one and in batches.

Plain ASGI: no request or response objects, no validation by models. `openapi.py` documents them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from ldpstream.collector.api.limits import LENGTH, announced, read_body, sender_of
from ldpstream.collector.api.lookup import (
    check_mac,
    find_round,
    joined_stream,
    reported_stream,
)
from ldpstream.collector.api.problems import RENEW
from ldpstream.collector.reports.verdicts import JudgedRecords, Verdict, count
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.service.service import Service
from ldpstream.errors import LdpStreamError, MalformedReport, Mistake, Problem
from ldpstream.oracles.device_half import WIRE_VERSION
from ldpstream.protocol.answers import BatchAnswer
from ldpstream.protocol.limits import LARGEST_REPORT, MAC_BYTES
from ldpstream.protocol.messages import DEVICE_HEADER, MAC_HEADER
from ldpstream.protocol.names import device_number

_DEVICE_HEADER, _MAC_HEADER = (name.lower().encode() for name in (DEVICE_HEADER, MAC_HEADER))
_JSON = (b"content-type", b"application/json")
LONGER = 1024
"""A single report that is longer than it should be by more than this is not read."""


class SingleReport:
    """The route of `SubmitReport`.

    The MAC comes before all that is said of the round, the roster, slots and limits. Usually the
    intake checks it, with those of other reports; what does not get there is checked here.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        names = scope["path_params"]
        stream = self._service.streams.get(names["stream"])
        if stream is None or not stream.config.public:
            stream, receive = await reported_stream(
                Request(scope), receive, names["stream"], names["round"]
            )
        device, mac, length = _headers(scope)
        asking = stream.hub.open.get(names["round"])
        most = LARGEST_REPORT if asking is None else asking.stored.report_bytes + LONGER
        body = await read_body(receive, most, length)
        number, code = device_number(device), _mac(mac)
        if asking is None:
            scope[RENEW] = check_mac(stream, names["round"], number, code, body)
            asking = await find_round(self._service, stream, names["round"])
        try:
            answer = self._submit(asking, number + code, body, sender_of(scope))
        except LdpStreamError:
            scope[RENEW] = check_mac(stream, asking.name, number, code, body)
            raise
        verdicts, renew = await answer
        verdict, scope[RENEW] = Verdict(int(verdicts[0])), bool(renew[0])
        if verdict.refusal is not None:
            raise _refusal(verdict, asking.name, body)
        notice = stream.notice(asking.terms, renew=scope[RENEW])
        await _answer(send, 202, {"status": verdict.name.lower()} | notice.to_json())

    def _submit(
        self, asking: OpenRound, head: bytes, body: bytes, sender: str
    ) -> asyncio.Future[JudgedRecords]:
        expected = asking.stored.report_bytes
        if len(body) != expected:
            raise MalformedReport(Problem.REPORT_LENGTH, given=len(body), expected=expected)
        return self._service.intake.submit(asking, head + body, 1, sender)


class Batch:
    """The route of `SubmitBatch`."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        names = scope["path_params"]
        stream = joined_stream(Request(scope), names["stream"])
        asking = await find_round(self._service, stream, names["round"])
        limits = self._service.config.limits
        most = min(limits.batch * asking.record_bytes, limits.body_bytes)
        body = await read_body(receive, most, announced(scope))
        number, rest = divmod(len(body), asking.record_bytes)
        if rest or not number:
            raise MalformedReport(
                Problem.REPORT_LENGTH,
                given=len(body),
                expected=f"{asking.record_bytes} each, with device and code",
            )
        judged = await self._service.intake.submit(asking, body, number, sender_of(scope))
        notice = stream.notice(asking.terms, renew=bool(judged.renew.any()))
        await _answer(send, 200, summary(count(judged.verdicts)) | notice.to_json())


def summary(outcomes: Mapping[Verdict, int]) -> dict[str, Any]:
    """Return how many records were accepted, repeated, and refused for which reason.

    >>> summary({Verdict.ACCEPTED: 2, Verdict.MAC: 1})
    {'accepted': 2, 'repeated': 0, 'refused': {'report-mac': 1}}
    """
    accepted, repeated = (outcomes.get(one, 0) for one in (Verdict.ACCEPTED, Verdict.REPEATED))
    reasons = ((verdict.refusal, number) for verdict, number in outcomes.items())
    refused = {reason.code: number for reason, number in reasons if reason is not None}
    return vars(BatchAnswer(accepted, repeated, refused))


def _headers(scope: Scope) -> tuple[bytes | None, bytes | None, bytes]:
    """Return the device, the MAC and the length that a request announces."""
    device = mac = None
    length = b"0"
    for name, value in scope["headers"]:
        if name == _DEVICE_HEADER:
            device = value
        elif name == _MAC_HEADER:
            mac = value
        elif name == LENGTH:
            length = value
    return device, mac, length


def _mac(digits: bytes | None) -> bytes:
    """Return the bytes of a MAC; a malformed one is rejected like a wrong one."""
    try:
        mac = bytes.fromhex((digits or b"").decode("latin-1"))
    except ValueError:
        mac = b""
    if len(mac) != MAC_BYTES:
        raise Mistake(Problem.REPORT_MAC)
    return mac


def _refusal(verdict: Verdict, round_name: str, body: bytes) -> Mistake:
    """Return the error for a verdict, with the facts of the case."""
    facts: dict[str, object] = {"given": round_name}
    if verdict is Verdict.VERSION:
        facts = {"given": body[0], "expected": WIRE_VERSION}
    elif verdict is Verdict.RANGE:
        facts = {"field": "content", "given": body.hex(), "expected": "what the oracle can send"}
    assert verdict.refusal is not None
    return CountedRefusal(verdict.refusal, **facts)


class CountedRefusal(Mistake):
    """A refusal that the intake has counted already."""


async def _answer(send: Send, status: int, told: dict[str, Any]) -> None:
    body = json.dumps(told).encode()
    headers = [_JSON, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
