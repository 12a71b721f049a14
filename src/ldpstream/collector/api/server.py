"""Running a service behind uvicorn, from the socket to the last commit."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator, Sequence

import uvicorn
from starlette.routing import BaseRoute

from ldpstream.collector.api.app import build_app
from ldpstream.collector.config import Config
from ldpstream.collector.service.service import Service
from ldpstream.errors import Mistake, Problem
from ldpstream.open_files import allow_connections

GRACE_SECONDS = 5
BACKLOG = 4096


class _Server(uvicorn.Server):
    """uvicorn without its own signal handling, which ends the process by the signal it caught."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(config: Config) -> socket.socket:
    """The socket, bound before anything else starts; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((config.host, config.port))
    except OSError as error:
        listening.close()
        raise Mistake(
            Problem.ADDRESS_IN_USE, address=f"{config.host}:{config.port}", what=error.strerror
        ) from None
    return listening


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    service: Service,
    listening: socket.socket,
    ready: Callable[[], None],
    more: Sequence[BaseRoute] = (),
) -> None:
    """Serve until SIGINT or SIGTERM; return when all that was accepted is committed.

    `more` routes are served beside those of the API and the page.
    """
    allow_connections(service.config.limits.connections)
    app = build_app(service)
    app.router.routes.extend(more)
    server = _Server(
        uvicorn.Config(
            app,
            log_config=None,  # logs.py
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            limit_concurrency=service.config.limits.connections,
            timeout_keep_alive=65,  # longer than a long poll, so that connections are used again
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            service.release_waiting()
            server.should_exit = True

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            ready()
        await serving

    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(run())
