"""A collector that says what a test wants, and takes what devices send, for the page to show."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ldpstream.collector.api.page import Asset, assets
from ldpstream.protocol.identity import number_of
from ldpstream.protocol.promise import promises, told_openly
from ldpstream.protocol.terms import Terms

KEY = "ab" * 32


@dataclass
class Told:
    """All that is said of one stream."""

    terms: Terms
    releases: list[dict[str, Any]] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    reports: list[bytes] = field(default_factory=list)
    """That devices have sent."""

    def describe(self) -> dict[str, Any]:
        terms = self.terms
        level = {"name": "standard", "epsilon_nano": terms.epsilon_nano, "window": terms.window}
        version = {"version": 1, "from_t": 1, "labels": terms.names, "called": None}
        return {
            "state": "live",
            "why": "reports come",
            "terms": terms.to_json(),
            "pin": terms.pin,
            "selection": "slots",
            "mechanism": "lpf",
            "population": 100_000,
            "thresholds": {},
            "promises": [one.to_json() for one in promises(terms)],
            "enrolment": "public",
            "versions": [version | {"levels": [level | {"oracle": terms.oracle.value}]}],
        }

    def status(self) -> dict[str, Any]:
        now_ms = int(time.time() * 1000)
        return {
            "state": "live",
            "why": "reports come",
            "now_ms": now_ms,
            "t": self.terms.timestamp_at(now_ms),
            "last_release": len(self.releases),
            "doing": "waiting for reports",
            "rounds": [],
            "accepted": len(self.reports),
            "refused": {},
            "suspect": [],
        }

    def notice(self) -> dict[str, Any]:
        terms = self.terms
        report = {
            "level": "",
            "oracle": terms.oracle.value,
            "epsilon_nano": terms.epsilon_nano,
            "bytes": terms.randomiser(terms.epsilon).report_bytes,
            "how_often": "One report in every minute.",
        }
        return self.describe() | {
            "stream": terms.stream,
            "notice": None,
            "question": "Which value each device holds.",
            "reports": [report],
            "attributes": told_openly(terms),
            "leaving": "At any time.",
        }

    def add(self, values: list[float], reach: float = 0.004, **more: Any) -> None:
        """Release these figures for the next timestamp."""
        t = len(self.releases) + 1
        told: dict[str, Any] = {
            "t": t,
            "at_ms": self.terms.end_of(t),
            "fresh": True,
            "missed": False,
        }
        told |= {"asked": 5000, "received": 4900, "devices": {"heard": 96_000, "expected": 100_000}}
        self.releases.append(told | figures(values, reach) | more)


def figures(values: list[float], reach: float) -> dict[str, list[float]]:
    """Return some values with intervals that reach so far."""
    return {
        "values": values,
        "variance": [(reach / 1.645) ** 2] * len(values),
        "low": [value - reach for value in values],
        "high": [value + reach for value in values],
    }


class Pretended:
    """The collector, by name of its streams. Releases are told once; `push` tells one more."""

    def __init__(self, *streams: Told) -> None:
        self.streams = {one.terms.stream: one for one in streams}
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._ending = False
        self._news: asyncio.Event

    def push(self, name: str, values: list[float], **more: Any) -> None:
        """Release more, to whoever listens."""
        self.streams[name].add(values, **more)
        self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    @contextmanager
    def serving(self) -> Iterator[Pretended]:
        config = uvicorn.Config(self._app(), log_level="warning", lifespan="off")
        server, ready = uvicorn.Server(config), threading.Event()

        async def serve() -> None:
            self._loop, self._news = asyncio.get_running_loop(), asyncio.Event()
            ready.set()
            await server.serve(sockets=[self._socket])

        thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
        thread.start()
        ready.wait()
        try:
            yield self
        finally:
            self._ending = server.should_exit = True
            self._loop.call_soon_threadsafe(self._wake)
            thread.join()

    def _app(self) -> Starlette:
        stream = "/v1/streams/{stream}"
        pages = [Route(path, _answering(asset)) for path, asset in assets().items()]
        return Starlette(
            routes=[
                *pages,
                Route("/privacy/{stream}", self._privacy),
                Route("/v1/streams", self._all),
                Route(stream, lambda request: JSONResponse(self._of(request).describe())),
                Route(f"{stream}/status", lambda request: JSONResponse(self._of(request).status())),
                Route(f"{stream}/alerts", self._alerts),
                Route(f"{stream}/changes", lambda _: JSONResponse({"changes": []})),
                Route(f"{stream}/releases", self._releases),
                Route(f"{stream}/feed", self._feed),
                Route(f"{stream}/texts", self._texts),
                Route(f"{stream}/devices", self._enrol, methods=["POST"]),
                Route(f"{stream}/rounds/{{round}}/reports", self._take, methods=["POST"]),
            ]
        )

    def _of(self, request: Request) -> Told:
        return self.streams[request.path_params["stream"]]

    def _all(self, request: Request) -> Response:
        return JSONResponse({"streams": [one.describe() for one in self.streams.values()]})

    def _privacy(self, request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return assets()["/privacy.html"].answer(request)
        return JSONResponse(self._of(request).notice())

    def _alerts(self, request: Request) -> Response:
        return JSONResponse({"alerts": self._of(request).alerts, "changes": []})

    def _releases(self, request: Request) -> Response:
        since, limit = (int(request.query_params[name]) for name in ("since", "limit"))
        found = self._of(request).releases[since - 1 : since - 1 + limit]
        return JSONResponse({"releases": found})

    def _texts(self, request: Request) -> Response:
        """Say something of any text, as a collector does."""
        asked = request.query_params.getlist("text")
        told = [{"text": text, "value": -0.001, "low": 0.0, "high": 0.007} for text in asked]
        return JSONResponse({"t": len(self._of(request).releases), "texts": told})

    def _feed(self, request: Request) -> Response:
        last = int(request.headers.get("last-event-id", "0"))
        return StreamingResponse(
            self._events(self._of(request), last), media_type="text/event-stream"
        )

    async def _events(self, told: Told, last: int) -> AsyncIterator[str]:
        while not self._ending:
            news = self._news
            for release in told.releases[last:]:
                yield f"id: {release['t']}\nevent: release\ndata: {json.dumps(release)}\n\n"
                last += 1
            yield ": waiting\n\n"
            await news.wait()

    async def _enrol(self, request: Request) -> Response:
        told, shown = self._of(request), bytes.fromhex((await request.json())["secret"])
        now_ms = int(time.time() * 1000)
        keys = {"device": number_of(shown).hex(), "key": KEY, "now_ms": now_ms}
        return JSONResponse({"terms": told.terms.to_json(), **keys})

    async def _take(self, request: Request) -> Response:
        self._of(request).reports.append(await request.body())
        now_ms = int(time.time() * 1000)
        return JSONResponse({"status": "accepted", "now_ms": now_ms}, status_code=202)


def _answering(asset: Asset) -> Any:
    async def answer(request: Request) -> Response:
        return asset.answer(request)

    return answer
