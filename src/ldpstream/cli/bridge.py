"""`ldpstream bridge`: connect devices that do not speak HTTP."""

from __future__ import annotations

import json
import signal
import sys
from typing import Annotated

import typer

from ldpstream.cli import options
from ldpstream.extras import need

app = typer.Typer(
    help="Connect a collector to fleets that do not speak HTTP.", no_args_is_help=True
)


@app.callback()
def bridges() -> None: ...


@app.command("mqtt")
def mqtt(
    collector: options.Collector,
    stream: Annotated[str, typer.Option(help="the name of a stream with slots or open selection")],
    broker: Annotated[
        str, typer.Option(help="the broker's address, mqtt(s)://host:port")
    ] = "mqtt://127.0.0.1:1883",
    user: Annotated[
        str | None, typer.Option(envvar="LDPSTREAM_MQTT_USER", help="user name at the broker")
    ] = None,
    password: Annotated[
        str | None, typer.Option(envvar="LDPSTREAM_MQTT_PASSWORD", help="password at the broker")
    ] = None,
    token: options.ReadToken = "",
    as_json: options.Json = False,
) -> None:
    """Announce rounds through a broker, and forward the reports that devices publish there."""
    need("bridge mqtt", "mqtt")
    from ldpstream.bridges.mqtt import MqttBridge
    from ldpstream.device.mqtt import Broker

    at = Broker.of(broker, user, password)
    bridge = MqttBridge(collector.rstrip("/"), stream, at, token)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: bridge.stop())
    said = sys.stderr if as_json else sys.stdout
    print(f"bridging {stream} to {at.url}", file=said, flush=True)
    bridge.run()
    passed = bridge.passed
    if as_json:
        counts = {"accepted": passed.accepted, "repeated": passed.repeated}
        done = {"stream": stream, "broker": at.url, **counts, "refused": dict(passed.refused)}
        print(json.dumps(done))
        return
    refused = ", ".join(f"{number} {code}" for code, number in sorted(passed.refused.items()))
    print(f"accepted {passed.accepted}, repeated {passed.repeated}, refused {refused or 'none'}")
