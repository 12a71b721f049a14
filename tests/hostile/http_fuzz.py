"""The HTTP API of a real collector, called by its own description with whatever fits, and does not.

No answer may be a server error, take long, or make the process grow.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from tests.serving import CollectorProcess

schemathesis.serializer.alias("application/vnd.ldpstream.batch", "application/octet-stream")

SECONDS = 10.0
"""An answer that takes longer is a hang."""
CONFIG = """\
[collector]
listen = "127.0.0.1:0"
store = "data/collector.sqlite"

[[stream]]
name = "open"
labels = ["x", "y", "z"]
epsilon = 1
window = 4
interval = "1s"
oracle = "oue"
mechanism = "lpu"
population = 40

[[stream]]
name = "roster"
labels = ["x", "y", "z"]
epsilon = 1
window = 4
interval = "1s"
mechanism = "lba"
selection = "roster"
public = false
population = 4
"""
TOKENS = {
    "LDPSTREAM_ADMIN_TOKEN": "admin token of the fuzzer",
    "LDPSTREAM_ENROLMENT_TOKEN": "enrolment token of the fuzzer",
    "LDPSTREAM_MASTER_SECRET": "master secret of the fuzzer",
}
STREAMS = ("open", "roster", "none")
ENDLESS = "/v1/streams/{stream}/feed"
"""Answers for as long as one listens: only its head is looked at."""


READINESS = "GET /v1/ready"


@dataclass
class Findings:
    """What the calls came to."""

    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0

    @property
    def calls(self) -> int:
        return self.statuses.total()

    def saw(self, what: str, status: int, seconds: float) -> None:
        self.statuses[status] += 1
        self.slowest = max(self.slowest, seconds)
        behind = status == 503 and what.startswith(READINESS)  # which is right on a busy machine
        if status >= 500 and not behind:
            self.wrong.append(f"{what}: {status}")


def collector(folder: Path) -> CollectorProcess:
    """A collector of both streams, to be started."""
    return CollectorProcess.of(folder, CONFIG, TOKENS)


def resident_bytes(at: CollectorProcess) -> int:
    """The memory that the collector holds now."""
    status = Path(f"/proc/{at.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return 1024 * int(line.split()[1])


def fuzz(at: CollectorProcess, examples: int, token: str | None) -> Findings:
    """Call every operation of the description so often, with or without a token."""
    found = Findings()
    schema = schemathesis.openapi.from_url(f"{at.url}/openapi.json")
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with requests.Session() as session:
        session.headers.update(headers)
        for result in schema.get_all_operations():
            operation: Any = result.ok()  # type: ignore[union-attr]
            _fuzz_operation(operation, at, session, examples, found)
    return found


def _fuzz_operation(
    operation: Any, at: CollectorProcess, session: requests.Session, examples: int, found: Findings
) -> None:
    turn = iter(range(1 << 60))

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def call(case: Any) -> None:
        if "stream" in (case.path_parameters or {}) and next(turn) % 4:
            case.path_parameters["stream"] = STREAMS[next(turn) % len(STREAMS)]
        if case.query and str(case.query.get("wait", "")).isdecimal():
            case.query["wait"] = 0  # a long poll may take long, and that is right
        began = time.perf_counter()
        endless = operation.path == ENDLESS
        answer = session.request(
            **{**case.as_transport_kwargs(base_url=at.url), "timeout": SECONDS}, stream=endless
        )
        answer.close()
        found.saw(
            f"{operation.label} {case.as_curl_command()}"[:400],
            answer.status_code,
            time.perf_counter() - began,
        )

    call()


RAW: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("GET", "/v1/streams/open/feed", {"Last-Event-ID": "\xb2"}),
    ("GET", "/v1/streams/open/feed", {"Last-Event-ID": "9" * 5000}),
    ("GET", "/v1/streams/open/feed", {"Last-Event-ID": "9" * 30}),
    ("GET", f"/v1/streams/open/feed?since={10**30}", {}),
    ("GET", f"/v1/streams/open/releases?since={10**30}", {}),
    ("GET", f"/v1/streams/open/releases?limit={10**30}", {}),
    ("GET", f"/v1/streams/open/rounds?after={'9' * 5000}", {}),
    ("GET", "/v1/streams/open/rounds?wait=%C2%B2", {}),
    ("GET", "/v1/streams/roster/rounds", {"Ldp-Device": "\xb2" * 32}),
    ("GET", "/v1/streams/roster/rounds", {"Ldp-Device": "0" * 32, "Ldp-Mac": "\xb2" * 32}),
    ("GET", "/v1/streams/%FF%0A%00/rounds", {"Authorization": "Bearer \xff\xfe"}),
    ("GET", "/v1/admin/status", {"Authorization": "Bearer \xff\xfe"}),
    ("GET", "/metrics", {"Accept": "\xff"}),
    ("POST", "/v1/streams/open/devices", {"Content-Length": "0"}),
)
"""What a fuzzer rarely thinks of; each of them was an idea of ours first."""


def fuzz_raw(at: CollectorProcess) -> Findings:
    """The list above, over plain sockets: clients' own checks would hold it back."""
    found = Findings()
    for method, path, headers in RAW:
        connection = HTTPConnection("127.0.0.1", at.port, timeout=SECONDS)
        began = time.perf_counter()
        try:
            connection.putrequest(method, path)
            for name, value in headers.items():
                connection.putheader(name, value.encode("latin-1"))
            connection.endheaders()
            status = connection.getresponse().status
        finally:
            connection.close()
        found.saw(f"{method} {path[:60]} {str(headers)[:60]}", status, time.perf_counter() - began)
    return found
