"""The identity of a device: a number that is bound to a secret, another one at every stream.

The secret never leaves the device. An enrolment shows a hash of it, which nobody else can compute,
and the device's number is a hash of that. So whoever knows a number cannot enrol under it, and the
numbers of one device at two streams or collectors cannot be linked (docs/protocol.md).

>>> shown = enrolment_secret(bytes(32), "https://stats.example", "regions", rejoins=0)
>>> number_of(shown).hex()
'a047c03ba8a7910b5cd6890eadc10bea'
"""

from __future__ import annotations

import hashlib
import hmac

from ldpstream.protocol.limits import DEVICE_BYTES


def enrolment_secret(secret: bytes, place: str, stream: str, rejoins: int) -> bytes:
    """Return what a device shows to enrol in a stream of the collector at this place.

    The place is the collector's origin and the path to it, if it has one. `rejoins` is how often
    the device has left a stream: who joins again gets a new number.
    """
    message = f"ldpstream enrol 2\n{place}\n{stream}\n{rejoins}".encode()
    return hmac.digest(secret, message, "sha256")


def number_of(shown: bytes) -> bytes:
    """Return the number of the device that shows this at its enrolment."""
    return hashlib.sha256(b"ldpstream number 2\n" + shown).digest()[:DEVICE_BYTES]
