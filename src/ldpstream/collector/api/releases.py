"""What readers ask for: releases, all at once or as they come."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ldpstream.collector.alerts.evaluator import AlertEvaluator
from ldpstream.collector.api.alerts import shown
from ldpstream.collector.api.limits import ReaderPool, is_number, sender_of
from ldpstream.collector.api.lookup import may_read, readable_stream
from ldpstream.collector.releases.formats import MEDIA_TYPES, write
from ldpstream.collector.releases.paging import at_once
from ldpstream.collector.service.service import Service
from ldpstream.collector.service.stream_service import StreamService
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.groups import known_groups, of_group, read_group
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.messages import CHANGES, FEED, PREFIX, RELEASES, SUMMARIES

_QUALITY = re.compile(r"[01](\.[0-9]*)?")
KEEP_ALIVE_SECONDS = 15
"""A comment is sent so often, for proxies that cut silent connections."""
BUSY_SECONDS = 1
"""After this a feed tries again to read what it has missed."""
FEED_PAGE = 500
LATEST_T = 1 << 53
"""A timestamp later than any clock, which JSON and the store can still hold."""
RECENT_CHANGES = 20
"""Of alerts, in one event of the feed."""


def releases(service: Service) -> APIRouter:
    router = APIRouter(prefix=PREFIX, tags=["releases"])
    pool = ReaderPool()
    slow = ReaderPool()
    """For what is computed for the reader: whoever wants releases does not wait for that."""
    alerts = AlertEvents()

    def most_of(found: StreamService, limit: int) -> int:
        """Return how many rows to read at once: as many as are wanted, if they fit."""
        return at_once(found.figures, min(limit, service.config.limits.releases))

    @router.get(RELEASES)
    async def list_releases(
        stream: str,
        request: Request,
        since: Annotated[int, Query(ge=0, le=LATEST_T, description="the first t")] = 0,
        limit: Annotated[int, Query(ge=1, description="at most so many")] = 1000,
        format: Annotated[str | None, Query(description=", ".join(MEDIA_TYPES))] = None,  # noqa: A002
        revised: Annotated[bool, Query(description="with revised figures")] = False,
        group: Annotated[str | None, Query(description="of a group, such as country:de")] = None,
    ) -> Response:
        """Releases in order of t, in the format of `format`, otherwise of Accept, otherwise JSON.

        With `group` they have the figures of that group of devices in place of the fleet's; null
        where it is not shown.

        There may be more even if fewer than `limit` come: continue from the t after the last.
        With `revised` each has figures beside it, `revised` and its interval, from all tallies
        before and after it. A release never changes; these do.
        """
        found = readable_stream(request, stream)
        kind = _format(format, request.headers.get("accept", ""))
        most = most_of(found, limit)
        part = None if group is None else read_group(group, known_groups(found.history.versions))
        if part is not None and revised:
            expected = "without group: the history of groups is not revised"
            raise Mistake(Problem.PARAMETER, name="revised", given="true", expected=expected)
        most = min(most, found.revised.most) if revised else most

        def read() -> bytes:
            rows = service.store.releases(stream, since, most)
            names = found.names.of(rows)
            if part is not None:
                rows = [of_group(row, part) for row in rows]
            return write(kind, stream, names, found.revised.of(rows) if revised else rows)

        body = await (slow if revised else pool).run(sender_of(request.scope), read)
        return Response(body, media_type=MEDIA_TYPES[kind])

    @router.get(SUMMARIES)
    async def list_summaries(
        stream: str,
        request: Request,
        since_ms: Annotated[int, Query(ge=0, le=LATEST_T, description="the first start")] = 0,
        limit: Annotated[int, Query(ge=1, description="at most so many")] = 1000,
    ) -> dict[str, object]:
        """Summaries of releases that were pruned, of hours and of days, in order of time.

        `values`, `low` and `high` are means of what was released, `least` and `most` its extremes.
        """
        found = readable_stream(request, stream)
        most = most_of(found, limit)

        def read() -> list[dict[str, object]]:
            rows = service.store.summaries(stream, since_ms, most)
            names = [terms.names for terms in found.history.versions]
            return [{"labels": names[one.terms_version - 1]} | one.to_json() for one in rows]

        return {"stream": stream, "summaries": await pool.run(sender_of(request.scope), read)}

    @router.get(CHANGES)
    async def list_changes(
        stream: str,
        request: Request,
        since: Annotated[int, Query(ge=0, le=LATEST_T, description="the first t")] = 0,
        limit: Annotated[int, Query(ge=1, description="of at most so many timestamps")] = 1000,
    ) -> dict[str, object]:
        """Where labels went from one level to another at once, by all tallies so far.

        Each has the first timestamp after it, the earliest and the latest that it may be, and its
        size with an interval (90 %). What is found changes as tallies come.
        """
        found = readable_stream(request, stream)
        most = most_of(found, limit)

        def read() -> list[dict[str, object]]:
            if not found.config.has_changes:
                return []
            rows = service.store.releases(stream, since, most)
            return [asdict(one) for one in found.revised.over(rows).changes]

        return {"stream": stream, "changes": await slow.run(sender_of(request.scope), read)}

    @router.get(FEED, response_class=StreamingResponse)
    async def feed(
        stream: str,
        request: Request,
        since: Annotated[
            int, Query(ge=0, le=LATEST_T, description="the first t; 0: from now on")
        ] = 0,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> StreamingResponse:
        """Releases as server-sent events, id = t; Last-Event-ID resumes an interrupted feed.

        Events `alerts` come between them, without an id, with what GET .../alerts answers. It ends
        if the stream is made private to this reader.
        """
        found = readable_stream(request, stream)
        if last_event_id is not None and is_number(last_event_id, LATEST_T):
            last = int(last_event_id)
        else:
            last = since - 1 if since else found.hub.last_t
        events = _events(service, found, last, alerts, pool, sender_of(request.scope))
        return StreamingResponse(
            _while_readable(request, stream, events),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return router


async def _while_readable(
    request: Request, stream: str, events: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yield events as long as the request may read the stream, which a reload can make private."""
    async with aclosing(events):
        async for event in events:
            if not may_read(request, stream):
                return
            yield event


class AlertEvents:
    """The events that tell feeds of alerts, each made once for all feeds of a stream."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[int, asyncio.Task[bytes]]] = {}

    async def at(self, evaluator: AlertEvaluator, serial: int) -> bytes:
        """Return the event of a stream's alerts as they are at a serial of its hub, or later."""
        known = self._made.get(evaluator.stream)
        if known is None or known[0] != serial:
            making = asyncio.create_task(run_in_threadpool(_alerts_event, evaluator))
            known = self._made[evaluator.stream] = serial, making
        return await asyncio.shield(known[1])  # a reader that leaves takes it from nobody


def _alerts_event(evaluator: AlertEvaluator) -> bytes:
    return f"event: alerts\ndata: {json.dumps(shown(evaluator, RECENT_CHANGES))}\n\n".encode()


async def _events(
    service: Service,
    stream: StreamService,
    last: int,
    alerts: AlertEvents,
    pool: ReaderPool,
    reader: str,
) -> AsyncGenerator[bytes, None]:
    """Yield each release with its id, and all alerts whenever one of them changes."""
    hub, evaluator = stream.hub, service.evaluators[stream.config.name]
    page = at_once(stream.figures, FEED_PAGE)

    def read(since: int) -> list[tuple[int, bytes]]:
        return [_event(row) for row in service.store.releases(stream.config.name, since, page)]

    told = -1 if evaluator.rules else hub.alerts_serial
    yield b"retry: 1000\n\n"
    while not hub.stopping:
        if hub.alerts_serial > told:
            told = hub.alerts_serial
            yield await alerts.at(evaluator, told)
        if not await hub.news_after(last, told, KEEP_ALIVE_SECONDS):
            yield b": still here\n\n"
            continue
        if hub.latest is not None and last == hub.latest.t - 1:
            events = [_event(hub.latest)]
        elif pool.is_full(reader):  # no refusal: the head of the answer has left
            await asyncio.sleep(BUSY_SECONDS)
            continue
        else:
            events = await pool.run(reader, read, last + 1)
        while events:  # what is sent is let go: a slow reader holds one event, not a page
            last, event = events.pop(0)
            yield event


def _event(release: StoredRelease) -> tuple[int, bytes]:
    """Return the id of a release's event, and the event."""
    return release.t, f"id: {release.t}\nevent: release\ndata: {release.line}\n\n".encode()


def _format(given: str | None, accept: str) -> str:
    if given is not None:
        if given not in MEDIA_TYPES:
            raise Mistake(
                Problem.PARAMETER, name="format", given=repr(given), expected=", ".join(MEDIA_TYPES)
            )
        return given
    wanted = dict(map(_preference, accept.lower().split(",")))
    return max(MEDIA_TYPES, key=lambda kind: wanted.get(MEDIA_TYPES[kind], 0.0))


def _preference(part: str) -> tuple[str, float]:
    """Return a media type of an Accept header and its quality value; 0 means not acceptable.

    >>> _preference("text/csv; q=0.5"), _preference(" text/csv"), _preference("text/csv;q=lots")
    (('text/csv', 0.5), ('text/csv', 1.0), ('text/csv', 0.0))
    """
    name, *parameters = (one.strip() for one in part.split(";"))
    given = next((one[2:] for one in parameters if one.startswith("q=")), "1")
    return name, float(given) if _QUALITY.fullmatch(given) else 0.0
