"""A worker process, which takes orders from a pipe until the pipe is closed."""

from __future__ import annotations

import pickle
import signal
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from ldpstream.compiled import use_cores
from ldpstream.errors import LdpStreamError
from ldpstream.lab.plugins import load_plugins
from ldpstream.lab.tasks import Figures, perform
from ldpstream.streams.stream import Stream

READY = "ready"


@dataclass(frozen=True)
class Order:
    """A task, and what this worker must have before it can even unpickle it."""

    plugins: tuple[Path, ...]
    stream: Stream | None
    """The stream of the task, unless this worker was given it before."""
    task: bytes


def serve(pipe: Connection) -> None:
    """Answer each order with figures or with the exception that was raised."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    use_cores(1)  # the other cores have workers of their own
    streams: dict[str, Stream] = {}
    try:
        pipe.send(READY)
        while True:
            pipe.send(_outcome(pipe.recv(), streams))
    except (EOFError, OSError):
        return  # the parent is gone


def _outcome(order: Order, streams: dict[str, Stream]) -> Figures | Exception:
    try:
        load_plugins(order.plugins)
        if order.stream is not None:
            streams[order.stream.fingerprint] = order.stream
        task = pickle.loads(order.task)  # nosec B301 # noqa: S301 - from the parent
        return perform(task, streams[task.stream])
    except LdpStreamError as error:
        return error
    except Exception as error:
        return _told(error)


def _told(error: Exception) -> Exception:
    """Return the exception, always picklable, with its traceback, which pickling would lose."""
    trace = "".join(traceback.format_exception(error))
    try:
        error.add_note(f"In a worker process:\n{trace}")
        pickle.loads(pickle.dumps(error))  # nosec B301 # noqa: S301 - our own
    except Exception:
        return RuntimeError(trace)
    return error
