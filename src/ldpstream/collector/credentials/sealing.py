"""Encryption of secrets in a store under the master secret, which they outlive.

A secret is encrypted with an HMAC keystream, and authenticated: the standard library has no cipher,
and needs none for these few bytes. A new master secret only seals them anew.
"""

from __future__ import annotations

import hmac
import secrets

KEY_BYTES = 32
"""The length of a key that is generated to be sealed."""
_NONCE_BYTES = 16
_TAG_BYTES = 32
_CHECK = b"ldpstream master check 1"


def check_of(master: bytes) -> str:
    """Return a check value, which shows only whether two master secrets are the same."""
    return hmac.digest(master, _CHECK, "sha256").hex()


def seal(master: bytes, label: str, secret: bytes) -> str:
    """Return a secret as a text that only the holder of the master secret can open.

    >>> unseal(b"master", "chain", seal(b"master", "chain", bytes(32))) == bytes(32)
    True
    >>> unseal(b"another", "chain", seal(b"master", "chain", bytes(32))) is None
    True
    """
    nonce = secrets.token_bytes(_NONCE_BYTES)
    hidden = _crossed(master, label, nonce, secret)
    return (nonce + hidden + _tag(master, label, nonce + hidden)).hex()


def unseal(master: bytes, label: str, sealed: str) -> bytes | None:
    """Return the secret; None if another master secret, or another label, has sealed it."""
    try:
        content = bytes.fromhex(sealed)
    except ValueError:
        return None
    nonce, hidden, tag = (
        content[:_NONCE_BYTES],
        content[_NONCE_BYTES:-_TAG_BYTES],
        content[-_TAG_BYTES:],
    )
    if not hmac.compare_digest(tag, _tag(master, label, nonce + hidden)):
        return None
    return _crossed(master, label, nonce, hidden)


def _crossed(master: bytes, label: str, nonce: bytes, given: bytes) -> bytes:
    first = f"ldpstream seal 1 {label}\n".encode() + nonce
    blocks = range(-(-len(given) // KEY_BYTES))
    numbers = (number.to_bytes(4, "big") if number else b"" for number in blocks)
    stream = b"".join(hmac.digest(master, first + number, "sha256") for number in numbers)
    return bytes(one ^ other for one, other in zip(given, stream, strict=False))


def _tag(master: bytes, label: str, content: bytes) -> bytes:
    return hmac.digest(master, f"ldpstream seal 1 tag {label}\n".encode() + content, "sha256")
