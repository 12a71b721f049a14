"""The description of the plain routes, which FastAPI cannot derive."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ldpstream.protocol.limits import LONGEST_WAIT
from ldpstream.protocol.messages import (
    BATCH,
    BATCH_TYPE,
    DEVICE_HEADER,
    MAC_HEADER,
    PREFIX,
    REPORT_TYPE,
    REPORTS,
    ROUNDS,
)

_PROBLEM = {
    "description": "refused: an RFC 9457 problem body",
    "content": {"application/problem+json": {"schema": {"type": "object"}}},
}


def _parameter(name: str, place: str, kind: str, about: str, required: bool) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": required,
        "description": about,
        "schema": {"type": kind},
    }


_STREAM = _parameter("stream", "path", "string", "the stream's name", True)
_ROUND = _parameter("round", "path", "string", "the round's name", True)
_DEVICE = "32 hex digits: the device's number"
_ROUNDS_MAC = _parameter(
    MAC_HEADER,
    "header",
    "string",
    "32 hex digits: the MAC of the device's question; or send a read token, of a private stream",
    False,
)


def _body(media_type: str) -> dict[str, Any]:
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {"required": True, "content": {media_type: binary}}


def _answers(*known: tuple[int, str]) -> dict[str, Any]:
    plain = {"application/json": {"schema": {"type": "object"}}}
    answers: dict[str, Any] = {
        str(status): {"description": about, "content": plain} for status, about in known
    }
    return answers | {"default": _PROBLEM}


PLAIN_PATHS: dict[str, Any] = {
    PREFIX + ROUNDS: {
        "get": {
            "summary": "The current rounds, by long poll",
            "operationId": "current_rounds",
            "tags": ["devices"],
            "parameters": [
                _STREAM,
                _parameter("after", "query", "integer", "the last serial seen", False),
                _parameter(
                    "wait", "query", "integer", f"seconds to wait, at most {LONGEST_WAIT}", False
                ),
                _parameter(
                    "version", "query", "integer", "that of the device's terms, from 1", False
                ),
                _parameter(DEVICE_HEADER, "header", "string", f"{_DEVICE}; with a roster", False),
                _ROUNDS_MAC,
            ],
            "responses": _answers((200, "the announcement")),
        }
    },
    PREFIX + REPORTS: {
        "post": {
            "summary": "Submit one report",
            "operationId": "submit_report",
            "tags": ["devices"],
            "parameters": [
                _STREAM,
                _ROUND,
                _parameter(DEVICE_HEADER, "header", "string", _DEVICE, True),
                _parameter(MAC_HEADER, "header", "string", "32 hex digits: the code", True),
            ],
            "requestBody": _body(REPORT_TYPE),
            "responses": _answers((202, "stored durably, to be counted once")),
        }
    },
    PREFIX + BATCH: {
        "post": {
            "summary": "Submit many reports",
            "operationId": "submit_batch",
            "tags": ["devices"],
            "parameters": [
                _STREAM,
                _ROUND,
                _parameter(
                    DEVICE_HEADER, "header", "string", f"{_DEVICE}; of a private stream", False
                ),
                _ROUNDS_MAC,
            ],
            "requestBody": _body(BATCH_TYPE),
            "responses": _answers((200, "how many were accepted, repeated, refused by reason")),
        }
    },
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors that a route may answer with, for its description."""
    return dict.fromkeys(statuses, _PROBLEM)


def describe(app: FastAPI) -> None:
    """Let the app describe its plain routes as well."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
            )
            schema["paths"] |= PLAIN_PATHS
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
