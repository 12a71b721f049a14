"""The keys of devices, and the MACs of what they send: a report, a question for rounds, a farewell.

Each kind of message begins with a line of its own, so that the MAC of one never serves for another.
"""

from __future__ import annotations

import hmac

from ldpstream.protocol.limits import MAC_BYTES, VERSION
from ldpstream.protocol.messages import DEVICES, REPORTS, ROUNDS, TERMS, DeviceProof, path_of


def key_prefix(stream: str, level: str = "") -> bytes:
    """Return what precedes a device's number, in hexadecimal digits, in the derivation of its key.

    The key is the HMAC-SHA256 of prefix and number under the collector's master secret. It is
    another one at each level, so that one enrolment never counts at two of them.
    """
    at_level = f"{level}\n" if level else ""
    return f"ldpstream device key {VERSION}\n{stream}\n{at_level}".encode()


def key_prefix_1(stream: str) -> bytes:
    """Return the prefix of release 0.1.0, to tell its devices from forgers: both are refused."""
    return f"ldpstream device key 1\n{stream}\n".encode()


def device_key(master: bytes, stream: str, number: bytes, level: str = "") -> bytes:
    """Return the key of a device at a level of privacy."""
    return hmac.digest(master, key_prefix(stream, level) + number.hex().encode(), "sha256")


def report_prefix(stream: str, pin: str, round_name: str, level: str = "") -> bytes:
    """Return what precedes a report's bytes in the message that its MAC authenticates.

    The three lines at its end are the level of privacy, the attributes and the group of a device:
    the last two are empty.
    """
    return f"ldpstream report {VERSION}\n{stream}\n{pin}\n{round_name}\n{level}\n\n\n".encode()


def report_prefix_1(stream: str, round_name: str) -> bytes:
    """Return the prefix of release 0.1.0, under a key of `key_prefix_1`."""
    return f"POST\n{path_of(REPORTS, stream=stream, round=round_name)}\n{round_name}\n".encode()


def report_mac(key: bytes, prefix: bytes, report: bytes) -> bytes:
    """Return the code of one report."""
    return message_mac(key, prefix + report)


def rounds_message(stream: str, after: int) -> bytes:
    """Return the message under the MAC of a question for the rounds after a serial."""
    return f"ldpstream rounds {VERSION}\n{path_of(ROUNDS, stream=stream)}\n{after}\n".encode()


def leave_message(stream: str) -> bytes:
    """Return the message under the MAC by which a device leaves a stream."""
    return f"ldpstream leave {VERSION}\n{path_of(DEVICES, stream=stream)}\n".encode()


def terms_message(stream: str, pin: str) -> bytes:
    """Return the message under the MAC by which a device fetches the terms with this pin."""
    return f"ldpstream terms {VERSION}\n{path_of(TERMS, stream=stream, pin=pin)}\n".encode()


def renew_message(stream: str) -> bytes:
    """Return the message under the MAC, by its old key, by which a device asks for a new one."""
    return f"ldpstream renew {VERSION}\n{path_of(DEVICES, stream=stream)}\n".encode()


def proof_of(number: bytes, key: bytes, message: bytes) -> DeviceProof:
    """Return the proof that a message comes from the device with this number."""
    return DeviceProof(number, message_mac(key, message))


def message_mac(key: bytes, message: bytes) -> bytes:
    """Return the MAC of a message under a device's key."""
    return hmac.digest(key, message, "sha256")[:MAC_BYTES]
