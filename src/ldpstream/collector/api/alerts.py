"""GET /v1/streams/{stream}/alerts: what is pending, firing and resolved."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from ldpstream.collector.alerts.machine import Alert
from ldpstream.collector.alerts.rules import On, Rule
from ldpstream.collector.alerts.watch import Watch
from ldpstream.collector.api.lookup import readable_stream
from ldpstream.collector.service import Service


def alerts(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["releases"])

    @router.get("/streams/{stream}/alerts")
    def list_alerts(stream: str, request: Request) -> dict[str, Any]:
        """The stream's alerts: their rules, their states as in Prometheus, the last figures."""
        readable_stream(request, stream)
        watch = service.watches.get(stream)
        if watch is None:
            return {"stream": stream, "alerts": []}
        return {
            "stream": stream,
            "alerts": [_shown(watch, rule, watch.alerts[rule.fingerprint]) for rule in watch.rules],
        }

    return router


def _shown(watch: Watch, rule: Rule, alert: Alert) -> dict[str, Any]:
    latest = watch.latest
    parts = {"value": "values", "low": "low", "high": "high"}
    return {
        "name": rule.name,
        "label": rule.label,
        "above" if rule.above else "below": rule.threshold,
        "on": rule.on,
        "probability": rule.probability if rule.on is On.INTERVAL else None,
        "for_ms": rule.hold_ms,
        "keep_firing_for_ms": rule.keep_firing_ms,
        "fingerprint": rule.fingerprint,
        **alert.to_json(),
        **{
            name: None if latest is None else latest.content[part][rule.place]
            for name, part in parts.items()
        },
    }
