"""Refusals as RFC 9457 problem bodies, in the words of the catalogue."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ldpstream.collector.intake.queue import RETRY_SECONDS
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.protocol.notice import Notice

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:ldpstream:problem:"

_log = logging.getLogger(__name__)

STATUSES = {
    Problem.STREAM_UNKNOWN: 404,
    Problem.ROUND_UNKNOWN: 404,
    Problem.ALERT_RULE_UNKNOWN: 404,
    Problem.NOT_FOUND: 404,
    Problem.METHOD: 405,
    Problem.EXTRA_MISSING: 406,
    Problem.TERMS_UNKNOWN: 404,
    Problem.ROUND_CLOSED: 410,
    Problem.TERMS_ENDED: 410,
    Problem.STREAM_PAUSED: 410,
    Problem.STREAM_RETIRED: 410,
    Problem.PAUSED_BY_FILE: 409,
    Problem.ROUND_EARLY: 425,
    Problem.REPORT_CONFLICT: 409,
    Problem.ALERT_RULE_EXISTS: 409,
    Problem.ALERT_RULE_FIXED: 409,
    Problem.REPORT_MAC: 401,
    Problem.REPORT_NOT_ASKED: 403,
    Problem.DEVICE_VERSION: 403,
    Problem.TERMS_FORMAT: 403,
    Problem.DEVICE_DENIED: 403,
    Problem.KEY_ENDED: 401,
    Problem.TOKEN: 401,
    Problem.TOKEN_ENDED: 403,
    Problem.TOKEN_EXISTS: 409,
    Problem.TOKEN_UNKNOWN: 404,
    Problem.ROTATION_UNDER_WAY: 409,
    Problem.NOTHING_TO_DROP: 409,
    Problem.DEVICES_LEFT: 409,
    Problem.MASTER_IN_ENVIRONMENT: 409,
    Problem.TOO_LARGE: 413,
    Problem.HEAD_TOO_LARGE: 431,
    Problem.RATE_LIMITED: 429,
    Problem.INTERNAL: 500,
    Problem.UNAVAILABLE: 503,
    Problem.LEASE_LOST: 503,
}
"""The HTTP status of each error; all others are 400."""


RENEW = "ldpstream.renew"
"""In the scope of a request: whether its report was signed with a key that is to be renewed."""


def problem_response(error: LdpStreamError, notice: Notice = Notice()) -> Response:  # noqa: B008
    """Return the answer to an error: its status, headers and problem body.

    The answer to a report carries a notice, which the device must receive.
    """
    problem = error.problem
    status = STATUSES.get(problem, 400)
    body: dict[str, Any] = {
        "type": TYPE_PREFIX + problem.code,
        "title": problem.code.replace("-", " "),
        "status": status,
        "detail": str(error),
        **notice.to_json(),
    }
    headers = {}
    if "seconds" in error.facts or status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(error.facts.get("seconds", RETRY_SECONDS))
    if problem is Problem.TOKEN:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(json.dumps(body), status, headers, MEDIA_TYPE)


def problem_bytes(error: LdpStreamError) -> bytes:
    """Return a whole answer, for a connection that is closed after it."""
    response = problem_response(error)
    status = HTTPStatus(response.status_code)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
    lines += [b"%b: %b" % header for header in response.raw_headers]
    return b"\r\n".join([*lines, b"connection: close", b"", bytes(response.body)])


async def on_error(request: Request, error: Exception) -> Response:
    """Answer with an error of this package that a route has raised."""
    assert isinstance(error, LdpStreamError)
    service = request.app.state.service.streams.get(request.path_params.get("stream"))
    # A private stream that is refused as unknown is counted like an unknown one: nowhere.
    if service is not None and error.problem is not Problem.STREAM_UNKNOWN:
        reports = "round" in request.path_params
        (service.refused if reports else service.refused_requests)[error.problem] += 1
    return refusal_of(request, error)


def refusal_of(request: Request, error: LdpStreamError) -> Response:
    """Return the answer to a request that is refused; to a report it carries a notice.

    Unknown and private streams get no notice: their answers are the same to the byte.
    """
    round_name, stream = request.path_params.get("round"), request.path_params.get("stream")
    found = request.app.state.service.streams.get(stream)
    if round_name is None or found is None or error.problem is Problem.STREAM_UNKNOWN:
        return problem_response(error)
    terms = found.history.stratum(round_name)
    return problem_response(error, found.notice(terms, renew=request.scope.get(RENEW, False)))


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer what the framework itself refuses: an unknown path or method, or invalid JSON."""
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, LdpStreamError):  # ours, which reading the body has raised
        return await on_error(request, error.__cause__)
    if error.status_code == 400:
        expected = "JSON in UTF-8, with little nesting"
        return problem_response(
            Mistake(Problem.PARAMETER, name="the body", given="not usable", expected=expected)
        )
    if error.status_code == 405:
        return problem_response(Mistake(Problem.METHOD, given=request.method))
    return problem_response(Mistake(Problem.NOT_FOUND, given=request.url.path))


async def on_store_failure(request: Request, error: Exception) -> Response:
    """Answer that the store could not make a change: the disk is full, or broken."""
    _log.error("a change could not be stored", exc_info=error)
    return await on_error(request, Mistake(Problem.UNAVAILABLE, seconds=RETRY_SECONDS))


async def on_anything_else(request: Request, error: Exception) -> Response:
    """Answer after a bug in this package, which the server logs."""
    return problem_response(LdpStreamError(Problem.INTERNAL))


async def on_invalid(request: Request, error: Exception) -> Response:
    """Answer that a parameter or a body is not what the route declares."""
    first: dict[str, Any] = error.errors()[0]  # type: ignore[attr-defined]
    # Of what is no JSON it names the position, which would read like a value.
    name = ".".join(part for part in first["loc"][1:] if isinstance(part, str)) or "the body"
    refusal = Mistake(
        Problem.PARAMETER, name=name, given="not usable", expected=f"a valid one ({first['msg']})"
    )
    return problem_response(refusal)
