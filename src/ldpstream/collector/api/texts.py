"""The figures of any texts of a stream of texts, whether or not they are listed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request

from ldpstream.collector.api.limits import ReaderPool, sender_of
from ldpstream.collector.api.lookup import readable_stream
from ldpstream.collector.api.openapi import problems
from ldpstream.collector.service.service import Service
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.messages import PREFIX, TEXTS

MOST_TEXTS = 100
"""In one question."""
LONGEST = 4096
"""The characters of a text that is asked for; what is beyond its first 256 bytes does not count."""


def texts(service: Service) -> APIRouter:
    router = APIRouter(prefix=PREFIX, tags=["releases"])
    pool = ReaderPool()

    @router.get(TEXTS, responses=problems(400, 401, 404))
    async def list_texts(
        stream: str,
        request: Request,
        text: Annotated[list[str], Query(description=f"up to {MOST_TEXTS} times")],
    ) -> dict[str, object]:
        """What the reports of the last three windows say of any texts, with intervals (90 %).

        Nobody has to have named them before. These figures do not come from a filter, and are not
        selected: those of texts that nobody holds are as often below 0 as above.
        """
        found = readable_stream(request, stream)
        if found.config.vocabulary is None:
            raise _refusal("stream", repr(stream), "a stream of texts: this one has a list")
        if len(text) > MOST_TEXTS:
            raise _refusal("text", f"given {len(text)} times", f"at most {MOST_TEXTS}")
        if any(len(one) > LONGEST for one in text):
            raise _refusal("text", "too long", f"at most {LONGEST} characters")

        def read() -> dict[str, object]:
            return found.texts.of(found.terms, text, found.population)

        return {"stream": stream} | await pool.run(sender_of(request.scope), read)

    return router


def _refusal(name: str, given: str, expected: str) -> Mistake:
    return Mistake(Problem.PARAMETER, name=name, given=given, expected=expected)
