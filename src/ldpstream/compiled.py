"""Numba kernels for what NumPy does too slowly, their fallbacks, and threads over chunks.

Kernels release the GIL and run on chunks in a thread pool of our own. That needs none of Numba's
threading layers, of which only some may be called from several threads at once.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar, cast

try:
    import fcntl
except ImportError:  # Windows: processes that compile at the same moment are not kept apart
    fcntl = None  # type: ignore[assignment]

try:
    from numba import njit
    from numba.core.caching import NullCache
    from numba.core.compiler_lock import global_compiler_lock
except ImportError:
    njit = None  # type: ignore[assignment]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
Part = TypeVar("Part")

LEAST_CHUNK = 1 << 14
"""Below this many rows a second thread costs more than it saves."""

COMPILING_SECONDS = 60
"""How long a process waits for another one that compiles the same kernel."""

_HAS_AFFINITY = hasattr(os, "sched_getaffinity")
_limit = sys.maxsize


def compiled(fallback: Callable[..., Any] | None = None) -> Callable[[Kernel], Kernel]:
    """Compile a kernel with Numba; without Numba use `fallback`, or the kernel as plain Python.

    A fallback takes the same arguments and returns the same bits; tests compare the two.
    """

    def decorate(kernel: Kernel) -> Kernel:
        if njit is None:
            return cast("Kernel", fallback or kernel)
        return cast("Kernel", _machine_code(kernel))

    return decorate


def inlined(part: Kernel) -> Kernel:
    """Make a function part of each kernel that calls it.

    A call inside of a loop costs more than a short loop itself if many arrays are handed over.
    """
    if njit is None:
        return part
    return cast("Kernel", njit(inline="always")(part))


def _machine_code(kernel: Callable[..., Any]) -> Any:
    try:
        dispatcher: Any = njit(cache=True, nogil=True, boundscheck=False)(kernel)
    except RuntimeError:  # no folder that a cache could be written to
        return njit(nogil=True, boundscheck=False)(kernel)
    _compile_in_one_process(dispatcher, f"{kernel.__module__}.{kernel.__qualname__}")
    return dispatcher


def _compile_in_one_process(dispatcher: Any, name: str) -> None:
    """Let one process at a time compile a kernel; the others load what it has compiled.

    Numba numbers the signatures of a kernel in the order in which they are saved. Two processes
    that save different ones at the same moment can give them the same number; from then on calls
    of one signature would run the code of the other.

    Locks are taken in one order, so that nobody can deadlock: Numba's own, which keeps the threads
    of this process apart, then that of the kernel, then those of the kernels that it calls. Who
    waits too long, as for a process that is suspended, compiles for itself and saves nothing.
    """
    compile_or_load = dispatcher.compile
    path = Path(dispatcher._cache.cache_path)

    def compile_alone(signature: Any) -> Any:
        path.mkdir(parents=True, exist_ok=True)
        with global_compiler_lock, (path / f"{name}.lock").open("w") as lock:
            if not _locked(lock):
                dispatcher._cache = NullCache()
            return compile_or_load(signature)

    dispatcher.compile = compile_alone


def _locked(file: IO[str]) -> bool:
    """Lock a file, unless another process holds it for too long."""
    if fcntl is None:
        return True
    end = time.monotonic() + COMPILING_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        else:
            return True


def in_chunks(rows: int, work: Callable[[int, int], Part], multiple: int = 1) -> list[Part]:
    """Run `work(start, stop)` over chunks of 0 .. rows on all cores; return the results in order.

    Chunk borders are multiples of `multiple` and depend on the number of cores: the work must not
    depend on where they are.

    >>> sum(in_chunks(100_000, lambda start, stop: stop - start))
    100000
    """
    parts = max(1, min(cores(), rows // LEAST_CHUNK))
    if parts == 1:
        return [work(0, rows)]
    borders = [rows * part // parts // multiple * multiple for part in range(parts)] + [rows]
    return list(_threads().map(work, borders[:-1], borders[1:]))


def cores() -> int:
    """Return how many cores this process may use."""
    return min(_limit, len(os.sched_getaffinity(0)) if _HAS_AFFINITY else os.cpu_count() or 1)


def use_cores(most: int) -> None:
    """Use at most `most` cores from now on, in one of several processes that share a machine."""
    global _limit
    _limit = most
    _threads.cache_clear()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), thread_name_prefix="ldpstream-kernel")
