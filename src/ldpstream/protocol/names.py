"""The names that streams, rounds and devices may have, and checks of untrusted input."""

from __future__ import annotations

import re
from typing import TypeGuard

from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.limits import DEVICE_BYTES, KEY_BYTES

STREAM_NAME = "1 to 64 of a-z, 0-9, - and _, the first of them a letter or a digit"

_STREAM = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ROUND = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_DEVICE = re.compile(f"[0-9a-fA-F]{{{2 * DEVICE_BYTES}}}")
_SECRET = re.compile(f"[0-9a-fA-F]{{{2 * KEY_BYTES}}}")


def is_stream_name(name: object) -> bool:
    """Return whether a stream may have this name.

    >>> is_stream_name("regions"), is_stream_name("_a"), is_stream_name("a/b")
    (True, False, False)
    """
    return isinstance(name, str) and _STREAM.fullmatch(name) is not None


def is_round_name(name: object) -> bool:
    """Return whether a round may have this name."""
    return isinstance(name, str) and _ROUND.fullmatch(name) is not None


def device_number(digits: str | bytes | None) -> bytes:
    """Return the bytes of a device's number, from its hexadecimal digits."""
    text = digits.decode("latin-1") if isinstance(digits, bytes) else digits or ""
    if _DEVICE.fullmatch(text) is None:  # `fromhex` alone would skip blanks between digits
        raise Mistake(Problem.DEVICE_NUMBER, given=repr(text[:40]))
    return bytes.fromhex(text)


def shown_secret(digits: object) -> bytes:
    """Return the bytes of what a device shows to enrol; the message does not repeat them."""
    if not isinstance(digits, str) or _SECRET.fullmatch(digits) is None:
        raise Mistake(Problem.DEVICE_SECRET)
    return bytes.fromhex(digits)


def shown(value: object) -> str:
    """Return untrusted input in a short and printable form, for a message."""
    return _cut(ascii(value), 60)


def printable(text: str, most: int) -> str:
    r"""Return untrusted text as it is read, in at most so many printable characters.

    >>> printable("no level 'bold'", 60), printable("a\nb", 60), printable("too long", 6)
    ("no level 'bold'", 'a\\nb', 'too...')
    """
    return _cut(ascii(text)[1:-1], most)


def in_one_line(text: str) -> str:
    r"""Return a text with line breaks, and other characters that are not printed, escaped.

    >>> in_one_line("no 'ü' in \"a\nb\"")
    'no \'ü\' in "a\\nb"'
    """
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def whole(value: object, least: int, most: int) -> TypeGuard[int]:
    """Return whether it is an integer in this range; true is not one, though it is in Python."""
    return type(value) is int and least <= value <= most
