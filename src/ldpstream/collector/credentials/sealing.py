"""Keeping a key in a store under the master secret, so that the key outlives a change of it.

A key of 32 bytes is encrypted with one block of an HMAC keystream, and authenticated: the standard
library has no cipher, and needs none for this. A new master secret only seals the key anew.
"""

from __future__ import annotations

import hmac
import secrets

KEY_BYTES = 32
_NONCE_BYTES = 16
_CHECK = b"ldpstream master check 1"


def check_of(master: bytes) -> str:
    """Tell whether two collectors have the same master secret, and nothing else of it."""
    return hmac.digest(master, _CHECK, "sha256").hex()


def seal(master: bytes, label: str, key: bytes) -> str:
    """Return a key of 32 bytes as a text that only the holder of the master secret can open.

    >>> unseal(b"master", "chain", seal(b"master", "chain", bytes(32))) == bytes(32)
    True
    >>> unseal(b"another", "chain", seal(b"master", "chain", bytes(32))) is None
    True
    """
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key of {len(key)} bytes cannot be sealed")
    nonce = secrets.token_bytes(_NONCE_BYTES)
    hidden = _crossed(master, label, nonce, key)
    return (nonce + hidden + _tag(master, label, nonce + hidden)).hex()


def unseal(master: bytes, label: str, sealed: str) -> bytes | None:
    """Return the key; None if another master secret, or another label, has sealed it."""
    try:
        content = bytes.fromhex(sealed)
    except ValueError:
        return None
    nonce, hidden, tag = (
        content[:_NONCE_BYTES],
        content[_NONCE_BYTES : _NONCE_BYTES + KEY_BYTES],
        content[_NONCE_BYTES + KEY_BYTES :],
    )
    if not hmac.compare_digest(tag, _tag(master, label, nonce + hidden)):
        return None
    return _crossed(master, label, nonce, hidden)


def _crossed(master: bytes, label: str, nonce: bytes, given: bytes) -> bytes:
    stream = hmac.digest(master, f"ldpstream seal 1 {label}\n".encode() + nonce, "sha256")
    return bytes(one ^ other for one, other in zip(given, stream, strict=True))


def _tag(master: bytes, label: str, content: bytes) -> bytes:
    return hmac.digest(master, f"ldpstream seal 1 tag {label}\n".encode() + content, "sha256")
