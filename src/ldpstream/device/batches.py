"""Batches of many devices' records, as a bridge or a gateway sends them to a collector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from ldpstream.device.answers import read_object, refusal_in
from ldpstream.device.exchange import Conversation, Pause, Request, Response, Unreachable
from ldpstream.protocol.answers import BatchAnswer, Refused
from ldpstream.protocol.messages import Proof, SubmitBatch

BATCH = 1000
"""Records in one request; fewer where the collector answers that these are too large."""
TOO_LARGE = 413
TOO_MANY = 429


@dataclass(frozen=True)
class Decided:
    """The collector's answer for the next `number` records."""

    number: int
    response: Response


def pass_on(
    stream: str,
    round_name: str,
    records: Sequence[bytes],
    pause: Callable[[int], float],
    give_up: Callable[[], bool],
    proof: Proof | None,
    is_final: Callable[[int, Response], bool] = lambda records, response: _is_final(response),
) -> Conversation[list[Decided]]:
    """Send records until the collector has accepted or refused each, or `give_up()` is true.

    After an answer that is not final the same bytes are sent again: with `is_decided`, after one
    that nobody understands, or a page of a proxy.

    The collector's operator sets how much it takes at once, so a part that is too large is halved.
    A single record that is too large counts as refused.
    """
    decided: list[Decided] = []
    first, most = 0, len(records)
    while first < len(records):
        part = records[first : first + most]
        request = Request.of(SubmitBatch(stream, round_name, b"".join(part), proof))
        response = yield from insist(request, pause, give_up, partial(is_final, len(part)))
        if response is None:
            break
        if response.status == TOO_LARGE and len(part) > 1:
            most = len(part) // 2
            continue
        decided.append(Decided(len(part), response))
        first += len(part)
    return decided


def is_decided(records: int, response: Response) -> bool:
    """Return whether an answer is a collector's word on so many records: a proxy's page is none."""
    if response.status == 200:
        try:
            BatchAnswer.read(read_object(response, "batch"), records)
        except Refused:
            return False
        return True
    # Not even "round-early" is tried again: whoever names a far round would hold up all others.
    named = response.status < 500 and refusal_in(response, "a batch").facts["code"] != ""
    return response.status == TOO_LARGE or (_is_final(response) and named)


def _is_final(response: Response) -> bool:
    return response.status != TOO_MANY and response.status < 500


def insist(
    request: Request,
    pause: Callable[[int], float],
    give_up: Callable[[], bool],
    is_final: Callable[[Response], bool] = _is_final,
) -> Conversation[Response | None]:
    """Retry with backoff until an answer is final; return None if given up.

    Unless told otherwise, what is neither 429 nor 5xx is final.
    """
    for failures in count(1):
        try:
            response = yield request
        except Unreachable:
            pass
        else:
            assert response is not None
            if is_final(response):
                return response
        yield Pause(pause(failures))
        if give_up():
            return None
    raise AssertionError("counting has no end")
