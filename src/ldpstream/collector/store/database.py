"""The address of a database, which may hold a password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ldpstream.errors import Mistake, Problem

_HOST = r"(\[[0-9a-fA-F:]+\]|[\w.%-]*)(:\d+)?"
_DATABASE = re.compile(rf"postgres(ql)?://([^/?#@]*@)?{_HOST}(,{_HOST})*(/[^/?#@]*)?(\?[^#@]*)?")


@dataclass(frozen=True)
class Database:
    """Where a PostgreSQL database is. Shown without its password.

    >>> print(Database("postgresql://me:secret@db.example:5432/streams?sslmode=require"))
    postgresql://me@db.example:5432/streams
    """

    url: str

    def __post_init__(self) -> None:
        if (
            _DATABASE.fullmatch(self.url) is None
        ):  # else part of a password might be shown as a host
            raise Mistake(
                Problem.PARAMETER,
                name="store",
                given="not the address of a database",
                expected="postgresql://user@host/name, with %40 for @ and so on",
            )

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        user = f"{parts.username}@" if parts.username else ""
        return f"{parts.scheme}://{user}{parts.netloc.rpartition('@')[2]}{parts.path}"

    __repr__ = __str__
