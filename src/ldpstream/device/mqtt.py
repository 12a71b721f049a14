"""The MQTT transport of a blocking device, for fleets that already use MQTT (extra `mqtt`).

A device enrols over HTTP, once. From then on it hears of rounds on a retained topic and publishes
its reports, through a broker that `ldpstream bridge mqtt` connects with the collector. Only the
transport differs: the conversations, and every rule of the device, are the same as over HTTP.

The topics are defined in `protocol/messages.py`: announcements are retained on the stream's topic
of rounds, notices on that of notices, and a report is published to the topic of its round, as a
record of a batch. With slots a device listens to notices only.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ldpstream.device.deadline import Deadline
from ldpstream.device.exchange import (
    LARGEST_ANSWER,
    LOOK_SECONDS,
    Connect,
    Request,
    Response,
    unreachable,
)
from ldpstream.device.transport import HttpTransport
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.answers import serial_in
from ldpstream.protocol.messages import ListRounds, SubmitReport, notice_topic, rounds_topic
from ldpstream.protocol.notice import Notice, undated
from ldpstream.protocol.strata import version_in

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

AT_LEAST_ONCE = 1
"""The quality of service. A report that is delivered twice is counted once."""
CONNECTING_SECONDS = 10.0
PORTS = {"mqtt": 1883, "mqtts": 8883}


@dataclass(frozen=True)
class Broker:
    """The address of a broker, and the credentials for it.

    >>> Broker.of("mqtts://broker.example.org")
    Broker(host='broker.example.org', port=8883, secure=True, user=None)
    """

    host: str
    port: int
    secure: bool
    user: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        shown = f"{self.host!r}, port={self.port}, secure={self.secure}, user={self.user!r}"
        return f"Broker(host={shown})"  # never the password

    @classmethod
    def of(cls, url: str, user: str | None = None, password: str | None = None) -> Broker:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        rest = parts.path + parts.query + parts.fragment  # may be part of a password
        if parts.scheme not in PORTS or not parts.hostname or rest not in ("", "/"):
            raise Mistake(
                Problem.OPTION,
                option="the broker",
                given=repr(url.rpartition("@")[2]),  # never the password
                expected="mqtt(s)://host:port, with %40 for @ and so on in a password",
            )
        return cls(
            parts.hostname,
            port or PORTS[parts.scheme],
            parts.scheme == "mqtts",
            user or unquote(parts.username or "") or None,
            password or unquote(parts.password or "") or None,
        )

    @property
    def url(self) -> str:
        return f"mqtt{'s' if self.secure else ''}://{self.host}:{self.port}"

    def client(self, **settings: Any) -> Client:
        """Return a client of this broker that is not connected yet."""
        try:
            from paho.mqtt.client import Client
            from paho.mqtt.enums import CallbackAPIVersion
        except ModuleNotFoundError:
            raise Mistake(Problem.EXTRA_MISSING, what="MQTT", extra="mqtt") from None
        client = Client(CallbackAPIVersion.VERSION2, **settings)
        if self.user is not None:
            client.username_pw_set(self.user, self.password)
        if self.secure:
            client.tls_set()
        return client

    def connect(
        self,
        client: Client,
        *,
        heard: Callable[[Client], object],
        deadline: Deadline | None = None,
    ) -> None:
        """Connect, and call `heard` after every reconnection too: subscriptions may be lost."""
        deadline = deadline or Deadline(CONNECTING_SECONDS)
        wrong: list[object] = []
        settled, abandoned = threading.Event(), threading.Event()

        def on_connect(client: Client, _: Any, __: Any, reason: Any, ___: Any) -> None:
            if reason.is_failure:
                wrong.append(f"the broker refused the connection: {reason}")
            else:
                heard(client)
            settled.set()

        def attempt() -> None:  # in a thread, since it cannot be interrupted
            try:
                client.connect(self.host, self.port)
            except (OSError, ValueError) as fault:
                wrong.append(fault)
                settled.set()
                return
            client.loop_start()
            if abandoned.is_set():
                disconnect(client)

        client.on_connect = on_connect
        threading.Thread(target=attempt, daemon=True).start()
        try:
            while not settled.wait(deadline.left()):
                pass
        except TimeoutError as fault:
            wrong.append(fault)
        if wrong:
            abandoned.set()
            disconnect(client)
            raise unreachable(self.url, wrong[0])


def disconnect(client: Client) -> None:
    """Disconnect; if the broker makes that slow, a background thread completes it."""
    client.disconnect()
    ending = threading.Thread(target=client.loop_stop, daemon=True)
    ending.start()
    ending.join(LOOK_SECONDS)


@dataclass(frozen=True)
class _Announced:
    """The last announcement on a topic, as it came and without the time that it names."""

    serial: int
    payload: bytes
    undated: bytes


class MqttTransport:
    """A transport through a broker; what a broker cannot carry (enrolment) goes over HTTP."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._http = HttpTransport()
        self._client: Client | None = None
        self._topics: set[str] = set()
        self._news = threading.Condition()
        self._announced: dict[str, _Announced] = {}
        """By topic: a device may have several streams."""
        self._live: dict[str, tuple[int, float]] = {}
        """By topic: a collector's time in the last live notice, and when it came (monotonic s)."""
        self._notices: dict[str, Notice] = {}
        """The last notice on each topic; its time has passed."""

    def send(self, url: str, request: Request) -> Response:
        deadline = Deadline(request.patience, request.stop)
        try:
            match request.message:
                case ListRounds(stream, after, wait, _, version):
                    topic = rounds_topic(stream, version)
                    return self._wait_for_rounds(topic, after, wait, deadline)
                case SubmitReport() as report:
                    return self._publish(report, deadline)
        except TimeoutError as fault:
            raise unreachable(self._broker.url, fault) from fault
        return self._http.send(url, request)

    def connect(self, url: str, step: Connect) -> None:
        """Do nothing: a device that publishes stays connected to its broker."""

    def _wait_for_rounds(
        self, topic: str, after: int, seconds: float, deadline: Deadline
    ) -> Response:
        self._connected(topic, deadline)
        end = time.monotonic() + seconds
        with self._news:
            before = known = self._announced.get(topic)
            while known is None or known.serial <= after:
                if (left := end - time.monotonic()) <= 0:
                    break
                self._news.wait(min(left, deadline.left()))
                known = self._announced.get(topic)
            if known is None:
                raise unreachable(self._broker.url, "no round was ever announced; is a bridge up?")
            return Response(200, {}, known.undated if known is before else known.payload)

    def _publish(self, message: SubmitReport, deadline: Deadline) -> Response:
        topic = notice_topic(message.stream, version_in(message.round))
        client = self._connected(topic, deadline)
        sending = client.publish(message.topic, message.record, AT_LEAST_ONCE)
        try:
            while not sending.is_published():
                sending.wait_for_publish(deadline.left())
        except (ValueError, RuntimeError) as fault:
            raise unreachable(self._broker.url, fault) from fault
        return Response(202, {}, self._answer(topic))

    def _answer(self, topic: str) -> bytes:
        """Return what the collector would have answered: the notice, with the time of now."""
        notice = replace(self._notices.get(topic, Notice()), now_ms=None)
        if topic in self._live:
            said_ms, heard = self._live[topic]
            notice = replace(notice, now_ms=said_ms + int(1000 * (time.monotonic() - heard)))
        told = notice.to_json()
        return json.dumps(told).encode() if told else b""

    def _connected(self, topic: str, deadline: Deadline) -> Client:
        """Return a client that is connected and has subscribed to this topic."""
        if self._client is None:
            client = self._broker.client()
            client.on_message = self._heard
            self._broker.connect(client, heard=self._subscribe, deadline=deadline)
            self._client = client
        if topic not in self._topics:
            self._topics.add(topic)
            self._subscribe(self._client)
        return self._client

    def _subscribe(self, client: Client) -> None:
        for topic in self._topics:
            client.subscribe(topic, AT_LEAST_ONCE)

    def _heard(self, _: Client, __: Any, message: MQTTMessage) -> None:
        """Keep an announcement; the device validates it, not its transport.

        Its `now_ms` is correct only at the moment of publication, and the device sets its label
        time by it. So it is removed if the announcement was retained, or is handed on later.
        """
        if len(message.payload) > LARGEST_ANSWER:
            return
        try:
            told = json.loads(message.payload)
            if (serial := serial_in(told)) is None:  # no announcement: a notice
                self._take_notice(message.topic, Notice.read(told), message.retain)
                return
            without = json.dumps(undated(told)).encode()
        except (ValueError, RecursionError):
            return
        with self._news:
            payload = without if message.retain else bytes(message.payload)
            self._announced[message.topic] = _Announced(serial, payload, without)
            self._news.notify_all()

    def _take_notice(self, topic: str, notice: Notice, retained: bool) -> None:
        self._notices[topic] = notice
        if not retained and notice.now_ms is not None:
            self._live[topic] = notice.now_ms, time.monotonic()

    def close(self) -> None:
        self._http.close()
        if self._client is not None:
            disconnect(self._client)
            self._client = None
            self._announced.clear()
