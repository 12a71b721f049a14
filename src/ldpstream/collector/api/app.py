"""The application: routes, error handlers, and the life of the service around them."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ldpstream import __version__
from ldpstream.collector.api.administration import administration
from ldpstream.collector.api.alerts import alerts
from ldpstream.collector.api.annotations import annotation_routes
from ldpstream.collector.api.cross_origin import CrossOrigin
from ldpstream.collector.api.enrolment import enrolment
from ldpstream.collector.api.ingest import Batch, CountedRefusal, SingleReport
from ldpstream.collector.api.metrics import metrics
from ldpstream.collector.api.openapi import describe
from ldpstream.collector.api.page import mount_page
from ldpstream.collector.api.privacy import privacy
from ldpstream.collector.api.problems import (
    on_anything_else,
    on_error,
    on_http_error,
    on_invalid,
    on_store_failure,
    refusal_of,
)
from ldpstream.collector.api.releases import releases
from ldpstream.collector.api.rounds import CurrentRounds
from ldpstream.collector.api.status import status
from ldpstream.collector.api.texts import texts
from ldpstream.collector.service.service import Service
from ldpstream.errors import LdpStreamError
from ldpstream.protocol.messages import BATCH, PREFIX, REPORTS, ROUNDS


def build_app(service: Service) -> FastAPI:
    """The API of a service, which starts and stops with it."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await run_in_threadpool(service.stop)

    app = FastAPI(
        title="ldpstream collector",
        version=__version__,
        description="Live statistics under w-event local differential privacy.",
        lifespan=life,
        # Their pages load scripts from elsewhere; /openapi.json is all that is needed.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would name the host that the client gave
    )
    app.state.service = service
    # The hot routes stand first: routes are tried in order.
    app.router.routes[:0] = [
        Route(PREFIX + REPORTS, SingleReport(service), methods=["POST"]),
        Route(PREFIX + BATCH, Batch(service), methods=["POST"]),
        Route(PREFIX + ROUNDS, CurrentRounds(service).answer, methods=["GET"]),
    ]
    for routes in (
        enrolment,
        releases,
        texts,
        alerts,
        annotation_routes,
        status,
        privacy,
        administration,
        metrics,
    ):
        app.include_router(routes(service))
    mount_page(app, service)  # the dashboard: api/page.py
    app.add_exception_handler(CountedRefusal, _on_refused)
    app.add_exception_handler(LdpStreamError, on_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(sqlite3.OperationalError, on_store_failure)
    app.add_exception_handler(Exception, on_anything_else)
    describe(app)
    app.add_middleware(CrossOrigin, service=service)
    return app


async def _on_refused(request: Request, error: Exception) -> Response:
    """Answer a report that the intake has refused and counted."""
    assert isinstance(error, LdpStreamError)
    return refusal_of(request, error)
