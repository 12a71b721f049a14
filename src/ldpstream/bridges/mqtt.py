"""A bridge between a collector and an MQTT broker: rounds out, reports in.

It keeps no state, and holds no secret but the read token of a private stream. A report is
acknowledged to the broker when the collector has it on disk, or has refused it for good: a bridge
that dies is replaced by another that is given the rest. What comes twice is counted once, by the
collector.
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from ldpstream.device.answers import read_object, refusal_in
from ldpstream.device.backoff import pause_after, system_jitter
from ldpstream.device.batches import BATCH, is_decided, pass_on
from ldpstream.device.exchange import PATIENCE, Request, Response, Transport, Unreachable, drive
from ldpstream.device.mqtt import AT_LEAST_ONCE, Broker
from ldpstream.device.transport import HttpTransport
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.answers import Announcement, BatchAnswer, Refused
from ldpstream.protocol.limits import HEAD_BYTES
from ldpstream.protocol.messages import (
    ListRounds,
    TokenProof,
    notice_topic,
    reports_topic,
    round_in,
    rounds_topic,
)
from ldpstream.protocol.names import is_round_name
from ldpstream.protocol.notice import Notice

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

LONGEST_POLL = 20
BREATH_SECONDS = 0.05
"""How long reports are gathered before they are forwarded."""
LONGEST_PAUSE = 5.0


@dataclass
class ForwardedCounts:
    """How many of the reports so far were accepted, repeated or refused."""

    accepted: int = 0
    repeated: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class MqttBridge:
    """A bridge for one stream in which all devices hear the same: open selection, or slots."""

    def __init__(self, url: str, stream: str, broker: Broker, token: str = "") -> None:
        self._url = url
        self._stream = stream
        self._broker = broker
        self._proof = TokenProof(token) if token else None
        self._stopping = threading.Event()
        self._waiting: queue.SimpleQueue[MQTTMessage] = queue.SimpleQueue()
        self.passed = ForwardedCounts()
        self._followed: set[str] = set()
        """The pins of the terms whose rounds are announced beside those of the first."""
        self._renew = False
        """Whether a device whose report was passed on last is to renew its key."""

    def stop(self) -> None:
        """Let `run` return; reports that are not forwarded yet stay with the broker."""
        self._stopping.set()

    def run(self) -> None:
        """Forward rounds and reports until told to stop."""
        first = self._ask_rounds(HttpTransport(), after=0, wait=0)
        if first.status != 200:
            raise self._explain(first)
        # A fixed client id and a persistent session: the broker keeps reports while no bridge runs.
        client = self._broker.client(
            client_id=f"ldpstream-bridge-{self._stream}", clean_session=False, manual_ack=True
        )
        client.on_message = lambda _, __, message: self._waiting.put(message)
        topic = reports_topic(self._stream, "+")  # of any round
        self._broker.connect(client, heard=lambda client: client.subscribe(topic, AT_LEAST_ONCE))
        self._start_announcing(client, 1)
        try:
            self._pass_on(client)
        finally:
            client.disconnect()
            client.loop_stop()

    def _explain(self, response: Response) -> Exception:
        if response.status == 400:
            return Mistake(
                Problem.OPTION,
                option="--stream",
                given=self._stream,
                expected="a stream with slots or open selection: a roster asks device by device",
            )
        refusal = refusal_in(response, "to list rounds")
        return Mistake(refusal.problem, **refusal.facts)

    # Rounds

    def _start_announcing(self, client: Client, version: int) -> None:
        arguments = (client, version)
        threading.Thread(target=self._announce, args=arguments, daemon=True).start()

    def _announce(self, client: Client, version: int) -> None:
        """Publish retained announcements and notices: late subscribers get the last at once.

        Devices with each version of the terms have topics of their own.
        """
        transport, serial, failures = HttpTransport(), 0, 0
        while not self._stopping.is_set():
            try:
                response = self._ask_rounds(transport, serial, LONGEST_POLL, version)
                if response.status != 200:
                    raise refusal_in(response, "to list rounds")
                told = read_object(response, "rounds")
                serial = Announcement.read(told).serial
                notice = replace(Notice.read(told), renew=self._renew)
            except (Unreachable, Refused):
                failures += 1
                self._stopping.wait(_pause(failures))
                continue
            failures = 0
            for topic, payload in (
                (rounds_topic(self._stream, version), response.body),
                (notice_topic(self._stream, version), json.dumps(notice.to_json())),
            ):
                client.publish(topic, payload, AT_LEAST_ONCE, retain=True)
            # One thread for each version: whatever the collector names, a successor follows once.
            if notice.successor is not None and notice.successor not in self._followed:
                self._followed.add(notice.successor)
                self._start_announcing(client, version + 1)

    def _ask_rounds(
        self, transport: HttpTransport, after: int, wait: int, version: int = 1
    ) -> Response:
        message = ListRounds(self._stream, after, wait, self._proof, version)
        return transport.send(self._url, Request.of(message, wait + PATIENCE))

    # Reports

    def _pass_on(self, client: Client) -> None:
        transport = HttpTransport()
        while not self._stopping.is_set():
            for (round_name, size), messages in self._gathered().items():
                if not is_round_name(round_name):  # anyone may publish to any topic
                    self.passed.refused["round-unknown"] += len(messages)
                elif size <= HEAD_BYTES:
                    self.passed.refused["report-length"] += len(messages)
                elif not self._deliver(transport, round_name, messages):
                    return
                for message in messages:
                    client.ack(message.mid, message.qos)

    def _gathered(self) -> dict[tuple[str, int], list[MQTTMessage]]:
        """Gather reports for a moment, and group them by round and length as batches need it."""
        found: dict[tuple[str, int], list[MQTTMessage]] = {}
        with contextlib.suppress(queue.Empty):
            messages = [self._waiting.get(timeout=1.0)]
            self._stopping.wait(BREATH_SECONDS)
            while len(messages) < BATCH and not self._waiting.empty():
                messages.append(self._waiting.get())
            for message in messages:
                key = round_in(message.topic), len(message.payload)
                found.setdefault(key, []).append(message)
        return found

    def _deliver(self, transport: Transport, round_name: str, messages: list[MQTTMessage]) -> bool:
        """Send reports until the collector has decided on them; False if told to stop before."""
        records = [bytes(message.payload) for message in messages]
        decided = drive(
            pass_on(
                self._stream,
                round_name,
                records,
                _pause,
                self._stopping.is_set,
                self._proof,
                is_decided,
            ),
            partial(transport.send, self._url),
            lambda seconds, stop: self._stopping.wait(seconds),
        )
        for one in decided:
            self._count(one.response, one.number)
        return sum(one.number for one in decided) == len(messages)

    def _count(self, response: Response, reports: int) -> None:
        if response.status != 200:  # the round is over, or such a report has no place in it
            code = refusal_in(response, "a batch").facts["code"]
            self.passed.refused[str(code)] += reports
            return
        told = read_object(response, "batch")
        answer = BatchAnswer.read(told, reports)
        self._renew = Notice.read(told).renew
        self.passed.accepted += answer.accepted
        self.passed.repeated += answer.repeated
        self.passed.refused.update(answer.refused)


def _pause(failures: int) -> float:
    return min(pause_after(failures, 0.1, 0.0, system_jitter), LONGEST_PAUSE)
