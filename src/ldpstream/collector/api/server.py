"""Running a service behind uvicorn, from the socket to the last commit."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from ipaddress import ip_network

import uvicorn
from starlette.routing import BaseRoute

from ldpstream.collector.api.app import build_app
from ldpstream.collector.api.connection import ConnectionTable, GuardedProtocol, Network
from ldpstream.collector.config import Config, Limits
from ldpstream.collector.json_logging import PerMinuteFilter
from ldpstream.collector.service.service import Service
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.open_files import allow_connections

GRACE_SECONDS = 5
BACKLOG = 4096
PROXIES = "FORWARDED_ALLOW_IPS"
"""Names the proxies whose X-Forwarded-For is believed, in the environment; none by default."""

_log = logging.getLogger(__name__)


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


def proxies_of(text: str) -> tuple[Network, ...]:
    """Parse comma-separated addresses and networks."""
    try:
        return tuple(ip_network(one.strip()) for one in text.split(",") if one.strip())
    except ValueError:
        expected = "addresses or networks, separated by commas, such as 10.0.0.2 or 10.0.0.0/8"
        raise Mistake(Problem.OPTION, option=PROXIES, given=repr(text), expected=expected) from None


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _reload(service: Service) -> None:
    """Read the file again, and log what came of it."""
    try:
        told = service.reload("SIGHUP")
    except LdpStreamError as error:
        _log.error("nothing was reloaded: %s", error)
        return
    except Exception:
        _log.exception("the file could not be reloaded")
        return
    for why in told.refused:
        _log.error("nothing was reloaded: %s", why)
    for line in (*told.changes, *told.stays) if not told.refused else ():
        _log.warning("reloaded: %s", line)


def serve(
    service: Service,
    listening: socket.socket,
    ready: Callable[[], None],
    more: Sequence[BaseRoute] = (),
) -> None:
    """Serve until SIGINT or SIGTERM; return when all that was accepted is committed.

    `more` routes are served beside those of the API and the page.
    """
    limits, proxies = service.config.limits, proxies_of(os.environ.get(PROXIES, ""))
    allowed = allow_connections(limits.connections)
    table = ConnectionTable(replace(limits, connections=allowed), proxies)

    def use(limits: Limits) -> None:
        table.use(replace(limits, connections=allow_connections(limits.connections)))

    service.uses_limits.append(use)
    log = logging.getLogger("uvicorn.error")  # strangers must not fill it
    log.setLevel(logging.ERROR)
    log.addFilter(PerMinuteFilter())
    app = build_app(service)
    app.router.routes.extend(more)
    server = _Server(
        uvicorn.Config(
            app,
            http=partial(GuardedProtocol, table),  # type: ignore[arg-type]
            ws="none",
            proxy_headers=bool(proxies),
            forwarded_allow_ips=[str(network) for network in proxies],
            log_config=None,  # json_logging.py
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
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
        loop.add_signal_handler(signal.SIGHUP, lambda: loop.run_in_executor(None, _reload, service))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            ready()
        await serving

    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(run())
