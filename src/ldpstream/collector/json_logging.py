"""The one form of log lines: a JSON object each, without device ids, values or tokens.

What is logged is chosen at each call. This is a second line of defence: of an error only what
cannot hold a client's data is written, and long runs of hex digits are cut out of everything.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from ldpstream.errors import LdpStreamError

LEVELS = ("debug", "info", "warning", "error")
FACTS = ("stream", "t", "kind", "number", "asked", "received", "alert", "state", "status")
"""What may be given as `extra`; anything else is left out."""
FRAMES = 5

_SECRET = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{16,}(?![0-9A-Za-z])|Bearer\s+\S+")


class JsonLines(logging.Formatter):
    """Formats each record as one JSON object on a line.

    >>> record = logging.LogRecord("a", logging.INFO, "", 0, "device %s", ("00" * 16,), None)
    >>> json.loads(JsonLines().format(record))["message"]
    'device [removed]'
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _without_secrets(record.getMessage()),
        }
        line |= {name: getattr(record, name) for name in FACTS if hasattr(record, name)}
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = _error(record.exc_info[1])
        return json.dumps(line, default=str)


class PerMinuteFilter(logging.Filter):
    """A rate limit for a logger that strangers can trigger: a few lines per minute."""

    def __init__(self, most: int = 10) -> None:
        super().__init__()
        self._most = most
        self._minute = -1
        self._written = 0

    def filter(self, record: logging.LogRecord) -> bool:
        minute = int(record.created // 60)
        if minute != self._minute:
            self._minute, self._written = minute, 0
        self._written += 1
        return self._written <= self._most


def _error(error: BaseException) -> dict[str, Any]:
    """Describe an error by kind and place; include its message only if it is the system's own."""
    told: dict[str, Any] = {"kind": type(error).__name__}
    if isinstance(error, LdpStreamError):
        told["code"] = error.problem.code
    elif isinstance(error, OSError | sqlite3.Error):
        told["what"] = _without_secrets(str(error))
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    told["at"] = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
    return told


def _without_secrets(text: str) -> str:
    return _SECRET.sub("[removed]", text)


def set_up(level: str, to: TextIO | None = None) -> None:
    """Send everything that is logged, by whichever library, to standard error in this form."""
    handler = logging.StreamHandler(to)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
