"""Every sender has a turn, whatever others send."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from ldpstream.collector.intake.fair_queue import FairQueue


@dataclass(frozen=True)
class Piece:
    """What somebody sends."""

    sender: str
    packed: bytes


def queue_of(*pieces: Piece) -> FairQueue[Piece]:
    queue: FairQueue[Piece] = FairQueue()
    for one in pieces:
        queue.put(one)
    queue.close()
    return queue


def test_a_flood_from_one_delays_no_other() -> None:
    flood = [Piece("a", bytes(10)) for _ in range(1000)]
    honest = Piece("b", b"x")
    assert honest in queue_of(*flood, honest).take(20)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=5))), st.integers(1, 20))
def test_all_that_is_put_is_taken_once_and_in_order(
    sent: list[tuple[str, bytes]], most: int
) -> None:
    pieces = [Piece(*one) for one in sent]
    queue = queue_of(*pieces)
    taken: list[Piece] = []
    while part := queue.take(most):
        assert sum(len(one.packed) for one in part[:-1]) < most
        taken += part
    for sender in "abc":
        assert [one for one in taken if one.sender == sender] == [
            one for one in pieces if one.sender == sender
        ]


def test_take_waits_for_what_is_put_and_ends_when_closed() -> None:
    queue: FairQueue[Piece] = FairQueue()
    heard: list[list[Piece]] = []

    def listen() -> None:
        while part := queue.take(100):
            heard.append(part)

    thread = threading.Thread(target=listen)
    thread.start()
    queue.put(Piece("a", b"1"))
    queue.put(Piece("a", b"2"))
    queue.close()
    thread.join(60)
    assert [one.packed for part in heard for one in part] == [b"1", b"2"]
