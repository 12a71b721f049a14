"""Several conversations as one, for a device that has a single thread for all of its streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

from ldpstream.device.exchange import (
    LONGEST_NAP,
    Connect,
    Conversation,
    Pause,
    Request,
    Response,
    Stop,
    Unreachable,
    never,
)
from ldpstream.protocol.messages import ListRounds

SHARED_PATIENCE = 5.0
"""Seconds for a request, besides what it asks the collector to hold it back: others wait for it."""
SHARED_WAIT = 2
"""Seconds of a long poll, at most, if other streams share the thread."""

T = TypeVar("T")


@dataclass
class _Part:
    """A conversation that waits until `wake_ms` to go on."""

    talk: Conversation[None]
    wake_ms: int
    order: int


def interleave(
    talks: Sequence[tuple[str, Conversation[None]]], now_ms: Callable[[], int], stop: Stop = never
) -> Conversation[None]:
    """Carry on several conversations, each with the collector at its URL, until one ends.

    While one pauses, the others go on: a collector that does not answer keeps no other stream
    waiting for longer than a request takes. Of those that are due, the one goes first that is due
    for the longest time.
    """
    orders = count()
    parts = [_Part(addressed(talk, url), now_ms(), next(orders)) for url, talk in talks]
    try:
        while not stop():
            part = min(parts, key=lambda one: (one.wake_ms, one.order))
            wait_ms = part.wake_ms - now_ms()
            if wait_ms > 0:
                yield Pause(min(wait_ms / 1000, LONGEST_NAP), stop)
                continue
            part.order = next(orders)
            pause = yield from _until_a_pause(part)
            if pause is None:
                return
            part.wake_ms = now_ms() + round(1000 * pause)
    finally:
        for part in parts:
            part.talk.close()


def addressed(talk: Conversation[T], url: str) -> Conversation[T]:
    """Carry on a conversation with the collector at this URL, within one with several."""
    reply: Response | None = None
    fault: Unreachable | None = None
    while True:
        try:
            step = talk.send(reply) if fault is None else talk.throw(fault)
        except StopIteration as end:
            result: T = end.value
            return result
        reply, fault = None, None
        try:
            reply = yield step if isinstance(step, Pause) else _shared(step, url)
        except Unreachable as lost:
            fault = lost


def _until_a_pause(part: _Part) -> Conversation[float | None]:
    """Continue a conversation until it pauses; return for how many seconds, or None at its end."""
    reply: Response | None = None
    fault: Unreachable | None = None
    while True:
        try:
            step = part.talk.send(reply) if fault is None else part.talk.throw(fault)
        except StopIteration:
            return None
        if isinstance(step, Pause):
            return step.seconds
        reply, fault = None, None
        try:
            reply = yield step
        except Unreachable as lost:
            fault = lost


def _shared(step: Request | Connect, url: str) -> Request | Connect:
    """Return a step for one of several collectors, on which the others do not wait for long."""
    message = step.message if isinstance(step, Request) else None
    held = message.wait if isinstance(message, ListRounds) else 0
    return replace(step, url=url, patience=min(step.patience, held + SHARED_PATIENCE))
