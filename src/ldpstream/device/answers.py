"""Reading what a collector answers. Nothing in it is trusted, not even to be JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from ldpstream.device.exchange import Response
from ldpstream.device.rounds import Refused
from ldpstream.errors import Problem
from ldpstream.protocol.names import shown

LONGEST_RETRY_SECONDS = 3600.0
LARGEST_SHORT = 1 << 17
"""Bytes of any answer but an enrolment's: 64 rounds fit."""


def read_object(response: Response, what: str, most: int = LARGEST_SHORT) -> dict[str, Any]:
    """Return the JSON object in a body of so many bytes: parsed, it is many times larger."""
    try:
        answer = json.loads(response.body) if len(response.body) <= most else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise Refused(Problem.ANSWER_MALFORMED, what=what, given=shown(response.body[:80]))
    return answer


def read_key(sent: object) -> bytes:
    """A device's key, from 64 hex digits."""
    try:
        key = bytes.fromhex(sent) if isinstance(sent, str) else b""
    except ValueError:
        key = b""
    if len(key) != 32:
        raise Refused(Problem.ANSWER_MALFORMED, what="key", given="not 64 hex digits")
    return key


def refusal_in(response: Response, what: str) -> Refused:
    """What a problem body (RFC 9457) says, as an error of this device's."""
    try:
        body = json.loads(response.body[:LARGEST_SHORT])
        # A type is a URI, by whichever scheme, that ends in the code.
        code, detail = re.split("[/:#]", str(body["type"]))[-1], str(body.get("detail", ""))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        code, detail = "", ""
    return Refused(
        Problem.COLLECTOR_REFUSED,
        what=what,
        status=response.status,
        code=shown(code).strip("'"),
        detail=shown(detail).strip("'") or "see the collector's log",
        retry_after=retry_after(response),
    )


def retry_after(response: Response) -> float:
    """Seconds to wait, if the collector asked for them in numbers."""
    seconds = response.headers.get("retry-after", "")
    return min(float(seconds), LONGEST_RETRY_SECONDS) if seconds.isdecimal() else 0.0
