"""Enrolment tokens: each has a name, and may be limited to a stream, a time and some uses."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class EnrolmentToken:
    """An enrolment token as it is stored: the token itself is shown once, and not kept."""

    name: str
    digest: bytes = field(repr=False)
    stream: str | None
    """The one stream that it is valid for, or None for all."""
    made_ms: int
    expires_ms: int | None = None
    most_uses: int | None = None
    """How many devices may enrol with it, each at one level, or None for any number."""
    uses: int = 0
    revoked_ms: int | None = None

    def opens(self, stream: str) -> bool:
        """Return whether it is for this stream."""
        return self.stream is None or self.stream == stream

    def fault(self, now_ms: int) -> str | None:
        """Return why nobody can enrol with it any more, or None if someone can.

        A token that is used up is still valid for the devices that have used it.

        >>> EnrolmentToken("field", b"", None, 0, expires_ms=5).fault(5)
        'has expired'
        """
        if self.revoked_ms is not None:
            return "was revoked"
        return "has expired" if self.expires_ms is not None and now_ms >= self.expires_ms else None

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "digest"}


def draw_token() -> str:
    """Generate a token: 256 random bits, in hex digits."""
    return secrets.token_hex(32)


def digest_of(token: str) -> bytes:
    """Return the hash that is stored of a token: with 256 random bits it need not be slow."""
    return hashlib.sha256(token.encode()).digest()


def use_of(stream: str, device: bytes, level: str = "") -> bytes:
    """Return how the use of a token by a device is stored, which does not name the device.

    Each level is a use: with keys of several levels a device is counted at each of them.
    """
    used = stream.encode() + b"\n" + device + level.encode()
    return hashlib.sha256(b"ldpstream token use 1\n" + used).digest()
