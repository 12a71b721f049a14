"""The messages of the protocol as values, and how HTTP and MQTT carry them.

>>> ListRounds("regions", after=7, wait=30).http.path
'/v1/streams/regions/rounds?after=7&wait=30'
>>> SubmitReport("regions", "2-publication", bytes(16), bytes(16), b"AB").topic
'ldpstream/2/regions/rounds/2-publication/reports'
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ldpstream.protocol.limits import TERMS_FORMAT, VERSION

PREFIX = "/v1"
"""The prefix of every path."""
STREAMS = "/streams"
STREAM = f"{STREAMS}/{{stream}}"
DEVICES = f"{STREAM}/devices"
ROUNDS = f"{STREAM}/rounds"
REPORTS = f"{ROUNDS}/{{round}}/reports"
BATCH = f"{ROUNDS}/{{round}}/batch"
TERMS = f"{STREAM}/terms/{{pin}}"
STATUS = f"{STREAM}/status"
RELEASES = f"{STREAM}/releases"
FEED = f"{STREAM}/feed"
SUMMARIES = f"{STREAM}/summaries"
CHANGES = f"{STREAM}/changes"
TEXTS = f"{STREAM}/texts"
ALERTS = f"{STREAM}/alerts"
ALERT_RULES = f"{ALERTS}/rules"
ALERT_RULE = f"{ALERT_RULES}/{{rule_id}}"
ANNOTATIONS = f"{STREAM}/annotations"
SHARE = f"{STREAM}/share"
ADMIN = "/admin"
"""Routes, without the prefix."""

DEVICE_HEADER = "Ldp-Device"
MAC_HEADER = "Ldp-Mac"
REPORT_TYPE = "application/octet-stream"
BATCH_TYPE = "application/vnd.ldpstream.batch"


def path_of(route: str, **names: str) -> str:
    """Return the path of a route, which MACs cover; names must be safe in a path.

    >>> path_of(REPORTS, stream="regions", round="2-publication")
    '/v1/streams/regions/rounds/2-publication/reports'
    """
    return PREFIX + route.format(**names)


def _topic(stream: str, version: int) -> str:
    topic = f"ldpstream/{VERSION}/{stream}"
    return topic if version == 1 else f"{topic}/v{version}"


def notice_topic(stream: str, version: int = 1) -> str:
    """Return the MQTT topic of the last notice to all devices with this version of the terms."""
    return f"{_topic(stream, version)}/notice"


def rounds_topic(stream: str, version: int = 1) -> str:
    """Return the MQTT topic on which announcements for a version of the terms are retained.

    >>> rounds_topic("regions"), rounds_topic("regions", 2)
    ('ldpstream/2/regions/rounds', 'ldpstream/2/regions/v2/rounds')
    """
    return f"{_topic(stream, version)}/rounds"


def reports_topic(stream: str, round_name: str) -> str:
    """Return the MQTT topic to which the reports of a round are published."""
    return f"{rounds_topic(stream)}/{round_name}/reports"


def round_in(topic: str) -> str:
    """Return the name of the round whose reports are published to a topic.

    >>> round_in(reports_topic("regions", "2-publication"))
    '2-publication'
    """
    return topic.split("/")[-2]


@dataclass(frozen=True)
class HttpForm:
    """A message as HTTP carries it."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Not in the repr: a token may be among them."""
    body: bytes = field(default=b"", repr=False)
    """Not in the repr: that of an enrolment holds a secret."""


@dataclass(frozen=True)
class TokenProof:
    """A token, as proof of the right to what is asked for."""

    token: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@dataclass(frozen=True)
class DeviceProof:
    """A device's number and the MAC of what it asks for, as proof that it takes part."""

    number: bytes
    mac: bytes

    @property
    def headers(self) -> dict[str, str]:
        return {DEVICE_HEADER: self.number.hex(), MAC_HEADER: self.mac.hex()}


Proof = TokenProof | DeviceProof


@dataclass(frozen=True)
class Enrol:
    """A request to join a stream; the token is empty if anyone may join."""

    stream: str
    token: str = field(repr=False)
    secret: bytes = field(repr=False)
    """The `enrolment_secret` of the device, which determines its number."""
    level: str = ""
    """The level of privacy that the person has chosen; empty: the stream's own."""

    @property
    def http(self) -> HttpForm:
        authorised = TokenProof(self.token).headers if self.token else {}
        return _enrolment(self.stream, self.secret, self.level, authorised)


@dataclass(frozen=True)
class RenewKey:
    """A request for a key of the new master secret, signed by the old key with `renew_mac`.

    The `enrolment_secret` is shown again, so that a master secret that was stolen renews no key.
    """

    stream: str
    secret: bytes = field(repr=False)
    level: str
    proof: DeviceProof

    @property
    def http(self) -> HttpForm:
        return _enrolment(self.stream, self.secret, self.level, self.proof.headers)


def _enrolment(stream: str, secret: bytes, level: str, authorised: dict[str, str]) -> HttpForm:
    """Return the form of an enrolment. Collectors of 0.2.0 overlook `terms` and `level`."""
    content = {"secret": secret.hex(), "version": VERSION, "terms": TERMS_FORMAT}
    body = json.dumps(content | ({"level": level} if level else {})).encode()
    headers = authorised | {"Content-Type": "application/json"}
    return HttpForm("POST", path_of(DEVICES, stream=stream), headers, body)


@dataclass(frozen=True)
class FetchTerms:
    """A request for one version of the terms; with the `terms_mac` of a device."""

    stream: str
    pin: str
    proof: DeviceProof

    @property
    def http(self) -> HttpForm:
        return HttpForm("GET", path_of(TERMS, stream=self.stream, pin=self.pin), self.proof.headers)


@dataclass(frozen=True)
class Leave:
    """The farewell of a device, with its `leave_mac`."""

    stream: str
    proof: DeviceProof

    @property
    def http(self) -> HttpForm:
        return HttpForm("DELETE", path_of(DEVICES, stream=self.stream), self.proof.headers)


@dataclass(frozen=True)
class ListRounds:
    """A long poll for the open rounds: answered at news after a serial, or after `wait` seconds."""

    stream: str
    after: int
    wait: int
    """Seconds that the answer may be held back."""
    proof: Proof | None = None
    """Needed where the stream is private; a device's, with the MAC of `after`, by a roster too."""
    terms_version: int = 1
    """The version of the stream's terms under which the device reports."""

    @property
    def http(self) -> HttpForm:
        path = f"{path_of(ROUNDS, stream=self.stream)}?after={self.after}&wait={self.wait}"
        if self.terms_version > 1:
            path += f"&version={self.terms_version}"
        return HttpForm("GET", path, {} if self.proof is None else self.proof.headers)


@dataclass(frozen=True)
class SubmitReport:
    """The submission of one report."""

    stream: str
    round: str
    number: bytes
    mac: bytes
    report: bytes

    @property
    def http(self) -> HttpForm:
        path = path_of(REPORTS, stream=self.stream, round=self.round)
        headers = {"Content-Type": REPORT_TYPE} | DeviceProof(self.number, self.mac).headers
        return HttpForm("POST", path, headers, self.report)

    @property
    def record(self) -> bytes:
        """The report as a record of a batch, which is also its MQTT payload."""
        return self.number + self.mac + self.report

    @property
    def topic(self) -> str:
        return reports_topic(self.stream, self.round)


@dataclass(frozen=True)
class SubmitBatch:
    """The submission of many devices' reports of one round, as records."""

    stream: str
    round: str
    records: bytes
    proof: Proof | None = None
    """Needed where the stream is private; a device's has the MAC of a question after serial 0."""

    @property
    def http(self) -> HttpForm:
        path = path_of(BATCH, stream=self.stream, round=self.round)
        proven = {} if self.proof is None else self.proof.headers
        return HttpForm("POST", path, {"Content-Type": BATCH_TYPE} | proven, self.records)


Message = Enrol | RenewKey | FetchTerms | Leave | ListRounds | SubmitReport | SubmitBatch
