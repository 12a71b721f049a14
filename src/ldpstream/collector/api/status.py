"""How the collector and its streams are doing."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from ldpstream.collector.api.ingest import summary
from ldpstream.collector.api.lookup import check_admin, may_read, readable_stream
from ldpstream.collector.service.condition import StreamCondition, StreamState
from ldpstream.collector.service.service import Service
from ldpstream.collector.service.stream_service import StreamService
from ldpstream.errors import Problem
from ldpstream.protocol.history import first_t
from ldpstream.protocol.messages import ADMIN, PREFIX, STATUS, STREAM, STREAMS
from ldpstream.protocol.promise import promises
from ldpstream.protocol.strata import STANDARD
from ldpstream.protocol.terms import Terms


def status(service: Service) -> APIRouter:
    router = APIRouter(prefix=PREFIX, tags=["status"])

    # These two wait for no thread, which others may keep waiting for the store.

    @router.get("/health")
    async def health() -> dict[str, str]:
        """The process answers."""
        return {"status": "alive"}

    @router.get("/ready")
    async def ready(request: Request) -> JSONResponse:
        """No stream is failing or behind, and the clock is right; otherwise 503, with the reasons.

        With `for=reports` a stream may be behind: reports are taken while an engine is late, so a
        collector must not be taken out of service for that. Reasons are given for the streams that
        whoever asks may read.
        """
        for_reports = request.query_params.get("for") == "reports"
        ready = service.takes_reports if for_reports else service.ready
        doubt = service.clock.doubt
        known = {name: one for name, one in service.conditions() if may_read(request, name)}
        told = {
            "status": "ready" if ready else "not ready",
            "failures": {name: one.why for name, one in known.items() if one.state.is_broken},
            "states": {name: one.state.value for name, one in known.items()},
            "clock": doubt and doubt.sentence,
        }
        return JSONResponse(told, 200 if ready else 503)

    @router.get(STREAMS)
    def list_streams() -> dict[str, list[dict[str, Any]]]:
        """The public streams: their terms and pins."""
        public = [stream for stream in service.streams.values() if stream.config.public]
        return {"streams": [_description(service, stream) for stream in public]}

    @router.get(STREAM)
    def describe_stream(stream: str, request: Request) -> dict[str, Any]:
        """A stream's terms, their pin, and how devices are selected."""
        return _description(service, readable_stream(request, stream))

    @router.get(STATUS)
    def stream_status(stream: str, request: Request) -> dict[str, Any]:
        """What the stream is doing, what it waits for, and what it has refused, by reason.

        `refused` counts reports, `refused_requests` enrolments and all other requests.
        """
        return _status(service, readable_stream(request, stream))

    @router.get(f"{ADMIN}/status", tags=["admin"])
    def collector_status(request: Request) -> dict[str, Any]:
        """The whole collector: queues, rosters, failures. Needs the admin token."""
        check_admin(request)
        failures = service.failures
        return {
            "ready": service.ready,
            "now_ms": service.clock.now_ms(),
            "reports_waiting": service.intake.waiting,
            "streams": {
                name: _status(service, stream)
                | {
                    "roster": None if stream.roster is None else len(stream.roster),
                    "conducting": service.held(name) is not None,
                    "failure": failures.get(name),
                }
                for name, stream in service.streams.items()
            },
        }

    return router


_ENDS = ("expected_low", "expected_high")


def _description(service: Service, stream: StreamService) -> dict[str, Any]:
    terms, latest = stream.terms, stream.hub.latest
    devices = {} if latest is None else latest.content.get("devices", {})
    return {
        **service.condition(stream.config.name).to_json(),
        "terms": terms.to_json(),
        "pin": terms.pin,
        "selection": stream.config.selection.value,
        "mechanism": stream.config.mechanism,
        "population": stream.population,
        "population_follows": stream.config.follows_fleet,
        "population_interval": [devices[end] for end in _ENDS if end in devices] or None,
        "thresholds": dict(stream.config.thresholds),
        "promises": [one.to_json() for one in promises(terms)],
        "attributes": [] if terms.attributes is None else terms.attributes.to_json(),
        "enrolment": "public" if stream.config.public_enrolment else "token",
        "versions": [_version(stream, terms) for terms in stream.history.versions],
    }


def _version(stream: StreamService, terms: Terms) -> dict[str, Any]:
    """Return what readers are told about one version of a stream's terms and its levels."""
    return {
        "version": terms.version,
        "pin": terms.pin,
        "from_t": first_t(terms),
        "until_t": stream.history.last_t(terms),
        "labels": terms.names,
        "called": None if terms.succeeds is None else terms.succeeds.labels,
        "levels": [
            {
                "name": one.level or STANDARD,
                "epsilon_nano": one.epsilon_nano,
                "window": one.window,
                "oracle": one.oracle.value,
            }
            for one in terms.strata
        ],
    }


def _status(service: Service, stream: StreamService) -> dict[str, Any]:
    now, doubt, hub = service.clock.now_ms(), service.clock.doubt, stream.hub
    rounds = [
        one.to_json()
        | {
            "asked": one.stored.users if one.asked is None else len(one.asked),
            "received": service.store.received(one.stream, one.name),
        }
        for one in hub.announcement.rounds
    ]
    condition = service.condition(stream.config.name)
    doing = _doing(stream, rounds, now, condition)
    seen = summary(stream.intake.outcomes)
    return {
        "stream": stream.config.name,
        **condition.to_json(),
        "engine": stream.engine and vars(stream.engine),
        "now_ms": now,
        "clock_ahead_ms": 0 if doubt is None else doubt.ahead_ms,
        "t": stream.terms.timestamp_at(now),
        "terms_version": stream.terms.version,
        "last_release": hub.last_t,
        "doing": doing if doubt is None else f"{doing}; but {doubt.sentence}",
        "rounds": rounds,
        "suspect": [] if hub.latest is None else hub.latest.content.get("suspect", []),
        **seen,
        "refused": _by_code(stream.refused) + Counter(seen["refused"]),
        "refused_requests": _by_code(stream.refused_requests),
    }


def _by_code(problems: Counter[Problem]) -> Counter[str]:
    return Counter({problem.code: number for problem, number in problems.items()})


def _doing(
    stream: StreamService, rounds: list[dict[str, Any]], now: int, condition: StreamCondition
) -> str:
    """Return, in a sentence, what the stream is waiting for."""
    if condition.state is StreamState.FAILING:
        return f"unable to go on: {condition.why}"
    if (
        condition.state in (StreamState.BEHIND, StreamState.PAUSED, StreamState.RETIRED)
        and not rounds
    ):
        return f"{condition.state}: {condition.why}"
    if rounds:
        one = rounds[0]
        left = max(one["deadline_ms"] - now, 0) / 1000
        return (
            f"waiting for reports of round {one['round']}: {one['received']} of {one['asked']}"
            f" received, closes in {left:.1f} s"
        )
    begins = (stream.terms.start_of(stream.hub.last_t + 1) - now) / 1000
    if begins <= 0:
        return "working on the next timestamp"
    return f"waiting for timestamp {stream.hub.last_t + 1}, which begins in {begins:.1f} s"
