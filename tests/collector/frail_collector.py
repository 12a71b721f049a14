"""Starts real collectors quickly: imports once, then forks `ldpstream serve` for each input line.

A line has four paths: the configuration, a pipe for what it announces, a file for the log, and one
for orders. When that one says "release before SIGKILL", the collector kills itself just before it
would release; "open_round after SIGSTOP" stops it when a round is committed, before it knows. The
answer to a line is the number of the process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ldpstream.collector.api.server  # noqa: F401 - what takes long to import
from ldpstream.cli import main
from ldpstream.collector.store.postgres.store import PostgresStore

POINTS = ("open_round", "close_round", "tally", "release")


def failing_on_order(name: str, method: Callable[..., Any], orders: Path) -> Callable[..., Any]:
    def fail_if_ordered(when: str) -> None:
        if not orders.exists():
            return
        order = orders.read_text()
        if order.startswith(f"{name} {when} "):
            orders.unlink()
            os.kill(os.getpid(), signal.Signals[order.split()[-1]])
            time.sleep(0.2)  # until the signal has reached all threads

    def call(*arguments: Any, **named: Any) -> Any:
        fail_if_ordered("before")
        result = method(*arguments, **named)
        fail_if_ordered("after")
        return result

    return call


def serve(config: str, announcement: str, log: str, orders: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, path in enumerate((announcement, log), start=1):
        with open(path, "w") as out:
            os.dup2(out.fileno(), number)
    for name in POINTS:
        method = getattr(PostgresStore, name)
        setattr(PostgresStore, name, failing_on_order(name, method, Path(orders)))
    sys.argv = ["ldpstream", "serve", config, "--json"]
    main()


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            serve(*line.split())
            raise SystemExit
        print(child, flush=True)
