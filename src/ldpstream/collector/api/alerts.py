"""Alerts of a stream: what is pending, firing and resolved; and the rules, for admins."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ldpstream.collector.alerts.conditions import PROBABILITY, RECENT, Comparand
from ldpstream.collector.alerts.evaluator import MOST_REMEMBERED, AlertEvaluator
from ldpstream.collector.alerts.rulebook import RuleBook
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.alerts.state import Alert
from ldpstream.collector.api.limits import ReaderPool, read_json, sender_of
from ldpstream.collector.api.lookup import check_admin, find_stream, readable_stream
from ldpstream.collector.api.openapi import problems
from ldpstream.collector.service.service import Service
from ldpstream.protocol.messages import ALERT_RULE, ALERT_RULES, ALERTS, PREFIX

RULE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Rule",
    "description": "As a [[stream.alert]] of the configuration; give one condition: above, below, "
    "no_reports, reports_below, wider_than or changed_by.",
    "additionalProperties": False,
    "properties": {
        "label": {
            "type": "string",
            "description": "one of the stream's labels; not for rules about reports",
        },
        "above": {"type": "number", "description": "the threshold, a share"},
        "below": {"type": "number"},
        "wider_than": {"type": "number", "description": "the width of the label's interval"},
        "changed_by": {"type": "number", "description": "the size of a change of level at once"},
        "within": {
            "type": "integer",
            "minimum": 1,
            "default": RECENT,
            "description": "with changed_by: for how many timestamps a change is recent",
        },
        "no_reports": {
            "type": "string",
            "examples": ["5m"],
            "description": "how long nobody reports; without label",
        },
        "reports_below": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1,
            "description": "the share of the planned reports that comes; without label",
        },
        "on": {
            "type": "string",
            "enum": [one.value for one in Comparand],
            "default": Comparand.ESTIMATE.value,
        },
        "probability": {
            "type": "number",
            "minimum": 0.5,
            "exclusiveMaximum": 1,
            "default": PROBABILITY,
            "description": 'with on = "interval": how sure it must be',
        },
        "group": {
            "type": "string",
            "examples": ["country:de"],
            "description": "with above, below or wider_than: the group of devices it is about",
        },
        "for": {"type": "string", "examples": ["30s"], "default": "0s"},
        "keep_firing_for": {"type": "string", "examples": ["1m"], "default": "0s"},
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
    },
    "examples": [{"label": "north", "above": 0.3, "on": "interval", "for": "30s"}],
}
_TAKES_A_RULE = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": RULE_SCHEMA}}}
}


def alerts(service: Service) -> APIRouter:
    router = APIRouter(prefix=PREFIX)
    router.include_router(_states(service))
    router.include_router(_rules(service))
    return router


def _states(service: Service) -> APIRouter:
    router = APIRouter(tags=["releases"])
    pool = ReaderPool()

    @router.get(ALERTS, responses=problems(401, 404))
    async def list_alerts(stream: str, request: Request) -> dict[str, Any]:
        """The stream's alerts: their rules, their states as in Prometheus, the last figures.

        `since_ms` is since when it is in its state, `probability` how sure the last release makes
        it that the condition holds, `silenced_until_ms` until when nothing is sent about it;
        `changes` are the last that fired or resolved.
        """
        readable_stream(request, stream)
        given = service.evaluators[stream], MOST_REMEMBERED
        return await pool.run(sender_of(request.scope), shown, *given)

    return router


def _rules(service: Service) -> APIRouter:
    router = APIRouter(tags=["admin"], dependencies=[Depends(check_admin)])

    def book_of(stream: str) -> RuleBook:
        find_stream(service, stream)
        return service.rulebooks[stream]

    @router.get(ALERT_RULES, responses=problems(401, 404))
    def list_rules(stream: str) -> dict[str, Any]:
        """The stream's rules, of the file and of the API. Needs the admin token."""
        book = book_of(stream)
        return {"stream": stream, "rules": [_listed(book, rule) for rule in book.rules]}

    @router.post(
        ALERT_RULES,
        status_code=201,
        openapi_extra=_TAKES_A_RULE,
        responses=problems(400, 401, 404, 409, 413),
    )
    async def add_rule(stream: str, request: Request, response: Response) -> dict[str, Any]:
        """Add a rule, which is kept over restarts. Needs the admin token."""
        book = book_of(stream)
        added = await run_in_threadpool(book.add, await read_json(request))
        response.headers["Location"] = f"{request.url.path}/{added.fingerprint}"
        return _listed(book, added)

    @router.put(
        ALERT_RULE,
        openapi_extra=_TAKES_A_RULE,
        responses=problems(400, 401, 404, 409, 413),
    )
    async def replace_rule(stream: str, rule_id: str, request: Request) -> dict[str, Any]:
        """Put another rule in the place of one; its alert begins anew. Needs the admin token.

        The id changes with the name and the label.
        """
        book = book_of(stream)
        given = await read_json(request)
        return _listed(book, await run_in_threadpool(book.replace, rule_id, given))

    @router.delete(ALERT_RULE, status_code=204, responses=problems(401, 404, 409))
    def remove_rule(stream: str, rule_id: str) -> None:
        """Remove a rule; if its alert fires, it is resolved. Needs the admin token."""
        book_of(stream).remove(rule_id)

    return router


def _listed(book: RuleBook, rule: Rule) -> dict[str, Any]:
    source = "file" if book.is_fixed(rule) else "api"
    return {"id": rule.fingerprint, "source": source, "rule": rule.to_json()}


def shown(evaluator: AlertEvaluator, changes: int) -> dict[str, Any]:
    """The alerts of a stream, and the last so many changes."""
    return {
        "stream": evaluator.stream,
        "t": evaluator.last_t,
        "alerts": [_shown(evaluator, rule, alert) for rule, alert in evaluator.shown],
        "changes": list(evaluator.history[-changes:]),
    }


def _shown(evaluator: AlertEvaluator, rule: Rule, alert: Alert) -> dict[str, Any]:
    latest = evaluator.latest
    latest = None if latest is None else rule.seen(latest)
    figure = None if latest is None else rule.condition.figure(latest)
    known = latest is not None and (rule.label is None or figure is not None)
    return {
        "id": rule.fingerprint,
        "name": rule.name,
        "kind": rule.condition.kind.value,
        "label": rule.label,
        "rule": rule.to_json(),
        "since_ms": alert.since_ms,
        **alert.to_json(),
        "value": figure and figure.value,
        "low": figure and figure.low,
        "high": figure and figure.high,
        "probability": rule.condition.sure(latest) if latest is not None and known else None,
        "silenced_until_ms": evaluator.silence_of(rule),
    }
