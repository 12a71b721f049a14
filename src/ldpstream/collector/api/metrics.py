"""GET /metrics: what Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterator, Set

from fastapi import APIRouter
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response

from ldpstream.collector.api.lookup import may_read
from ldpstream.collector.api.service_metrics import ServiceState
from ldpstream.collector.clock import ticks
from ldpstream.collector.service.service import Service
from ldpstream.errors import Mistake, Problem

FRESH_SECONDS = 1.0
"""An answer is given again for so long: to make one keeps everything else waiting."""


def metrics(service: Service) -> APIRouter:
    router = APIRouter(tags=["status"])
    registry = service.meters.registry
    registry.register(ServiceState(service))
    answers: dict[tuple[frozenset[str], str], tuple[float, bytes]] = {}

    @router.get("/metrics")
    async def read_metrics(request: Request) -> Response:
        """Metrics for Prometheus, of the streams that whoever asks may read.

        Private streams need the admin token, or their read token.
        """
        visible = frozenset(name for name in service.streams if may_read(request, name))
        if not visible:
            raise Mistake(Problem.TOKEN, kind="admin")
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        key, now = (visible, media_type), ticks()
        made, body = answers.get(key, (-FRESH_SECONDS, b""))
        if now - made >= FRESH_SECONDS:
            body = encode(_Visible(registry, visible))
            answers[key] = now, body
        return Response(body, media_type=media_type)

    return router


class _Visible(Collector):
    """A registry without the series of streams that are not to be seen."""

    def __init__(self, registry: CollectorRegistry, streams: Set[str]) -> None:
        self._registry = registry
        self._streams = streams

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            part = Metric(family.name, family.documentation, family.type, family.unit)
            part.samples = [
                one
                for one in family.samples
                if one.labels["stream"] in self._streams and not one.name.endswith("_created")
            ]
            yield part
