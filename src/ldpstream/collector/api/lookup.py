"""Finding the stream and the round that a request means."""

from __future__ import annotations

from starlette.requests import Request

from ldpstream.collector.api.limits import has_token
from ldpstream.collector.clock import ticks
from ldpstream.collector.credentials.read_tokens import read_token
from ldpstream.collector.intake.queue import RETRY_SECONDS
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.service.service import Service, StreamService
from ldpstream.errors import Mistake, Problem


def find_stream(service: Service, name: str) -> StreamService:
    """The stream of that name; refused as if there were none when there is none."""
    found = service.streams.get(name)
    if found is None:
        known = ", ".join(one for one, stream in service.streams.items() if stream.config.public)
        raise Mistake(Problem.STREAM_UNKNOWN, given=name, known=known)
    return found


def readable_stream(request: Request, name: str) -> StreamService:
    """The stream, if whoever asks may read it: private ones need the admin or a read token."""
    service: Service = request.app.state.service
    found = find_stream(service, name)
    if not may_read(request, name):
        raise Mistake(Problem.TOKEN, kind="admin")
    return found


def may_read(request: Request, name: str) -> bool:
    """Whether the stream is public, or the request carries a token that opens it."""
    service: Service = request.app.state.service
    return (
        service.streams[name].config.public
        or has_token(request, _reader(service, name))
        or has_token(request, service.secrets.admin)
    )


def _reader(service: Service, name: str) -> bytes:
    return read_token(service.secrets.admin, name).encode()  # of share links: api/page.py


async def find_round(service: Service, stream: StreamService, name: str) -> OpenRound:
    """The open round of that name; what was open before is told from what never was.

    Another collector may have told the device of it before it was known here. Of a store that
    cannot be looked at nothing is known, and the device had better ask again.
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
