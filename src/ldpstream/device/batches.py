"""Batches of many devices' records, as a bridge or a gateway sends them to a collector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from ldpstream.device.exchange import Conversation, Pause, Request, Response, Unreachable
from ldpstream.protocol.messages import Proof, SubmitBatch

BATCH = 1000
"""Records in one request; fewer where the collector answers that these are too large."""
TOO_LARGE = 413


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
) -> Conversation[list[Decided]]:
    """Send records until the collector has accepted or refused each, or `give_up()` is true.

    The collector's operator sets how much it takes at once, so a part that is too large is halved.
    A single record that is too large counts as refused.
    """
    decided: list[Decided] = []
    first, most = 0, len(records)
    while first < len(records):
        part = records[first : first + most]
        request = Request.of(SubmitBatch(stream, round_name, b"".join(part), proof))
        response = yield from insist(request, pause, give_up)
        if response is None:
            break
        if response.status == TOO_LARGE and len(part) > 1:
            most = len(part) // 2
            continue
        decided.append(Decided(len(part), response))
        first += len(part)
    return decided


def insist(
    request: Request, pause: Callable[[int], float], give_up: Callable[[], bool]
) -> Conversation[Response | None]:
    """Retry with backoff until the answer is neither 429 nor 5xx; return None if given up."""
    for failures in count(1):
        try:
            response = yield request
        except Unreachable:
            pass
        else:
            assert response is not None
            if response.status != 429 and response.status < 500:
                return response
        yield Pause(pause(failures))
        if give_up():
            return None
    raise AssertionError("counting has no end")
