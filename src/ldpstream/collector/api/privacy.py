"""What a participant wants to know of a stream, as a page and as JSON: /privacy/{stream}.

The page is the same for every name, so that it tells nothing of private streams: its script asks
for the JSON, with the token that the tab has, and shows it.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ldpstream.collector.api.lookup import readable_stream
from ldpstream.collector.api.page import assets
from ldpstream.collector.service.service import Service
from ldpstream.collector.service.stream_service import StreamService
from ldpstream.durations import DAY_MS
from ldpstream.mechanisms.registry import report_epsilon
from ldpstream.numeric import Range
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.promise import lasting, plain, promises, significant, told_openly
from ldpstream.protocol.terms import SelectionMethod, Terms
from ldpstream.vocabulary import Vocabulary
from ldpstream.vocabulary.device import LONGEST_TEXT

PATH = "/privacy/{stream}"
_HTML = "text/html"
_VARY = "Accept, Accept-Encoding"


def privacy(service: Service) -> APIRouter:
    router = APIRouter(tags=["participants"])

    @router.get(
        PATH,
        response_class=JSONResponse,
        responses={200: {"content": {_HTML: {"schema": {"type": "string"}}}}},
    )
    def describe_privacy(stream: str, request: Request) -> Response:
        """Who asks what and why, what leaves a device, what is promised, and how to leave.

        A browser gets it as a page.
        """
        if _HTML in request.headers.get("accept", ""):
            answer = assets()["/privacy.html"].answer(request)
        else:
            answer = JSONResponse(describe(readable_stream(request, stream)))
        answer.headers["Vary"] = _VARY
        return answer

    return router


def describe(stream: StreamService) -> dict[str, Any]:
    """Return all that the page shows of a stream."""
    terms, notice = stream.terms, stream.config.notice
    longest = max(one.window for one in terms.strata)
    return {
        "stream": terms.stream,
        "notice": None if notice is None else notice.to_json(),
        "question": _question(terms),
        "promises": [one.to_json() for one in promises(terms)],
        "attributes": told_openly(terms),
        "reports": [_report(stream, one) for one in terms.strata],
        "leaving": LEAVING.format(time=lasting(longest * terms.interval_ms)),
        "enrolment": "public" if stream.config.public_enrolment else "token",
        "retired": stream.config.retired,
        "pin": terms.pin,
        "terms": terms.to_json(),
    }


LEAVING = (
    "A person may leave at any time, and nobody has to agree. The program on the device has a"
    " command for it (python -m ldpstream.device leave FILE, or device.leave() in JavaScript). It"
    " deletes the key, the secret and the reports that the device keeps, and tells the collector."
    " Only the account of what was spent stays on the device for another {time}, so that coming"
    " back cannot exceed the promise. Figures that were published before do not change."
)


def _question(terms: Terms) -> str:
    if isinstance(terms.values, Range):
        low, high = terms.values.low, terms.values.high
        held = f"one number from {plain(low)} to {plain(high)}"
    elif isinstance(terms.values, Vocabulary):
        held = (
            f"any text of at most {LONGEST_TEXT} bytes, or the first bytes of it, hashed into one"
            f" of {len(terms.values):,} buckets"
        )
    else:
        held = f"one of {len(terms.values):,} values, listed below"
        if terms.other is not None:
            held += f'; a device without a value reports "{terms.other}"'
    return f"Every {lasting(terms.interval_ms)}: which value each device holds, {held}."


def _report(stream: StreamService, terms: Terms) -> dict[str, Any]:
    """Return how one report is made at a level of privacy, and how often."""
    epsilon = _epsilon_of_a_report(stream, terms)
    return {
        "level": terms.level,
        "oracle": terms.oracle.value,
        "epsilon_nano": epsilon.nano,
        "bytes": terms.randomiser(epsilon).report_bytes,
        "how_often": _how_often(terms, stream.config.selection, epsilon),
    }


def _epsilon_of_a_report(stream: StreamService, terms: Terms) -> Epsilon:
    if stream.config.selection is SelectionMethod.SLOTS:
        return terms.epsilon
    return report_epsilon(stream.config.mechanism, stream.config.settings)


def _how_often(terms: Terms, selection: SelectionMethod, epsilon: Epsilon) -> str:
    window = terms.window * terms.interval_ms
    daily = significant(DAY_MS / window)
    if selection is SelectionMethod.SLOTS:
        return (
            f"One report in every {lasting(window)}, {daily} a day, at a moment that the device"
            " works out by itself. Nobody asks it."
        )
    if epsilon < terms.epsilon:
        return (
            "The collector may ask at every timestamp. A report spends a share of epsilon, and all"
            f" reports of any {lasting(window)} together stay within the promise."
        )
    chosen = "by lot" if selection is SelectionMethod.ROSTER else "by its own coin"
    return (
        f"At most one report in any {lasting(window)}, {daily} a day, when the collector asks and"
        f" the device is chosen {chosen}. It refuses to answer more often."
    )
