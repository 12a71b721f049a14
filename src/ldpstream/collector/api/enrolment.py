"""Devices that enrol, renew their keys, fetch terms and leave."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ldpstream.collector.api.limits import AddressBuckets, TokenBucket, has_token, read_json
from ldpstream.collector.api.lookup import (
    described_stream,
    find_stream,
    left_stream,
    renewed_stream,
)
from ldpstream.collector.api.openapi import problems
from ldpstream.collector.config import Limits
from ldpstream.collector.credentials.enrolment_tokens import EnrolmentToken
from ldpstream.collector.service.service import Service
from ldpstream.collector.service.stream_service import StreamService
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.identity import number_of
from ldpstream.protocol.limits import VERSION
from ldpstream.protocol.messages import DEVICE_HEADER, DEVICES, PREFIX, TERMS
from ldpstream.protocol.names import device_number, shown_secret
from ldpstream.protocol.strata import is_level_name
from ldpstream.protocol.terms import PLAIN_FORMAT

_TAKES_A_DEVICE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "title": "Enrolment",
                    "required": ["secret", "version"],
                    "properties": {
                        "secret": {
                            "type": "string",
                            "description": "64 hex digits, from which its number follows",
                        },
                        "version": {"type": "integer", "const": VERSION},
                        "terms": {
                            "type": "integer",
                            "description": "the newest format of terms that the device reads",
                            "default": PLAIN_FORMAT,
                        },
                        "level": {
                            "type": "string",
                            "description": "a level of privacy; empty: the stream's own",
                            "default": "",
                        },
                    },
                }
            }
        },
    }
}


def enrolment(service: Service) -> APIRouter:
    router, devices = APIRouter(prefix=PREFIX), EnrolmentPolicy(service)

    @router.post(DEVICES, status_code=201, tags=["devices"], openapi_extra=_TAKES_A_DEVICE)
    async def enrol(stream: str, request: Request) -> dict[str, Any]:
        """Enrol a device: the stream's terms, their pin, the device's number, and its key.

        Needs an enrolment token, unless the stream has public enrolment. `version` is that of the
        protocol, 2. Enrolling again gives the same answer. With its number and a MAC in place of a
        token, a device renews its key; `slot_key` is there if slots come from another key. Terms
        are those in force; `successor` is the pin of those that follow them, if there are any.
        """
        if "authorization" not in request.headers and DEVICE_HEADER in request.headers:
            return await devices.renew(stream, request)
        return await devices.enrol(stream, request)

    @router.get(TERMS, tags=["devices"], responses=problems(404))
    async def read_terms(stream: str, pin: str, request: Request) -> dict[str, Any]:
        """One version of a stream's terms, by its pin.

        A private stream needs the MAC of a device's question, or a token that opens it.
        """
        found = described_stream(request, stream, pin)
        terms = found.history.with_pin(pin)
        if terms is None:
            raise Mistake(Problem.TERMS_UNKNOWN, stream=stream)
        return {"terms": terms.to_json(), "pin": pin} | found.notice(terms).to_json()

    @router.delete(DEVICES, tags=["devices"])
    async def leave(stream: str, request: Request) -> dict[str, str]:
        """Leave a stream: the device is not asked again.

        Needs its number and the MAC of its farewell. Leaving again gives the same answer.
        """
        found = left_stream(request, stream)
        if found.roster is not None:
            number = device_number(request.headers.get(DEVICE_HEADER))
            await run_in_threadpool(service.store.leave, stream, number)
        return {"status": "left"}

    return router


class EnrolmentPolicy:
    """The checks, rate limits and answers of enrolments and key renewals."""

    def __init__(self, service: Service) -> None:
        self._service = service
        limits, clock = service.config.limits, service.clock
        self._enrolments = TokenBucket(limits.enrolments_per_second, clock)
        self._renewals = TokenBucket(limits.enrolments_per_second, clock)
        per_minute = limits.public_enrolments_per_minute
        self._visitors = AddressBuckets(per_minute, clock, period_ms=60_000)
        service.uses_limits.append(self._use)

    def _use(self, limits: Limits) -> None:
        for one in (self._enrolments, self._renewals):
            one.use(limits.enrolments_per_second)
        self._visitors.use(limits.public_enrolments_per_minute)

    async def enrol(self, stream: str, request: Request) -> dict[str, Any]:
        """Let a device in."""
        administration = self._service.administration
        token = self._authorise(stream, request)
        if not self._enrolments.take():
            raise Mistake(Problem.RATE_LIMITED, what="enrolments", seconds=1)
        found = find_stream(self._service, stream)
        if found.config.retired:
            raise Mistake(Problem.STREAM_RETIRED, stream=stream)
        given = await read_json(request)
        version = given.get("version")
        if type(version) is not int or version != VERSION:
            raise Mistake(Problem.DEVICE_VERSION)
        number = number_of(shown_secret(given.get("secret")))
        self._refuse_denied(stream, number)
        level = _level(found, given)
        if token is not None:
            await run_in_threadpool(administration.use_token, token, stream, number, level)
        if found.roster is not None:
            await run_in_threadpool(self._service.store.enrol, stream, number)
        return _answer(found, number, level)

    async def renew(self, stream: str, request: Request) -> dict[str, Any]:
        """Give a device a key of the current master secret, for one that is still valid.

        It sends its secret again: whoever has stolen a master secret knows keys, but not that.
        """
        given = await read_json(request)
        level = given.get("level", "")
        level = level if is_level_name(level) else ""
        found = renewed_stream(request, stream, level)
        number = number_of(shown_secret(given.get("secret")))
        if number.hex() != request.headers.get(DEVICE_HEADER, "").lower():
            raise Mistake(Problem.REPORT_MAC)
        self._refuse_denied(stream, number)
        if not self._renewals.take():
            raise Mistake(Problem.RATE_LIMITED, what="renewals", seconds=1)
        found.renewed += 1
        return _answer(found, number, level)

    def _authorise(self, stream: str, request: Request) -> EnrolmentToken | None:
        """Let in a device that has a token, or any device if enrolment is public.

        Return the token if its uses are counted.
        """
        if has_token(request, self._service.secrets.enrolment):
            return None
        found = self._service.streams.get(stream)
        sent = request.headers.get("authorization")
        token = (sent or "").removeprefix("Bearer ")
        counted = self._service.administration.find_token(token, stream)
        if counted is not None:
            return counted
        if sent is not None or found is None or not found.config.public_enrolment:
            raise Mistake(Problem.TOKEN, kind="enrolment")
        if not self._visitors.take(request.client.host if request.client else ""):
            raise Mistake(Problem.RATE_LIMITED, what="enrolments from one address", seconds=60)
        return None

    def _refuse_denied(self, stream: str, number: bytes) -> None:
        if number in self._service.administration.denied(stream):
            raise Mistake(Problem.DEVICE_DENIED)


def _answer(found: StreamService, number: bytes, level: str) -> dict[str, Any]:
    terms = found.terms
    return {
        "terms": terms.to_json(),
        "pin": terms.pin,
        "device": number.hex(),
        **found.intake.keys.at_level(level).issued(number),
        **found.notice(terms).to_json(),
    }


def _level(stream: StreamService, given: dict[str, Any]) -> str:
    """Return the level that a device chooses; refuse one that cannot read the stream's terms."""
    terms, newest, level = stream.terms, given.get("terms", PLAIN_FORMAT), given.get("level", "")
    if type(newest) is not int or newest < terms.format:
        raise Mistake(Problem.TERMS_FORMAT, given=newest, needed=terms.format)
    if not isinstance(level, str):
        raise Mistake(Problem.PARAMETER, name="level", given="not usable", expected="a text")
    return terms.at_level(level).level
