"""Sending a message to the webhook, one attempt per call, with the standard library's client."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ldpstream.errors import LdpStreamError, Mistake, Problem

TOKEN_VARIABLE = "LDPSTREAM_WEBHOOK_TOKEN"  # noqa: S105
PATIENCE_SECONDS = 5
MOST_READ = 64 << 10


class Undelivered(LdpStreamError):
    """The webhook did not answer; it may accept the message later."""


@dataclass(frozen=True)
class WebhookResponse:
    """The response of the webhook."""

    status: int
    reason: str
    body: str

    @property
    def final(self) -> bool:
        """Whether sending the same again is pointless: it was accepted, or refused for good."""
        return self.status < 500 and self.status not in (408, 425, 429)


def check_url(name: str, url: str) -> None:
    """Refuse a URL that cannot be posted to."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise Mistake(Problem.OPTION, option=name, given=repr(url), expected="an http(s) URL")


def post(url: str, content: dict[str, Any]) -> WebhookResponse:
    """Post a message and return the response, whatever its status is."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(
            host, port, timeout=PATIENCE_SECONDS, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS)
    headers = {"Content-Type": "application/json", "User-Agent": "ldpstream"}
    if token := os.environ.get(TOKEN_VARIABLE):
        headers["Authorization"] = f"Bearer {token}"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with closing(connection):
        try:
            connection.request("POST", path, json.dumps(content).encode(), headers)
            answer = connection.getresponse()
            body = answer.read(MOST_READ).decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            what = str(error) or type(error).__name__
            raise Undelivered(Problem.WEBHOOK, what=what) from error
    return WebhookResponse(answer.status, answer.reason, body)
