"""CORS: the other origins whose pages may use the routes of a stream.

Only devices' and readers' routes, and never with cookies. A private stream and an unknown name are
answered alike: by what any private stream allows.
"""

from __future__ import annotations

import re

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldpstream.collector.config.stream import ANY_ORIGIN
from ldpstream.collector.service.service import Service
from ldpstream.protocol.messages import (
    BATCH,
    DEVICE_HEADER,
    DEVICES,
    FEED,
    MAC_HEADER,
    PREFIX,
    RELEASES,
    REPORTS,
    ROUNDS,
    STATUS,
    STREAM,
    TERMS,
)

ROUTES = (STREAM, STATUS, FEED, RELEASES, DEVICES, TERMS, ROUNDS, REPORTS, BATCH)
REMEMBERED_SECONDS = 86_400
"""How long a browser need not ask again; most remember for two hours at most."""

_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, DELETE",
    "Access-Control-Allow-Headers": ", ".join(
        ("Authorization", "Content-Type", "Last-Event-ID", DEVICE_HEADER, MAC_HEADER)
    ),
    "Access-Control-Max-Age": str(REMEMBERED_SECONDS),
}
_PATHS = re.compile(
    "|".join(re.sub(r"\\{\w+\\}", "([^/]+)", re.escape(PREFIX + route)) for route in ROUTES)
)


class CrossOrigin:
    """An application around the API, which tells browsers what other origins may use."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream, origin = _asked(scope)
        if stream is None or origin is None:
            await self._app(scope, receive, send)
        elif _is_preflight(scope):
            headers = MutableHeaders({"Vary": "Origin", "Content-Length": "0"})
            if (told := self._told(stream, origin, succeeded=False)) is not None:
                headers.update({"Access-Control-Allow-Origin": told} | _PREFLIGHT)
            await send({"type": "http.response.start", "status": 204, "headers": headers.raw})
            await send({"type": "http.response.body", "body": b""})
        else:
            await self._app(scope, receive, self._telling(send, stream, origin))

    def _telling(self, send: Send, stream: str, origin: str) -> Send:
        """Return a `send` that adds CORS headers if a page of this origin may read the answer."""

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.add_vary_header("Origin")
                told = self._told(stream, origin, succeeded=message["status"] < 400)
                if told is not None:
                    headers["Access-Control-Allow-Origin"] = told
                    headers["Access-Control-Expose-Headers"] = "Retry-After"
            await send(message)

        return tell

    def _told(self, stream: str, origin: str, *, succeeded: bool) -> str | None:
        """Return the origin that may use the stream, as the header names it.

        A caller who has opened a private stream is told its origins; all others get one answer.
        """
        streams = {name: one.config for name, one in self._service.streams.items()}
        found = streams.get(stream)
        if found is not None and (found.public or succeeded):
            allowed = found.allowed_origins
        else:
            private = (one.allowed_origins for one in streams.values() if not one.public)
            allowed = frozenset[str]().union(*private)
        if ANY_ORIGIN in allowed:
            return ANY_ORIGIN
        return origin if origin in allowed else None


def _asked(scope: Scope) -> tuple[str | None, str | None]:
    """Return the stream and the origin of a request that another page's script may have made."""
    if scope["type"] != "http":
        return None, None
    origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
    found = None if origin is None else _PATHS.fullmatch(scope["path"])
    if found is None or origin is None:
        return None, None
    return next(group for group in found.groups() if group is not None), origin.decode("latin-1")


def _is_preflight(scope: Scope) -> bool:
    names = {name for name, _ in scope["headers"]}
    return scope["method"] == "OPTIONS" and b"access-control-request-method" in names
