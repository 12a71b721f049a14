"""The keys of devices, and the MAC that authenticates a report."""

from __future__ import annotations

import hmac

from ldpstream.protocol.limits import MAC_BYTES, VERSION
from ldpstream.protocol.messages import reports_path


def key_prefix(stream: str) -> bytes:
    """Return what precedes a device's number, in hexadecimal digits, in the derivation of its key.

    The key is the HMAC-SHA256 of prefix and number under the collector's master secret. The prefix
    stays that of version 1, so that ledgers of 0.1.0 keep their keys.
    """
    return f"ldpstream device key 1\n{stream}\n".encode()


def device_key(master: bytes, stream: str, number: bytes) -> bytes:
    """Return the key of a device."""
    return hmac.digest(master, key_prefix(stream) + number.hex().encode(), "sha256")


def report_prefix(stream: str, round_name: str) -> bytes:
    """Return what precedes a report's bytes in the message that its MAC authenticates."""
    path = reports_path(stream, round_name)
    return f"ldpstream report {VERSION}\n{path}\n{round_name}\n".encode()


def report_prefix_1(stream: str, round_name: str) -> bytes:
    """Return the prefix of release 0.1.0, to tell its devices from forgers: both are refused."""
    return f"POST\n{reports_path(stream, round_name)}\n{round_name}\n".encode()


def report_mac(key: bytes, prefix: bytes, report: bytes) -> bytes:
    """Return the MAC of one report."""
    return hmac.digest(key, prefix + report, "sha256")[:MAC_BYTES]
