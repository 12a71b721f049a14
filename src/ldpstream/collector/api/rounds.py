"""The current rounds, which devices wait for."""

from __future__ import annotations

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from ldpstream.collector.api.limits import is_number
from ldpstream.collector.api.lookup import joined_stream
from ldpstream.collector.service.service import Service
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.limits import LARGEST_SERIAL, LONGEST_WAIT
from ldpstream.protocol.messages import DEVICE_HEADER
from ldpstream.protocol.names import device_number


class CurrentRounds:
    """The route of `ListRounds`, in plain Starlette, since devices poll it all the time."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def answer(self, request: Request) -> Response:
        given = request.query_params.get("after", "0")
        stream = joined_stream(request, request.path_params["stream"], given)
        was_public = stream.config.public
        after = _number(request, "after", 0, LARGEST_SERIAL)
        wait = _number(request, "wait", 0, LONGEST_WAIT)
        version = _number(request, "version", 1, len(stream.history.versions), least=1)
        place = None
        if stream.roster is not None:
            device = device_number(request.headers.get(DEVICE_HEADER))
            found = stream.roster.numbers_of(np.frombuffer(device, np.uint8).reshape(1, -1))
            place = int(found[0])
        announcement = await stream.hub.after(after, wait)
        if was_public and not stream.config.public:  # a reload has made it private meanwhile
            joined_stream(request, stream.config.name, given)
        body = announcement.body(self._service.clock.now_ms(), place, version)
        return Response(body, media_type="application/json")


def _number(request: Request, name: str, default: int, most: int, least: int = 0) -> int:
    text = request.query_params.get(name, str(default))
    if not is_number(text, most) or int(text) < least:
        expected = f"{least} to {most}"
        raise Mistake(Problem.PARAMETER, name=name, given=repr(text[:40]), expected=expected)
    return int(text)
