"""Finding the stream and the round that a request means.

A private stream exists only for those who prove a right to it. Anyone else gets the answer of an
unknown name, after the same work: proofs are checked against every name that is not public.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

import numpy as np
from starlette.requests import Request
from starlette.types import Message, Receive

from ldpstream.arrays import Bytes
from ldpstream.collector.api.limits import (
    announced,
    check_token,
    has_token,
    is_number,
    read_body,
)
from ldpstream.collector.clock import ticks
from ldpstream.collector.credentials.device_keys import KeyStanding
from ldpstream.collector.credentials.read_tokens import read_token
from ldpstream.collector.intake.queue import RETRY_SECONDS
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.selection import SlotSelection
from ldpstream.collector.service.service import Service
from ldpstream.collector.service.stream_service import StreamService
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.authentication import (
    leave_message,
    renew_message,
    report_prefix,
    report_prefix_1,
    rounds_message,
    terms_message,
)
from ldpstream.protocol.limits import DEVICE_BYTES, LARGEST_REPORT, LARGEST_SERIAL
from ldpstream.protocol.messages import DEVICE_HEADER, MAC_HEADER
from ldpstream.protocol.names import device_number
from ldpstream.protocol.strata import level_in, round_name, timestamp_in
from ldpstream.protocol.terms import Terms

HOLD_SECONDS = 10.0
"""How long a report waits for its round, if the collector is late in opening it."""
_NO_PIN = "0" * 64


def check_admin(request: Request) -> None:
    """Refuse a request that does not carry the admin token."""
    check_token(request, request.app.state.service.secrets.admin, "admin")


def find_stream(service: Service, name: str) -> StreamService:
    """Return the stream of that name to a caller who may know of all streams of this collector."""
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


def described_stream(request: Request, name: str, pin: str) -> StreamService:
    """Return the stream if it is public, or if a token or a device's MAC of a pin opens it."""
    if (found := _public(request, name)) is not None:
        return found
    signed = _is_signed(request, name, terms_message(name, pin))
    return _private(request, name, signed | _has_token(request, name))


def left_stream(request: Request, name: str) -> StreamService:
    """Return the stream that a device leaves, if it has signed its farewell."""
    signed = _is_signed(request, name, leave_message(name))
    if not signed and _public(request, name) is not None:
        raise Mistake(Problem.REPORT_MAC)
    return _private(request, name, signed)


def renewed_stream(request: Request, name: str, level: str) -> StreamService:
    """Return the stream for which a device renews its key, if it has signed that."""
    signed = _is_signed(request, name, renew_message(name), [level], ever=True)
    found = _private(request, name, signed | (_public(request, name) is not None))
    if not _is_signed(request, name, renew_message(name), [level]):
        raise Mistake(Problem.KEY_ENDED if signed else Problem.REPORT_MAC)
    return found


async def reported_stream(
    request: Request, receive: Receive, name: str, round_name: str
) -> tuple[StreamService, Receive]:
    """Return the stream of a report, and the function that receives its body.

    Where the stream is not public the body has been read already: the report's own MAC opens it,
    and nothing is said before that is checked, not even that the body is too large.
    """
    if (found := _public(request, name)) is not None:
        return found, receive
    try:
        body = await read_body(receive, LARGEST_REPORT, announced(request.scope))
    except Mistake:
        raise _unknown(request.app.state.service, name) from None
    known = request.app.state.service.streams.get(name)
    pin = _NO_PIN if known is None else _stratum(known, round_name).pin
    level = level_in(round_name)
    prefix = report_prefix(name, pin, round_name, level)
    signed = _is_signed(request, name, prefix + body, [level], ever=True)
    found = _private(request, name, signed | _has_token(request, name))

    async def receive_again() -> Message:
        return {"type": "http.request", "body": body}

    return found, receive_again


def check_mac(
    stream: StreamService, round_name: str, number: bytes, mac: bytes, report: bytes
) -> bool:
    """Refuse a report that its device has not signed, and say so if its key was valid before.

    Return whether the device is to renew its key.
    """
    terms, name = _stratum(stream, round_name), stream.config.name
    keys = stream.intake.keys.at_level(terms.level)
    prefix = report_prefix(name, terms.pin, round_name, terms.level)
    prefix_1 = report_prefix_1(name, round_name)
    signatures = keys.signatures(_row(number), _row(mac), _row(report), prefix, prefix_1)
    standing = KeyStanding(int(signatures.standings[0]))
    if standing is KeyStanding.NONE and keys.ring.is_behind:
        raise Mistake(Problem.UNAVAILABLE, seconds=RETRY_SECONDS)
    if standing in _REFUSALS:
        raise Mistake(_REFUSALS[standing])
    return standing is KeyStanding.EARLIER and keys.ring.renews


_REFUSALS = {
    KeyStanding.ENDED: Problem.KEY_ENDED,
    KeyStanding.RELEASE_1: Problem.DEVICE_VERSION,
    KeyStanding.NONE: Problem.REPORT_MAC,
}


def _row(content: bytes) -> Bytes:
    return np.frombuffer(content, np.uint8).reshape(1, -1)


def _stratum(stream: StreamService, round_name: str) -> Terms:
    """Return the terms that a report of this round is signed under; the first if none match."""
    return stream.history.stratum(round_name) or stream.history.first


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


def _is_signed(
    request: Request,
    name: str,
    message: bytes,
    levels: Iterable[str] | None = None,
    *,
    ever: bool = False,
) -> bool:
    """Return whether the message has the MAC of the device that the request names.

    Any of these levels will do; with None, any level that any stream has, so
    that names are not told apart by how long this takes. With `ever` a key will do that is no
    longer valid, so that its device can be told so.
    """
    try:
        number = device_number(request.headers.get(DEVICE_HEADER))
        mac = bytes.fromhex(request.headers.get(MAC_HEADER, ""))
    except ValueError:
        number, mac = bytes(DEVICE_BYTES), b""
    service: Service = request.app.state.service
    signed = False
    for level in service.levels if levels is None else levels:
        signed |= service.ring.has_signed(name, level, number, message, mac, ever=ever)
    return signed


async def find_round(service: Service, stream: StreamService, name: str) -> OpenRound:
    """Return the open round of that name; refuse one that is closed, or that never was.

    Another collector may have announced it to the device before it is known here. While the store
    cannot be read nothing is known of it, and the device is told to try again.
    """
    if (found := stream.hub.open.get(name)) is not None:
        return found
    stream.refuse_halted()
    if isinstance(stream.intake.selection, SlotSelection):
        return await _slot_round(service, stream, name)
    stratum = stream.history.stratum(name)
    if stratum is not None:
        _check_counted(stream, stratum, timestamp_in(name), name)
    asked = ticks()
    found = await stream.hub.opened(name, stream.news_seconds)
    if found is not None:
        return found
    if stream.hub.was_open(name):
        raise Mistake(Problem.ROUND_CLOSED, given=name)
    if not service.sees(stream.config.name, asked):
        raise Mistake(Problem.UNAVAILABLE, seconds=RETRY_SECONDS)
    raise Mistake(Problem.ROUND_UNKNOWN, given=name)


def _check_counted(stream: StreamService, stratum: Terms, t: int, name: str) -> None:
    """Refuse a round of terms that are not counted at its timestamp, and say so if they ended."""
    last_t = stream.history.last_t(stratum)
    if last_t is not None and t > last_t:
        raise Mistake(Problem.TERMS_ENDED, version=stratum.version, t=last_t)
    if not stream.history.is_counted(stratum, t):
        raise Mistake(Problem.ROUND_UNKNOWN, given=name)


async def _slot_round(service: Service, stream: StreamService, name: str) -> OpenRound:
    """Return the round of that name; with slots the clock says whether it has begun, or is over."""
    t, now, stratum = timestamp_in(name), service.clock.now_ms(), stream.history.stratum(name)
    if stratum is None or name != round_name(t, stratum.suffix):
        raise Mistake(Problem.ROUND_UNKNOWN, given=name)
    early_ms = stratum.start_of(t) - now
    if early_ms > 0:
        raise Mistake(Problem.ROUND_EARLY, given=name, seconds=ceil(early_ms / 1000))
    _check_counted(stream, stratum, t, name)
    left_ms = stream.history.deadline_of(t) - now
    if left_ms > 0 and t > stream.hub.last_t:  # a clock that was ahead may have released it
        found = await stream.hub.opened(name, min(HOLD_SECONDS, left_ms / 1000))
        if found is not None:
            return found
        if not stream.hub.was_open(name):
            raise Mistake(Problem.UNAVAILABLE, seconds=RETRY_SECONDS)
    raise Mistake(Problem.ROUND_CLOSED, given=name)
