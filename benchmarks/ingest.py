"""Measure how fast a collector accepts reports durably on one core, against routes that do nothing.

    .venv/bin/python benchmarks/ingest.py [--quick] [--json] [--seconds S]

Starts a collector (SQLite in a temporary folder, fully synchronous) in a process that is pinned to
one core, and sends it signed reports over loopback from another one. In turns, on the same server
and the same connections:

- single: one report per request, against a Starlette route that reads the body and answers 202;
- batched: 1,000 reports per request, against a route that only parses the batch: splits it, checks
  versions and ranges, and drops it (no MACs, no store).

Then, unless --quick: 1,000,000 reports in rounds of 100,000, to see the memory of the server and
how long after its deadline each round is counted and released.

Reports per second are given by wall-clock time and by the server's processor time; on a machine
with other work the latter shows what a dedicated core would do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serving import CollectorProcess

MASTER = b"benchmark-" * 4
LABELS = 16
BATCH = 1000
CONNECTIONS = {"single": 128, "batched": 16}
CONFIG = """
[collector]
listen = "127.0.0.1:0"
store = "{store}"

[[stream]] # its round stays open for as long as the benchmark runs
name = "standing"
labels = {labels}
epsilon = 1
window = 1
interval = "10h"
mechanism = "lbu"
oracle = "grr"
population = 1000000
"""
TURNING = """
[[stream]]
name = "turning"
labels = {labels}
epsilon = 1
window = 1
interval = "{interval}"
mechanism = "lbu"
oracle = "olh"
population = 100000
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="throughput only, and less of it")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, help="for each measurement")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    row = measure(options.quick, options.seconds or (1.0 if options.quick else 3.0))
    if options.json:
        print(json.dumps(row))
        return
    for name, figure in row.items():
        print(f"{name:34} {figure}")


# The server


def serve(file: Path) -> None:
    """Run a collector with two routes more, on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from ldpstream.collector.api.app import build_app
    from ldpstream.collector.api.server import listen, url_of
    from ldpstream.collector.config import load
    from ldpstream.collector.credentials.secrets import Secrets
    from ldpstream.collector.reports.records import Records
    from ldpstream.collector.service.service import Service

    config = load(file)
    service = Service(config, Secrets(MASTER, b"enrolment token", b"admin token"))

    async def nothing(request: Request) -> Response:
        await request.body()
        return Response(b'{"status":"accepted"}', 202, media_type="application/json")

    async def parse(request: Request) -> Response:
        asking = service.streams["standing"].hub.open["1-publication"]
        records = Records.of(await request.body(), asking.stored.report_bytes)
        asking.collector.decode_table(records.reports)
        return Response(b'{"accepted":1000}', 200, media_type="application/json")

    app = build_app(service)
    app.router.routes[:0] = [
        Route("/v1/streams/{stream}/rounds/{round}/nothing", nothing, methods=["POST"]),
        Route("/v1/streams/{stream}/rounds/{round}/parse", parse, methods=["POST"]),
    ]
    listening = listen(config)
    print(json.dumps({"url": url_of(listening)}), flush=True)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    server.run(sockets=[listening])


# The load


@dataclass
class Load:
    """Requests that are made once and sent in turns, each with one of these headers."""

    heads: list[bytes]
    bodies: list[bytes]

    def requests(self, path: str) -> list[bytes]:
        return [
            b"POST %b HTTP/1.1\r\nhost: x\r\n%bcontent-length: %d\r\n\r\n%b"
            % (path.encode(), head, len(body), body)
            for head, body in zip(self.heads, self.bodies, strict=True)
        ]


class Connection(asyncio.Protocol):
    """A connection that sends the next request when the last one has been answered."""

    def __init__(self, requests: Iterator[bytes], done: Any) -> None:
        self._requests = requests
        self._done = done
        self._buffer = b""
        self.finished = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if not end or len(body) < length:
            return
        if not head.startswith(b"HTTP/1.1 20"):
            raise SystemExit(f"the collector refused: {self._buffer!r}")
        self._buffer = b""
        self._done(body)
        self._next()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self.finished.set_result(None)
        else:
            self._transport.write(request)


async def send_all(port: int, requests: Iterator[bytes], connections: int) -> list[bytes]:
    """Send everything over so many connections; return the answers."""
    answers: list[bytes] = []
    loop = asyncio.get_running_loop()
    open_connections = [
        (
            await loop.create_connection(
                lambda: Connection(requests, answers.append), "127.0.0.1", port
            )
        )[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(one.finished for one in open_connections))
    return answers


def pin_of(url: str, stream: str) -> str:
    """Return the pin of a stream's terms, which MACs cover."""
    with urllib.request.urlopen(f"{url}/v1/streams/{stream}") as answer:
        return str(json.load(answer)["pin"])


def signed(
    stream: str, pin: str, round_name: str, report_bytes: int, number: int, first: int
) -> Any:
    """Records of devices first .. first + number - 1, each with a report of its own."""
    from ldpstream.collector.credentials.device_keys import DeviceKeys, Signers
    from ldpstream.protocol.authentication import report_prefix

    devices = np.zeros((number, 16), np.uint8)
    devices[:, 8:] = np.arange(first, first + number, dtype=">u8").view(np.uint8).reshape(-1, 8)
    rng = np.random.default_rng(first)
    reports = rng.integers(0, 2, (number, report_bytes), np.uint8)
    reports[:, 0] = 1
    prefix = report_prefix(stream, pin, round_name)
    words = Signers(DeviceKeys(MASTER, stream), devices).hashes.mac_words(prefix, reports)
    macs = np.ascontiguousarray(words.T, ">u4").view(np.uint8)
    return np.concatenate([devices, macs, reports], axis=1)


def singles(table: Any) -> Load:
    heads = [
        b"ldp-device: %b\r\nldp-mac: %b\r\n" % (row[:16].hex().encode(), row[16:32].hex().encode())
        for row in (line.tobytes() for line in table)
    ]
    return Load(heads, [line[32:].tobytes() for line in table])


def batches(table: Any, size: int = BATCH) -> Load:
    parts = [table[first : first + size].tobytes() for first in range(0, len(table), size)]
    return Load([b""] * len(parts), parts)


# The measurements


def measure(quick: bool, seconds: float) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "collector.toml"
        labels = json.dumps([str(label) for label in range(LABELS)])
        config = CONFIG + TURNING
        file.write_text(config.format(store="collector.sqlite", labels=labels, interval="4s"))
        command = (sys.executable, __file__, "--serve")
        with CollectorProcess(file, command=command) as server:
            bench = Bench(server.process.pid, server.port, seconds)
            row = bench.throughput()
            if not quick:
                row |= bench.rounds_of_100_000()
    return row


@dataclass
class Bench:
    """A benchmark of one server under load."""

    pid: int
    port: int
    seconds: float
    turns: int = 3
    first: int = 1

    def get(self, path: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/v1/{path}"
        for _ in range(100):
            try:
                with urllib.request.urlopen(url) as answer:
                    return json.load(answer)
            except OSError:
                time.sleep(0.1)
        raise SystemExit("the collector did not start")

    def throughput(self) -> dict[str, object]:
        while not self.get("streams/standing/status")["rounds"]:
            time.sleep(0.1)
        row: dict[str, object] = {}
        for kind, against, size in (("single", "nothing", 1), ("batched", "parse", BATCH)):
            connections = CONNECTIONS[kind]
            path = "/v1/streams/standing/rounds/1-publication/"
            ours = path + ("reports" if kind == "single" else "batch")
            rate = self.run(ours, kind, size, 3000 // size + 2 * connections, connections)[0]
            requests = int(self.seconds * rate / size / self.turns) + connections
            pairs = [  # in turns, so that other work disturbs both alike
                (
                    self.run(path + against, kind, size, requests, connections),
                    self.run(ours, kind, size, requests, connections),
                )
                for _ in range(self.turns)
            ]
            base, real = (np.median([pair[side] for pair in pairs], axis=0) for side in (0, 1))
            row |= {
                f"{kind}_ratio": round(float(real[1] / base[1]), 3),
                f"{kind}_reports_per_second": round(float(real[0])),
                f"{kind}_reports_per_cpu_second": round(float(real[1])),
                f"{kind}_{against}_per_cpu_second": round(float(base[1])),
            }
        return row

    def run(
        self, path: str, kind: str, size: int, requests: int, connections: int
    ) -> tuple[float, float]:
        """Return reports per second of wall-clock time, and of the server's processor time."""
        pin = self.get("streams/standing")["pin"]
        table = signed("standing", pin, "1-publication", 2, requests * size, self.first)
        self.first += len(table)
        load = (singles if size == 1 else batches)(table).requests(path)
        cpu, start = self.cpu(), time.perf_counter()
        answers = asyncio.run(send_all(self.port, iter(load), connections))
        wall, cpu = time.perf_counter() - start, self.cpu() - cpu
        if path.endswith("batch"):
            accepted = sum(json.loads(one)["accepted"] for one in answers)
            assert accepted == len(table), (accepted, len(table))
        assert len(answers) == requests
        return len(table) / wall, len(table) / cpu

    def rounds_of_100_000(self) -> dict[str, object]:
        """Run ten rounds, each filled before its deadline."""
        memory: list[int] = []
        late: list[float] = []
        serial = 0
        while len(memory) < 11:
            told = self.get(f"streams/turning/rounds?after={serial}&wait=30")
            serial = told["serial"]
            if not told["rounds"]:
                continue
            asked = told["rounds"][0]
            table = signed("turning", told["pin"], asked["round"], 10, 100_000, 1)
            path = f"/v1/streams/turning/rounds/{asked['round']}/batch"
            load = batches(table).requests(path)
            asyncio.run(send_all(self.port, iter(load), CONNECTIONS["batched"]))
            while self.get("streams/turning/status")["last_release"] < asked["t"]:
                time.sleep(0.05)
            release = self.get(f"streams/turning/releases?since={asked['t']}&limit=1")["releases"][
                0
            ]
            assert release["received"] == 100_000, release["received"]
            late.append((release["at_ms"] - asked["deadline_ms"]) / 1000)
            memory.append(self.memory())
        return {
            "rounds": len(memory),
            "seconds_from_deadline_to_release": max(late),
            "memory_mb_after_first_round": memory[0],
            "memory_mb_after_1000000_more": memory[-1],
        }

    def cpu(self) -> float:
        """Return the processor seconds of the server's threads, as the scheduler counts them."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def memory(self) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return round(next(int(line.split()[1]) for line in lines if line[:6] == "VmRSS:") / 1024)


if __name__ == "__main__":
    main()
