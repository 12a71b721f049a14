"""The delivery of many devices' reports in batches, and the count of what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ldpstream.device.answers import notice_in, read_object, refusal_in
from ldpstream.device.backoff import pause_after, system_jitter
from ldpstream.device.batches import pass_on
from ldpstream.device.exchange import (
    AsyncTransport,
    Request,
    Response,
    Unreachable,
    drive_async,
    sleep_async,
)
from ldpstream.errors import LdpStreamError, Problem
from ldpstream.protocol.answers import BatchAnswer, Refused
from ldpstream.protocol.messages import ListRounds, Proof
from ldpstream.protocol.notice import Halt, Notice


@dataclass(eq=False)
class Deliveries:
    """Reports that have arrived, those that have not, and why they were refused."""

    transport: AsyncTransport
    url: str
    stream: str
    delivered: int = 0
    undelivered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    halt: Halt | None = None
    """Why the stream takes no reports, by the last answer."""
    heard: Callable[[Notice], None] = lambda notice: None
    """Called with the notice that the collector's answers carry."""

    async def goes_on(self, proof: Proof | None, version: int) -> bool:
        """Return whether the stream takes reports; if it did not when it was last heard of, ask."""
        if self.halt is not None:
            request = Request.of(ListRounds(self.stream, 0, 0, proof, version))
            try:
                response = await self.transport.send(self.url, request)
            except Unreachable:
                return False
            if response.status == 200:
                self.halt = notice_in(response).halt
        return self.halt is None

    async def send(
        self,
        round_name: str,
        records: Sequence[bytes],
        is_over: Callable[[], bool],
        proof: Proof | None,
    ) -> list[bool]:
        """Send the records of one round until it is over; return which the collector has judged."""
        judged: list[bool] = []
        conversation = pass_on(self.stream, round_name, records, backoff, is_over, proof)
        send = partial(self.transport.send, self.url)
        for part in await drive_async(conversation, send, sleep_async):
            judged += part.number * [self._count(part.response, part.number)]
        if given_up := len(records) - len(judged):
            self.undelivered += given_up
            self.refused[Problem.UNREACHABLE.code] += given_up
        return judged + given_up * [False]

    def _count(self, response: Response, number: int) -> bool:
        """Count an answer for so many records; return whether it judges each of them."""
        notice = notice_in(response)  # of a refusal, too: terms may have ended
        self.halt = notice.halt
        self.heard(notice)
        try:
            if response.status != 200:
                raise refusal_in(response, "the reports of a round")
            answer = BatchAnswer.read(read_object(response, "batch"), number)
        except Refused as fault:
            self.undelivered += number
            self.refused[reason_of(fault)] += number
            return False
        counted = answer.accepted + answer.repeated
        self.delivered += counted
        self.undelivered += number - counted
        self.refused.update(answer.refused)
        return True


def reason_of(fault: LdpStreamError) -> str:
    """Return the code of what was refused or undelivered: the collector's own, if it gave one."""
    return str(fault.facts.get("code") or fault.problem.code)


def backoff(failures: int) -> float:
    """Return the seconds before the next try, after so many failures."""
    return pause_after(failures, 0.1, 0.0, system_jitter)
