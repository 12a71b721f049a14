"""Change points and alerts of a stream as annotations, with the columns that Grafana reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request

from ldpstream.collector.alerts.evaluator import AlertEvaluator
from ldpstream.collector.alerts.evidence import LevelChange
from ldpstream.collector.alerts.state import AlertState
from ldpstream.collector.api.limits import ReaderPool, sender_of
from ldpstream.collector.api.lookup import readable_stream
from ldpstream.collector.api.openapi import problems
from ldpstream.collector.releases.paging import at_once
from ldpstream.collector.service.service import Service
from ldpstream.collector.service.stream_service import StreamService
from ldpstream.protocol.limits import LATEST_MS
from ldpstream.protocol.messages import ANNOTATIONS, PREFIX
from ldpstream.protocol.terms import Terms


@dataclass(frozen=True)
class Annotation:
    """A mark on a time axis, with the columns of Grafana's Infinity data source."""

    time: int
    """Milliseconds since the epoch."""
    timeEnd: int  # noqa: N815 - Grafana spells it so
    """The end of a range, or its beginning if it has not ended yet."""
    title: str
    text: str
    tags: str
    """Separated by commas."""


def annotation_routes(service: Service) -> APIRouter:
    router = APIRouter(prefix=PREFIX, tags=["releases"])
    pool = ReaderPool()

    @router.get(ANNOTATIONS, responses=problems(401, 404))
    async def list_annotations(
        stream: str,
        request: Request,
        begin: Annotated[
            int, Query(alias="from", ge=0, le=LATEST_MS, description="milliseconds")
        ] = 0,
        end: Annotated[
            int, Query(alias="to", ge=0, le=LATEST_MS, description="milliseconds")
        ] = LATEST_MS,
    ) -> list[dict[str, Any]]:
        """Change points and alerts of a time span, in order: what Grafana's Infinity reads.

        Change points are those of the latest timestamps of the span, as many as one answer of
        `/changes` has; they span the moments at which they may have been.
        """
        found = readable_stream(request, stream)
        most = at_once(found.figures, service.config.limits.releases)

        def read() -> list[Annotation]:
            changes = _changes(found, begin, end, most)
            marks = [_of_change(one, found.history.first) for one in changes]
            return marks + list(_of_alerts(service.evaluators[stream], begin, end))

        marks = await pool.run(sender_of(request.scope), read)
        return [asdict(one) for one in sorted(marks, key=lambda one: one.time)]

    return router


def _changes(stream: StreamService, begin: int, end: int, most: int) -> tuple[LevelChange, ...]:
    if not stream.config.has_changes:
        return ()
    terms, last_t = stream.history.first, stream.hub.last_t
    last = min(terms.timestamp_at(end), last_t)
    first = max(terms.timestamp_at(begin), last - most + 1, 1)
    return stream.revised.between(first, last).changes if first <= last else ()


def _of_change(change: LevelChange, terms: Terms) -> Annotation:
    return Annotation(
        time=terms.start_of(change.first_t),
        timeEnd=terms.start_of(change.last_t),
        title=f"{change.label} changed by {change.size:+.4g}",
        text=f"{change.low:+.4g} to {change.high:+.4g}, most likely at t={change.t}",
        tags="ldpstream,change",
    )


def _of_alerts(evaluator: AlertEvaluator, begin: int, end: int) -> Iterator[Annotation]:
    """Yield the alerts that were firing within a span, each with its end if it was resolved."""
    ended: dict[str, int] = {}
    for change in reversed(evaluator.history):
        if change["state"] == AlertState.RESOLVED:
            ended[change["id"]] = change["at_ms"]
        elif change["at_ms"] <= end and begin <= ended.get(change["id"], begin):
            over = ended.get(change["id"])
            text = "still firing" if over is None else "resolved at the end of the range"
            label = "" if change["label"] is None else f" ({change['label']})"
            yield Annotation(
                time=change["at_ms"],
                timeEnd=change["at_ms"] if over is None else over,
                title=f"{change['name']}{label}",
                text=f"fired at t={change['t']}, {text}",
                tags="ldpstream,alert",
            )
        if change["state"] == AlertState.FIRING:
            ended.pop(change["id"], None)
