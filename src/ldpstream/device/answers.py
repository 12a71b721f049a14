"""Parsing of a collector's answers. Nothing in them is trusted, not even that they are JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from ldpstream.device.exchange import Response
from ldpstream.errors import Problem
from ldpstream.protocol.answers import Refused
from ldpstream.protocol.limits import KEY_BYTES
from ldpstream.protocol.names import printable, shown
from ldpstream.protocol.notice import Notice

LONGEST_RETRY_SECONDS = 3600.0
LONGEST_DETAIL = 300
"""The most characters of a refusal that are shown: it says what to do at its end."""
LARGEST_SHORT = 1 << 17
"""The most bytes of any answer except that of an enrolment: 64 rounds fit."""


def read_object(response: Response, what: str, most: int = LARGEST_SHORT) -> dict[str, Any]:
    """Return the JSON object in a body of at most `most` bytes: parsed, it is far larger."""
    try:
        answer = json.loads(response.body) if len(response.body) <= most else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise Refused(Problem.ANSWER_MALFORMED, what=what, given=shown(response.body[:8]))
    return answer


def notice_in(response: Response) -> Notice:
    """Return the notice in an answer, which every answer to a report should have."""
    try:
        return Notice.read(read_object(response, "notice"))
    except Refused:
        return Notice()


def read_keys(answer: dict[str, Any], number: bytes) -> tuple[bytes, bytes]:
    """Return the key and the slot key that the device with this number is given."""
    if answer.get("device") != number.hex():
        given = shown(answer.get("device"))
        raise Refused(Problem.ANSWER_MALFORMED, what="device", given=given)
    key = read_key(answer.get("key"))
    return key, read_key(answer["slot_key"]) if "slot_key" in answer else key


def read_key(sent: object) -> bytes:
    """Return a device's key from its 64 hex digits."""
    try:
        key = bytes.fromhex(sent) if isinstance(sent, str) else b""
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise Refused(Problem.ANSWER_MALFORMED, what="key", given=f"not {2 * KEY_BYTES} hex digits")
    return key


def refusal_in(response: Response, what: str) -> Refused:
    """Return the error that a problem body (RFC 9457) describes."""
    try:
        body = json.loads(response.body[:LARGEST_SHORT])
        # A type is a URI of any scheme that ends in the error code.
        code, detail = re.split("[/:#]", str(body["type"]))[-1], str(body.get("detail", ""))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        code, detail = "", ""
    return Refused(
        Problem.COLLECTOR_REFUSED,
        what=what,
        status=response.status,
        code=shown(code).strip("'"),
        detail=printable(detail, LONGEST_DETAIL) or "see the collector's log",
        retry_after=retry_after(response),
    )


def retry_after(response: Response) -> float:
    """Return the seconds that the Retry-After header asks for; 0 if it gives no number."""
    seconds = response.headers.get("retry-after", "")
    return min(float(seconds), LONGEST_RETRY_SECONDS) if seconds.isdecimal() else 0.0
