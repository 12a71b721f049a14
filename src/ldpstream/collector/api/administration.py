"""The admin API: keys, tokens, denials, silences, pauses, reloads, and their log."""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ldpstream.collector.api.limits import is_number, read_json
from ldpstream.collector.api.lookup import check_admin, find_stream
from ldpstream.collector.api.openapi import problems
from ldpstream.collector.service.service import Service
from ldpstream.durations import EXAMPLES, milliseconds
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.limits import LATEST_MS
from ldpstream.protocol.messages import ADMIN, PREFIX, STREAM
from ldpstream.protocol.names import device_number, whole

KEYS = f"{ADMIN}/keys"
TOKENS = f"{ADMIN}/tokens"
DENIED = f"{ADMIN}/denied"
SILENCES = f"{ADMIN}/silences"
LOG = f"{ADMIN}/log"
RELOAD = f"{ADMIN}/reload"
CLI_AGENT = "ldpstream-cli"
"""The User-Agent of our own commands, which the log tells from other users of the API."""
MOST_DENIED = 400
"""Devices in one request: what a body of JSON holds."""
MOST_ENTRIES = 1000

_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def administration(service: Service) -> APIRouter:
    router = APIRouter(prefix=PREFIX, tags=["admin"], dependencies=[Depends(check_admin)])
    for routes in (_keys, _tokens, _denied, _silences, _operation, _log):
        router.include_router(routes(service))
    return router


def _keys(service: Service) -> APIRouter:
    router, known = APIRouter(), service.administration

    def shown() -> dict[str, Any]:
        return known.keys() | {"reports_with_earlier_keys": service.reports_with_earlier_keys()}

    @router.get(KEYS, responses=problems(401))
    def keys() -> dict[str, Any]:
        """The master secrets by name, and the reports of the last window with earlier keys.

        Those are counted by this collector, since its start; null: for less than a window.
        """
        return shown()

    @router.post(f"{KEYS}/prepare", responses=problems(401, 409))
    def prepare(request: Request) -> dict[str, Any]:
        """Generate the next master secret, in a file beside the present one. It is not used yet."""
        return known.prepare(_who(request))

    @router.post(f"{KEYS}/rotate", responses=problems(401, 409))
    def rotate(request: Request, at_once: bool = False) -> dict[str, Any]:
        """Make the next master secret the current one; generate it if that was not done.

        Keys of the previous one stay valid until it is dropped; their devices are told to
        renew them. With `at_once` all keys end, and every device must enrol again: for a secret
        that was stolen.
        """
        known.rotate(_who(request), at_once=at_once)
        return shown()

    @router.post(f"{KEYS}/drop", responses=problems(401, 409))
    def drop(request: Request, anyway: bool = False) -> dict[str, Any]:
        """Invalidate the keys of the earlier master secret.

        Refused while devices use them, unless `anyway` is given: these must enrol again.
        """
        if not anyway and known.ring.masters.valid:
            left = service.reports_with_earlier_keys()
            for stream, number in left.items():
                if number is None:
                    what = f"a window of stream {stream} has not passed since the last start"
                    raise Mistake(Problem.DEVICES_LEFT, what=f"{what}, or the rotation")
                if number:
                    what = f"{number} reports to stream {stream} in the last window had such a key"
                    raise Mistake(Problem.DEVICES_LEFT, what=what)
        known.drop(_who(request))
        return shown()

    return router


def _tokens(service: Service) -> APIRouter:
    router, known = APIRouter(), service.administration

    @router.get(TOKENS, responses=problems(401))
    def list_tokens() -> dict[str, Any]:
        """All enrolment tokens with their uses, including those that have ended."""
        return {"tokens": [one.to_json() for one in known.tokens()]}

    @router.post(TOKENS, status_code=201, responses=problems(400, 401, 404, 409))
    async def create_token(request: Request) -> dict[str, Any]:
        """Create an enrolment token, which is shown only this once.

        `name`; and if wanted `stream`, `expires_in` (such as 30d) and `most_uses`.
        """
        given = await read_json(request)
        stream = given.get("stream")
        if stream is not None:
            stream = find_stream(service, str(stream)).config.name
        wanted = _name(given.get("name")), stream, _length(given), _uses(given)
        token, made = await run_in_threadpool(known.create_token, _who(request), *wanted)
        return made.to_json() | {"token": token}

    @router.delete(f"{TOKENS}/{{name}}", status_code=204, responses=problems(401, 404))
    def revoke_token(name: str, request: Request) -> None:
        """Revoke a token: nobody can enrol with it any more; devices that have enrolled stay."""
        known.revoke_token(_who(request), name)

    return router


def _denied(service: Service) -> APIRouter:
    router, known = APIRouter(), service.administration

    def listed(stream: str) -> dict[str, Any]:
        return {"stream": stream, "devices": known.listed(stream)}

    @router.get(f"{DENIED}/{{stream}}", responses=problems(401, 404))
    def list_denied(stream: str) -> dict[str, Any]:
        """The numbers of the devices that a stream denies."""
        return listed(find_stream(service, stream).config.name)

    @router.post(f"{DENIED}/{{stream}}", responses=problems(400, 401, 404))
    async def deny(stream: str, request: Request) -> dict[str, Any]:
        """Refuse the reports, enrolments and renewals of `devices`, a list of numbers."""
        find_stream(service, stream)
        devices = _devices((await read_json(request)).get("devices"))
        await run_in_threadpool(known.deny, _who(request), stream, devices)
        return await run_in_threadpool(listed, stream)

    @router.delete(f"{DENIED}/{{stream}}/{{device}}", responses=problems(400, 401, 404))
    def allow(stream: str, device: str, request: Request) -> dict[str, Any]:
        """Take a device off the deny list."""
        find_stream(service, stream)
        known.allow(_who(request), stream, [device_number(device)])
        return listed(stream)

    return router


def _operation(service: Service) -> APIRouter:
    router = APIRouter()

    @router.post(f"{ADMIN}{STREAM}/pause", responses=problems(401, 404))
    def pause(stream: str, request: Request) -> dict[str, Any]:
        """Open no more rounds of a stream, until it is resumed; what is open is ended."""
        return halted(stream, request, paused=True)

    @router.post(f"{ADMIN}{STREAM}/resume", responses=problems(401, 404, 409))
    def resume(stream: str, request: Request) -> dict[str, Any]:
        """Open rounds again. Refused if the configuration file pauses the stream."""
        return halted(stream, request, paused=False)

    def halted(stream: str, request: Request, *, paused: bool) -> dict[str, Any]:
        name = find_stream(service, stream).config.name
        service.pause(_who(request), name, paused=paused)
        return {"stream": name, **service.condition(name).to_json()}

    @router.post(RELOAD, responses=problems(400, 401))
    def reload(request: Request) -> dict[str, Any]:
        """Read the configuration file again, and use what can be changed: all of it or nothing.

        `changes` says what has changed, `stays` what cannot while the collector runs, and `refused`
        why nothing was changed, if so.
        """
        return service.reload(_who(request)).to_json()

    return router


def _silences(service: Service) -> APIRouter:
    router, known = APIRouter(), service.administration

    def listed(stream: str) -> dict[str, Any]:
        evaluator = service.evaluators[stream]
        rules = [
            {
                "id": rule.fingerprint,
                "name": rule.name,
                "label": rule.label,
                "silenced_until_ms": evaluator.silence_of(rule),
            }
            for rule in service.rulebooks[stream].rules
        ]
        return {"stream": stream, "rules": rules}

    @router.get(f"{SILENCES}/{{stream}}", responses=problems(401, 404))
    def list_silences(stream: str) -> dict[str, Any]:
        """The alert rules of a stream, and until when each is silenced, or null."""
        return listed(find_stream(service, stream).config.name)

    @router.post(f"{SILENCES}/{{stream}}", responses=problems(400, 401, 404))
    async def silence(stream: str, request: Request) -> dict[str, Any]:
        """Silence `rule`, an id, `for` a time such as 2h from now on.

        Its alert goes on; how it stands then is sent when the silence ends.
        """
        find_stream(service, stream)
        given = await read_json(request)
        rule, length = service.rulebooks[stream].find(str(given.get("rule"))), _length(given, "for")
        if length is None:
            raise _unusable("for", None, EXAMPLES)
        await run_in_threadpool(known.silence, _who(request), stream, rule, length)
        service.silences_changed(stream)
        return listed(stream)

    @router.delete(f"{SILENCES}/{{stream}}/{{rule_id}}", responses=problems(401, 404))
    def end_silence(stream: str, rule_id: str, request: Request) -> dict[str, Any]:
        """End the silence of a rule."""
        find_stream(service, stream)
        known.end_silence(_who(request), stream, service.rulebooks[stream].find(rule_id))
        service.silences_changed(stream)
        return listed(stream)

    return router


def _log(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get(LOG, responses=problems(400, 401))
    def log(request: Request) -> dict[str, Any]:
        """The log of what administrators did, after entry `after`, at most `limit` entries."""
        query = request.query_params
        after, limit = query.get("after", "0"), query.get("limit", str(MOST_ENTRIES))
        if not is_number(after, LATEST_MS) or not is_number(limit, MOST_ENTRIES):
            expected = f"numbers, and at most {MOST_ENTRIES} entries"
            given = repr((after[:40], limit[:40]))
            raise Mistake(Problem.PARAMETER, name="after, limit", given=given, expected=expected)
        entries = service.administration.log(int(after), int(limit))
        return {"entries": [one.to_json() for one in entries]}

    return router


def _who(request: Request) -> str:
    """Return who does something, as the log has it."""
    by_command = request.headers.get("user-agent", "").startswith(CLI_AGENT)
    return f"admin token, {'command line' if by_command else 'API'}"


def _name(given: object) -> str:
    if not isinstance(given, str) or _NAME.fullmatch(given) is None:
        expected = "1 to 64 letters, digits, dots, hyphens and underscores"
        raise _unusable("name", given, expected)
    return given


def _length(given: dict[str, Any], name: str = "expires_in") -> int | None:
    text = given.get(name)
    length = milliseconds(text) if isinstance(text, str) else None
    if text is not None and not (length and length <= LATEST_MS):
        raise _unusable(name, text, EXAMPLES)
    return length


def _uses(given: dict[str, Any]) -> int | None:
    number: int | None = given.get("most_uses")
    if number is not None and not whole(number, 1, LATEST_MS):
        raise _unusable("most_uses", number, "a whole number, 1 or more")
    return number


def _devices(given: object) -> list[bytes]:
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_DENIED:
        raise _unusable("devices", given, f"a list of 1 to {MOST_DENIED} device numbers")
    return [device_number(one if isinstance(one, str) else None) for one in given]


def _unusable(name: str, given: object, expected: str) -> Mistake:
    return Mistake(Problem.PARAMETER, name=name, given=repr(given)[:40], expected=expected)
