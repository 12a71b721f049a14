"""In-process requests to a collector's ASGI application, without a socket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from ldpstream.device.exchange import Request, Response

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


async def call(application: Application, request: Request) -> Response:
    """Carry a device's request to an ASGI application."""
    parts = urlsplit(request.path)
    scope: Message = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": parts.path,
        "raw_path": parts.path.encode(),
        "root_path": "",
        "query_string": parts.query.encode(),
        "headers": [
            (name.lower().encode(), value.encode()) for name, value in request.headers.items()
        ],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 80),
    }
    answer: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Message) -> None:
        answer.append(message)

    await application(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in answer[0]["headers"]}
    body = b"".join(part.get("body", b"") for part in answer[1:])
    return Response(answer[0]["status"], headers, body)
