"""Kills a device after every single line that it runs, and looks at what is left.

Run as a program, in a process of its own: it forks. Each child answers one round and is killed
(SIGKILL, by itself) after its n-th line of device code; "sending" is writing to a pipe, so that
what left before the end is known. Then the file is opened anew and asked the same again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from ldpstream.device.exchange import Request, Response
from tests.device.collectors import Bench, MemoryCollector, a_round

DEVICE_CODE = os.path.join("ldpstream", "device")


class PipeCollector(MemoryCollector):
    """A collector on the other end of a pipe: what is written is out of the device's hands."""

    def __init__(self, pipe: int) -> None:
        super().__init__(rounds=[a_round(1)])
        self._pipe = pipe

    def _take(self, request: Request) -> Response:
        os.write(self._pipe, request.body)
        return Response(202, {}, b"")


def kill_after(lines: int) -> Any:
    """A trace function that kills this process before line number `lines` of the device's code."""
    left = lines

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if DEVICE_CODE not in frame.f_code.co_filename:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def crash_once(path: Path, lines: int) -> tuple[bytes, bool]:
    """Answer a round in a child that is killed after so many lines: what left, and if it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        bench = Bench(path, collector=PipeCollector(writer))
        sys.settrace(kill_after(lines))
        device = bench.open()
        device.observe("south")
        device.poll()
        sys.settrace(None)
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read(), os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0


def main(folder: Path) -> None:
    fresh = Bench(folder / "fresh.ldp")
    fresh.enrolled().close()
    enrolled = fresh.path.read_bytes()
    faults, crashes, sent_before_crash, lines, ended = [], 0, 0, 0, False
    while not ended:
        path = folder / f"{lines}.ldp"
        path.write_bytes(enrolled)
        left, ended = crash_once(path, lines)
        crashes += not ended
        sent_before_crash += not ended and left != b""
        faults += [f"after line {lines}: {fault}" for fault in faults_after(path, left)]
        lines += 1
    print(json.dumps({"crashes": crashes, "sent": sent_before_crash, "faults": faults}))


def faults_after(path: Path, left: bytes) -> list[str]:
    """Return what is wrong with the device that comes up again after `left` has left it."""
    bench = Bench(path)
    device = bench.open()
    device.observe("north")
    (again,) = bench.ask(device, a_round(1))
    more = bench.ask(device, a_round(1, "1-more"))
    return [
        fault
        for fault, found in {
            "another payload for the same round": left not in (b"", again.report),
            "sent without a debit": not again.on_disk_first,
            "spent twice": more != [],
            "something left behind": [
                one for one in path.parent.iterdir() if "journal" in one.name
            ],
        }.items()
        if found
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
