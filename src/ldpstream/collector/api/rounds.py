"""What devices ask for: enrolment, and the current rounds."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ldpstream.collector.api.limits import AddressBuckets, TokenBucket, has_token, is_number
from ldpstream.collector.api.lookup import device_number, find_stream
from ldpstream.collector.service import Service
from ldpstream.collector.terms import PROTOCOL_VERSION
from ldpstream.errors import Mistake, Problem

LONGEST_WAIT_SECONDS = 30
LARGEST_SERIAL = (1 << 53) - 1
"""The largest serial that devices take: JavaScript holds no larger integer exactly."""


def enrolment(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1")
    limits, clock = service.config.limits, service.clock
    bucket = TokenBucket(limits.enrolments_per_second, clock)
    visitors = AddressBuckets(limits.public_enrolments_per_minute, clock, period_ms=60_000)

    def authorised(stream: str, request: Request) -> None:
        """By the token; or as a visitor, where the stream lets anyone take part."""
        if has_token(request, service.secrets.enrolment):
            return
        found = service.streams.get(stream)
        sent = request.headers.get("authorization")
        if sent is not None or found is None or not found.config.public_enrolment:
            raise Mistake(Problem.TOKEN, kind="enrolment")
        if not visitors.take(request.client.host if request.client else ""):
            raise Mistake(Problem.RATE_LIMITED, what="enrolments from one address", seconds=60)

    @router.post(
        "/streams/{stream}/devices",
        status_code=201,
        tags=["devices"],
        dependencies=[Depends(authorised)],
    )
    async def enrol(
        stream: str, device: Annotated[str, Body()], version: Annotated[Any, Body()] = None
    ) -> dict[str, Any]:
        """Enrol a device: the stream's terms, their pin, and the device's key.

        Needs the enrolment token, unless the stream has public enrolment. `version` is that of the
        protocol, 2. Enrolling again gives the same answer.
        """
        if not bucket.take():
            raise Mistake(Problem.RATE_LIMITED, what="enrolments", seconds=1)
        found = find_stream(service, stream)
        if type(version) is not int or version != PROTOCOL_VERSION:
            raise Mistake(Problem.DEVICE_VERSION)
        number = device_number(device)
        if found.roster is not None:
            await run_in_threadpool(service.store.enrol, stream, number)
        return {
            "terms": found.terms.to_json(),
            "pin": found.terms.pin,
            "key": found.desk.keys.of(number).hex(),
            "selection": found.config.selection,
            "now_ms": service.clock.now_ms(),
        }

    return router


class CurrentRounds:
    """GET /v1/streams/{stream}/rounds: plain Starlette, since devices come by all the time."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def answer(self, request: Request) -> Response:
        stream = find_stream(self._service, request.path_params["stream"])
        after = _number(request, "after", 0, LARGEST_SERIAL)
        wait = _number(request, "wait", 0, LONGEST_WAIT_SECONDS)
        place = None
        if stream.roster is not None:
            device = device_number(request.headers.get("ldp-device"))
            found = stream.roster.numbers_of(np.frombuffer(device, np.uint8).reshape(1, 16))
            place = int(found[0])
        announcement = await stream.board.after(after, wait)
        body = announcement.body(self._service.clock.now_ms(), place)
        return Response(body, media_type="application/json")


def _number(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, str(default))
    if not is_number(text, most):
        raise Mistake(Problem.PARAMETER, name=name, given=repr(text[:40]), expected=f"0 to {most}")
    return int(text)
