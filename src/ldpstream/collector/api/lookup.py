"""Finding the stream and the round that a request means.

A private stream is there only for who proves a right to it. Anyone else gets the answer of an
unknown name, after the same work: proofs are checked against every name that is not public.
"""

from __future__ import annotations

import hmac

from starlette.requests import Request
from starlette.types import Message, Receive

from ldpstream.collector.api.limits import announced, has_token, is_number, read_body
from ldpstream.collector.clock import ticks
from ldpstream.collector.credentials.read_tokens import read_token
from ldpstream.collector.intake.queue import RETRY_SECONDS
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.service.service import Service, StreamService
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.authentication import (
    device_key,
    message_mac,
    report_prefix,
    rounds_message,
)
from ldpstream.protocol.limits import DEVICE_BYTES, LARGEST_REPORT, LARGEST_SERIAL
from ldpstream.protocol.messages import DEVICE_HEADER, MAC_HEADER
from ldpstream.protocol.names import device_number


def find_stream(service: Service, name: str) -> StreamService:
    """Return the stream of that name, to who may know of every stream of this collector."""
    found = service.streams.get(name)
    if found is None:
        raise _unknown(service, name)
    return found


def readable_stream(request: Request, name: str) -> StreamService:
    """Return the stream if it is public, or if the request carries a token that opens it."""
    return _public(request, name) or _private(request, name, _has_token(request, name))


def joined_stream(request: Request, name: str, after: str = "0") -> StreamService:
    """Return the stream if it is public, or if a token or a device's MAC of `after` opens it."""
    if (found := _public(request, name)) is not None:
        return found
    serial = int(after) if is_number(after, LARGEST_SERIAL) else 0
    signed = _is_signed(request, name, rounds_message(name, serial))
    return _private(request, name, signed | _has_token(request, name))


async def reported_stream(
    request: Request, receive: Receive, name: str, round_name: str
) -> tuple[StreamService, Receive]:
    """Return the stream of a report, and from where to receive its body.

    Where the stream is not public the body has been read already: the report's own MAC opens it,
    and nothing is said before that is checked, not even that the body is too large.
    """
    if (found := _public(request, name)) is not None:
        return found, receive
    try:
        body = await read_body(receive, LARGEST_REPORT, announced(request.scope))
    except Mistake:
        raise _unknown(request.app.state.service, name) from None
    signed = _is_signed(request, name, report_prefix(name, round_name) + body)
    found = _private(request, name, signed | _has_token(request, name))

    async def receive_again() -> Message:
        return {"type": "http.request", "body": body}

    return found, receive_again


def may_read(request: Request, name: str) -> bool:
    """Return whether the stream is public, or the request carries a token that opens it."""
    return _public(request, name) is not None or _has_token(request, name)


def _public(request: Request, name: str) -> StreamService | None:
    service: Service = request.app.state.service
    found = service.streams.get(name)
    return found if found is not None and found.config.public else None


def _private(request: Request, name: str, opened: bool) -> StreamService:
    """Return the stream if a proof has opened it: the one place where that is decided."""
    service: Service = request.app.state.service
    found = service.streams.get(name)
    if found is None or not opened:
        raise _unknown(service, name)
    return found


def _unknown(service: Service, name: str) -> Mistake:
    public = [one for one, stream in service.streams.items() if stream.config.public]
    return Mistake(Problem.STREAM_UNKNOWN, given=name, known=", ".join(public) or "none")


def _has_token(request: Request, name: str) -> bool:
    """Return whether the request carries the admin token, or the read token of this name."""
    admin = request.app.state.service.secrets.admin
    reader = read_token(admin, name).encode()  # of share links: api/page.py
    return has_token(request, reader) | has_token(request, admin)


def _is_signed(request: Request, name: str, message: bytes) -> bool:
    """Return whether the message has the MAC of the device that the request names."""
    try:
        number = device_number(request.headers.get(DEVICE_HEADER))
        mac = bytes.fromhex(request.headers.get(MAC_HEADER, ""))
    except ValueError:
        number, mac = bytes(DEVICE_BYTES), b""
    key = device_key(request.app.state.service.secrets.master, name, number)
    return hmac.compare_digest(message_mac(key, message), mac)


async def find_round(service: Service, stream: StreamService, name: str) -> OpenRound:
    """Return the open round of that name; refuse one that is closed, or that never was.

    Another collector may have announced it to the device before it is known here. While the store
    cannot be read nothing is known of it, and the device is told to try again.
    """
    asked = ticks()
    found = stream.hub.open.get(name) or await stream.hub.opened(name, stream.news_seconds)
    if found is not None:
        return found
    if stream.hub.was_open(name):
        raise Mistake(Problem.ROUND_CLOSED, given=name)
    if not service.sees(stream.config.name, asked):
        raise Mistake(Problem.UNAVAILABLE, seconds=RETRY_SECONDS)
    raise Mistake(Problem.ROUND_UNKNOWN, given=name)
