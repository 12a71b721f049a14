"""Devices behind a real broker: the same rules, and nothing lost when the bridge dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest
from paho.mqtt.client import MQTTMessage

from ldpstream.bridges.mqtt import MqttBridge
from ldpstream.cli import run
from ldpstream.cli.admin_client import AdminClient
from ldpstream.device import Device, Refused, Unreachable
from ldpstream.device.batches import BATCH
from ldpstream.device.exchange import Connect, Request, Response
from ldpstream.device.mqtt import Broker, MqttTransport, disconnect
from ldpstream.errors import Mistake
from ldpstream.protocol.messages import ListRounds, SubmitReport
from ldpstream.protocol.notice import Notice
from tests.device.scripted import JOIN_SECONDS, Script, ScriptedServer, Talk
from tests.programs import free_port, program, wait_for_port
from tests.serving import (
    ENROLMENT,
    HEAD,
    TOKEN,
    CollectorProcess,
    serving,
    stream_table,
    token_of,
)

DEVICES = 6


@contextmanager
def mosquitto(folder: Path, port: int) -> Iterator[str]:
    file = folder / "mosquitto.conf"
    file.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 1000\n"
        "user root\npersistence false\n"
    )
    broker = subprocess.Popen([program("mosquitto"), "-c", str(file)], stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield f"mqtt://127.0.0.1:{port}"
    finally:
        broker.terminate()
        broker.wait(10)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    with mosquitto(tmp_path, free_port()) as url:
        yield url


def bridge(
    collector: str, broker: str, stream: str = "s", *more: str, token: str = ""
) -> subprocess.Popen[str]:
    command = "from ldpstream.cli import main; main()"
    options = ["--collector", collector, "--stream", stream, "--broker", broker, *more]
    started = subprocess.Popen(
        [sys.executable, "-c", command, "bridge", "mqtt", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"LDPSTREAM_READ_TOKEN": token},
    )
    said = started.stderr if "--json" in more else started.stdout
    assert said is not None
    assert said.readline().startswith("bridging")
    return started


def finished(bridging: subprocess.Popen[str]) -> str:
    bridging.send_signal(signal.SIGTERM)
    return bridging.communicate(timeout=120)[0]


def ask(collector: str, path: str, token: str = "") -> dict[str, Any]:
    bearer = {"Authorization": f"Bearer {token}"}
    with urlopen(HttpRequest(f"{collector}/v1/streams/s/{path}", headers=bearer)) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def released(collector: str, token: str = "") -> list[dict[str, Any]]:
    told = ask(collector, "releases?since=0&format=json", token)
    releases: list[dict[str, Any]] = told["releases"]
    return releases


def everyone(folder: Path, collector: str, broker: str) -> list[Device]:
    devices = []
    for number in range(DEVICES):
        transport = MqttTransport(Broker.of(broker))
        device = Device.create(folder / f"{number}.ldp", first_install=True, transport=transport)
        device.enrol(collector, "s", TOKEN)
        device.observe(number % 2)
        devices.append(device)
    return devices


def publish_nonsense(broker: str) -> None:
    """What a stranger may write: topics that no path can have, and reports that are none."""
    client = Broker.of(broker).client()
    Broker.of(broker).connect(client, heard=lambda _: None)
    nonsense = {"a b?": b"x" * 40, "1-publication": b"short", "2-none": b"y" * 99}
    for name, payload in nonsense.items():
        client.publish(f"ldpstream/2/s/rounds/{name}/reports", payload, 1).wait_for_publish(10)
    disconnect(client)


def a_bridge() -> MqttBridge:
    return MqttBridge("http://127.0.0.1:1", "s", Broker.of("mqtt://127.0.0.1"))


def a_message(payload: bytes = b"z" * 40) -> MQTTMessage:
    message = MQTTMessage(topic=b"ldpstream/2/s/rounds/1-publication/reports")
    message.payload = payload
    return message


def test_more_reports_than_a_batch_holds_are_all_gathered() -> None:
    bridging = a_bridge()
    for _ in range(2 * BATCH + 5):
        bridging._waiting.put(a_message())
    sizes = [len(bridging._gathered()["1-publication", 40]) for _ in range(3)]
    assert sizes == [BATCH, BATCH, 5]


class Narrow:
    """A collector that takes bodies up to a length, and keeps them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = b""

    def send(self, url: str, request: Request) -> Response:
        if len(request.body) > self.most:
            return Response(413, {}, b'{"type": "urn:ldpstream:problem:too-large"}')
        self.taken += request.body
        accepted = len(request.body) // 40
        return Response(200, {}, b'{"accepted": %d, "repeated": 0, "refused": {}}' % accepted)

    def connect(self, url: str, step: Connect) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("most", [40, 41, 40 * 333, 40 * BATCH - 1])
def test_reports_that_are_too_large_together_are_sent_apart(most: int) -> None:
    collector, bridging = Narrow(most), a_bridge()
    payloads = [number.to_bytes(40) for number in range(BATCH)]
    assert bridging._deliver(collector, "1-publication", [a_message(one) for one in payloads])
    assert collector.taken == b"".join(payloads)
    assert (bridging.passed.accepted, bridging.passed.refused.total()) == (BATCH, 0)


UNDECIDED = [
    Response(200, {}, b"[]"),
    Response(200, {}, b'{"accepted": true, "repeated": 0, "refused": {}}'),
    Response(200, {}, b'{"accepted": 3, "repeated": 0, "refused": {}}'),
    Response(204, {}, b""),
    Response(404, {}, b"<html>a proxy's page</html>"),
]


class Answering:
    """A collector that gives one answer after the other, and keeps what it was sent."""

    def __init__(self, answers: list[Response]) -> None:
        self.answers = iter(answers)
        self.sent: list[bytes] = []

    def send(self, url: str, request: Request) -> Response:
        self.sent.append(request.body)
        return next(self.answers)

    def connect(self, url: str, step: Connect) -> None: ...

    def close(self) -> None: ...


def test_a_report_for_a_far_round_holds_up_nobody() -> None:
    early = Response(425, {}, b'{"type": "urn:ldpstream:problem:round-early"}')
    collector, bridging = Answering([early]), a_bridge()
    assert bridging._deliver(collector, "999-publication", [a_message()])
    assert bridging.passed.refused == {"round-early": 1}


def test_reports_outlive_answers_that_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told = b'{"accepted": 1, "repeated": 0, "refused": {"\\ud800": 1, "report-mac": 1}}'
    collector, bridging = Answering([*UNDECIDED, Response(200, {}, told)]), a_bridge()
    monkeypatch.setattr(bridging._stopping, "wait", lambda seconds: False)
    assert bridging._deliver(collector, "1-publication", [a_message(), a_message()])
    assert len(collector.sent) == len(UNDECIDED) + 1
    assert len(set(collector.sent)) == 1
    assert (bridging.passed.accepted, bridging.passed.refused) == (1, {"report-mac": 1})


def test_a_report_that_is_too_large_alone_is_refused() -> None:
    bridging = a_bridge()
    assert bridging._deliver(Narrow(39), "1-publication", [a_message(), a_message()])
    assert bridging.passed.refused == {"too-large": 2}


@contextmanager
def running(devices: list[Device]) -> Iterator[None]:
    """Each device lives in a thread of its own."""
    over = threading.Event()
    threads = [
        threading.Thread(target=device.run, kwargs={"stop": over.is_set, "wait": 1})
        for device in devices
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def await_full_release(collector: str, after_t: int, token: str = "") -> dict[str, Any]:
    """The first release after t that everyone has reported for."""
    for _ in range(600):
        for release in released(collector, token):
            assert release["received"] <= DEVICES
            if release["t"] > after_t and release["received"] == DEVICES:
                return release
        time.sleep(0.05)
    raise AssertionError(f"no release of {DEVICES} reports: {released(collector, token)}")


@pytest.mark.parametrize("selection", ['"open"', '"slots"'])
def test_devices_report_through_a_broker_though_the_bridge_is_killed(
    tmp_path: Path, broker: str, selection: str
) -> None:
    """Everyone reports at every timestamp (w = 1), asked or unasked; nobody counts twice."""
    settings = {"window": 1, "interval": '"2s"', "population": DEVICES, "selection": selection}
    table = stream_table("s", datetime.now(UTC), **settings)
    with serving(tmp_path, table) as collector:
        bridging = bridge(collector, broker)
        with running(everyone(tmp_path, collector, broker)):
            publish_nonsense(broker)
            before = await_full_release(collector, after_t=0)
            bridging.kill()
            bridging.communicate()
            again = bridge(collector, broker)
            await_full_release(collector, after_t=before["t"])
            said = finished(again)
    assert said.startswith("accepted")


def test_devices_behind_a_broker_renew_their_keys(tmp_path: Path, broker: str) -> None:
    """They hear of it in the notice, and go to the collector itself."""
    settings = {"window": 1, "interval": '"2s"', "population": DEVICES}
    with serving(tmp_path, stream_table("s", datetime.now(UTC), **settings)) as collector:
        bridging = bridge(collector, broker)
        with running(everyone(tmp_path, collector, broker)):
            await_full_release(collector, after_t=0)
            admin = AdminClient.of(tmp_path / "collector.toml", collector)
            admin.post("keys/rotate")
            while metric(collector, "keys_renewed_total") < DEVICES:
                time.sleep(0.05)
            admin.post("keys/drop?anyway=true")
            dropped_t = int(metric(collector, "last_timestamp")) + 1
            await_full_release(collector, after_t=dropped_t)
        said = finished(bridging)
    assert "key-ended" not in said


def metric(collector: str, name: str) -> float:
    with urlopen(f"{collector}/metrics") as answer:
        (line,) = (
            line
            for line in answer.read().decode().splitlines()
            if line.startswith(f"ldpstream_{name}{{")
        )
    return float(line.split()[-1])


def test_devices_of_a_private_stream_report_through_a_bridge_that_has_its_read_token(
    tmp_path: Path, broker: str
) -> None:
    settings = {"window": 1, "interval": '"2s"', "population": DEVICES, "public": "false"}
    with serving(tmp_path, stream_table("s", datetime.now(UTC), **settings)) as collector:
        token = token_of(tmp_path, "s")
        bridging = bridge(collector, broker, token=token)
        with running(everyone(tmp_path, collector, broker)):
            await_full_release(collector, after_t=0, token=token)
        said = finished(bridging)
    assert said.startswith("accepted")
    assert "stream-unknown" not in said  # a busy machine may be too late for a round


def test_without_the_token_a_bridge_is_told_so_in_one_line(tmp_path: Path, broker: str) -> None:
    table = stream_table("s", datetime.now(UTC), public="false")
    with serving(tmp_path, table) as collector:
        for token in ("", token_of(tmp_path, "another")):
            bridging = bridge(collector, broker, token=token)
            _, said = bridging.communicate(timeout=120)
            assert bridging.returncode == 2
            assert "stream 's' is unknown, or private and needs a token" in said
            assert said.count("\n") == 1


def test_a_report_waits_at_the_broker_while_no_bridge_is_there(tmp_path: Path, broker: str) -> None:
    settings = {"window": 1, "interval": '"60s"', "population": 1, "selection": '"open"'}
    table = stream_table("s", datetime.now(UTC), **settings)
    with serving(tmp_path, table) as collector:
        bridging = bridge(collector, broker)
        (device, *others) = everyone(tmp_path, collector, broker)
        for other in others:
            other.close()
        with closing(device):
            listener = MqttTransport(Broker.of(broker))
            listener.send(collector, Request.of(ListRounds("s", after=0, wait=20)))
            listener.close()
            bridging.kill()  # the round is announced, and retained by the broker
            bridging.communicate()
            assert len(device.poll(wait=5).delivered) == 1
            again = bridge(collector, broker, "s", "--json")
            for _ in range(400):
                if ask(collector, "status")["accepted"]:
                    break
                time.sleep(0.05)
            told = json.loads(finished(again))
            assert told == {
                "stream": "s", "broker": broker, "accepted": 1, "repeated": 0, "refused": {}
            }  # fmt: skip


def test_a_roster_is_refused_in_one_line(tmp_path: Path, broker: str) -> None:
    table = stream_table("s", datetime.now(UTC), selection='"roster"')
    with serving(tmp_path, table) as collector:
        bridging = bridge(collector, broker)
        _, said = bridging.communicate(timeout=120)
        assert bridging.returncode == 2
        assert "open selection" in said


def test_without_a_broker_a_device_is_told_so(tmp_path: Path) -> None:
    transport = MqttTransport(Broker.of(f"mqtt://127.0.0.1:{free_port()}"))
    device = Device.create(tmp_path / "one.ldp", transport=transport)
    with serving(tmp_path, stream_table("s", datetime.now(UTC))) as collector, closing(device):
        device.enrol(collector, "s", TOKEN)
        with pytest.raises(Unreachable, match="mqtt://"):
            device.poll()


def silent(talk: Talk) -> None:
    talk.drip(b"")


def saying(packet: bytes) -> Script:
    """A broker that answers the first packet with this one, and no other."""

    def script(talk: Talk) -> None:
        talk.line.recv(1 << 16)
        talk.say(packet)
        talk.drip(b"")

    return script


LISTEN = Request.of(ListRounds("s", after=0, wait=3600), patience=0.5)
REPORT = Request.of(SubmitReport("s", "1-publication", bytes(16), bytes(16), b"x"), patience=0.5)
ACCEPTED = b"\x20\x02\x00\x00"
NOT_AUTHORIZED = b"\x20\x02\x00\x05"


@pytest.mark.parametrize("request_", [LISTEN, REPORT], ids=["rounds", "reports"])
@pytest.mark.parametrize("script", [silent, saying(ACCEPTED)], ids=["silent", "never again"])
@pytest.mark.parametrize("why", ["takes too long", "told to stop"])
def test_a_broker_that_says_nothing_does_not_hold_a_device(
    script: Script, request_: Request, why: str
) -> None:
    if why == "told to stop":
        looks = count()
        request_ = replace(request_, patience=3600, stop=lambda: next(looks) > 3)
    with ScriptedServer(script) as server:
        transport = MqttTransport(Broker.of(server.url.replace("http", "mqtt")))
        with closing(transport), pytest.raises(Unreachable, match=why):
            transport.send("http://collector.invalid", request_)


def test_a_broker_that_does_not_let_a_device_in_says_so_at_once() -> None:
    with ScriptedServer(saying(NOT_AUTHORIZED)) as server:
        transport = MqttTransport(Broker.of(server.url.replace("http", "mqtt")))
        patient = replace(LISTEN, patience=3600)
        with closing(transport), pytest.raises(Unreachable, match="refused the connection"):
            transport.send("http://collector.invalid", patient)


def announced(serial: int, retain: bool) -> MQTTMessage:
    message = MQTTMessage(topic=b"ldpstream/2/s/rounds")
    message.payload = json.dumps({"serial": serial, "now_ms": 5, "rounds": []}).encode()
    message.retain = retain
    return message


@pytest.mark.parametrize("retain", [True, False])
def test_the_time_of_an_announcement_is_handed_on_only_while_it_is_true(
    monkeypatch: pytest.MonkeyPatch, retain: bool
) -> None:
    """Not where the broker retained it, and not to who asks later."""
    transport = MqttTransport(Broker.of("mqtt://host"))
    monkeypatch.setattr(transport, "_connected", lambda *_: None)
    waiting = threading.Event()
    answers: list[dict[str, Any]] = []

    def stop() -> bool:  # called while the lock is held, and then it waits
        waiting.set()
        return False

    def listen() -> None:
        listening = replace(LISTEN, patience=3600, stop=stop)
        answers.append(json.loads(transport.send("http://collector.invalid", listening).body))

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    assert waiting.wait(JOIN_SECONDS)
    transport._heard(Broker.of("mqtt://host").client(), None, announced(1, retain))
    thread.join(JOIN_SECONDS)
    listen()
    assert [one["serial"] for one in answers] == [1, 1]
    assert ["now_ms" in one for one in answers] == [not retain, False]


@pytest.mark.parametrize("retain", [True, False])
def test_a_device_hears_the_whole_notice(retain: bool) -> None:
    transport = MqttTransport(Broker.of("mqtt://host"))
    message = MQTTMessage(topic=b"ldpstream/2/s/notice")
    message.payload = json.dumps(Notice(5, successor="ab" * 32, renew=True).to_json()).encode()
    message.retain = retain
    transport._heard(Broker.of("mqtt://host").client(), None, message)
    heard = Notice.read(json.loads(transport._answer("ldpstream/2/s/notice")))
    assert (heard.successor, heard.renew) == ("ab" * 32, True)
    assert (heard.now_ms is None) is retain


def test_a_bridge_tells_devices_to_renew_their_keys_while_reports_have_old_ones() -> None:
    bridging = a_bridge()
    told = {"accepted": 1, "repeated": 0, "refused": {}}
    for renew in ({"renew": True}, {}):
        bridging._count(Response(200, {}, json.dumps(told | renew).encode()), 1)
        assert bridging._renew is bool(renew)
    with pytest.raises(Refused, match=r"\(batch\)"):
        bridging._count(Response(200, {}, b'{"accepted": "1", "repeated": 0}'), 1)


def test_an_announcement_that_the_broker_retained_has_no_time(broker: str) -> None:
    client = Broker.of(broker).client()
    Broker.of(broker).connect(client, heard=lambda _: None)
    payload = announced(1, retain=True).payload
    client.publish("ldpstream/2/s/rounds", payload, 1, retain=True).wait_for_publish(10)
    disconnect(client)
    with closing(MqttTransport(Broker.of(broker))) as transport:
        response = transport.send("http://collector.invalid", replace(LISTEN, patience=60))
    assert json.loads(response.body) == {"serial": 1, "rounds": []}


@pytest.mark.parametrize("url", ["http://host", "mqtt://", "mqtt://host:x", "mqtt://host/path"])
def test_a_wrong_address_is_a_mistake(url: str) -> None:
    with pytest.raises(Mistake, match="broker"):
        Broker.of(url)


def test_a_password_is_never_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "secret" not in repr(Broker.of("mqtt://me:secret@host"))
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # those of the tests stay
    url = f"http://127.0.0.1:{free_port()}"
    options = ["--collector", url, "--stream", "s", "--broker", "mqtt://me:secret@host"]
    assert run(["bridge", "mqtt", *options]) == 1
    shown = capsys.readouterr()
    assert "bridging s to mqtt://host:1883" in shown.out
    assert "secret" not in shown.out + shown.err


def test_user_and_password_may_stand_in_the_address() -> None:
    broker = Broker.of("mqtt://a%3Ab:p%40s%2Fs%25@host")
    assert (broker.user, broker.password, broker.host) == ("a:b", "p@s/s%", "host")
    assert broker.client().username == "a:b"
    given = Broker.of("mqtt://me:mine@host", user="you", password="p%40")
    assert (given.user, given.password) == ("you", "p%40")


@pytest.mark.parametrize(
    "url",
    [
        "mqtt://me:secret@host:x",
        "http://me:secret@host",
        "mqtt://me:12#secret@host",
        "mqtt://me:12?secret@host",
        "mqtt://me:12/secret@host",
    ],
)
def test_a_password_in_a_wrong_address_is_not_shown(url: str) -> None:
    with pytest.raises(Mistake) as told:
        Broker.of(url)
    assert "secret" not in str(told.value)


def test_devices_with_each_version_of_the_terms_have_topics_of_their_own(
    tmp_path: Path, broker: str
) -> None:
    """The notice of a version names its successor, also to who connects later."""
    folder = tmp_path / "collector"
    folder.mkdir()
    start = datetime.now(UTC)
    first = stream_table("s", start, public="true")
    then = stream_table("s", start, public="true", labels='["0", "1", "2"]')
    section = '\n[stream.successor]\nversion = 2\noverlap = "1h"\n'
    with CollectorProcess.of(folder, HEAD + first, ENROLMENT) as collector:
        collector.stop()
        collector.file.write_text(HEAD + then + section)
        collector.start()
        with urlopen(f"{collector.url}/v1/streams/s") as answer:
            pins = [one["pin"] for one in json.load(answer)["versions"]]
        bridging = bridge(collector.url, broker)
        heard: dict[str, dict[str, Any]] = {}
        arrived = threading.Event()
        client = Broker.of(broker).client()

        def on_message(_: object, __: object, message: MQTTMessage) -> None:
            told = json.loads(message.payload)
            if message.topic.endswith(("/rounds", "/notice")):
                heard[message.topic] = told
            rounds = heard.get("ldpstream/2/s/v2/rounds", {"rounds": []})["rounds"]
            if len(heard) == 4 and rounds:
                arrived.set()

        client.on_message = on_message
        topic = "ldpstream/2/s/#"
        try:
            Broker.of(broker).connect(client, heard=lambda at: at.subscribe(topic, 1))
            assert arrived.wait(JOIN_SECONDS)
        finally:
            disconnect(client)
            finished(bridging)
    assert heard["ldpstream/2/s/notice"]["successor"] == pins[1]
    assert "successor" not in heard["ldpstream/2/s/v2/notice"]
    assert heard["ldpstream/2/s/rounds"]["pin"] == pins[0]
    second = heard["ldpstream/2/s/v2/rounds"]
    assert second["pin"] == pins[1]
    assert all(one["round"].endswith("-v2") for one in second["rounds"])
