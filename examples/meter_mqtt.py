"""A meter that reports its reading over MQTT: a number, randomised before it leaves.

It enrols over HTTP, once, and from then on speaks to the broker only. Beside the collector runs
`ldpstream bridge mqtt --collector URL --stream meter --broker mqtt://broker.example`. The stream
has a range in place of labels; readings beyond its ends count as the ends (docs/numeric.md).

    pip install 'ldpstream[mqtt]'
    python meter_mqtt.py https://collector.example TOKEN mqtt://broker.example meter.ldp
"""

import os
import sys
from pathlib import Path

from ldpstream.device import Device
from ldpstream.device.mqtt import Broker, MqttTransport


def read_meter() -> float:
    """Return the reading of now; here, for want of a meter, the load of this machine."""
    return os.getloadavg()[0]


def main(collector: str, token: str, broker: str, file: str) -> None:
    """Enrol at the first start, then report until the program is stopped."""
    if not Path(file).exists():
        with Device.create(file) as device:  # first_install=True, if an installer knows that it is
            device.enrol(collector, "meter", token, accept="not-looser")
    with Device.open(file, transport=MqttTransport(Broker.of(broker))) as device:
        device.follow(read_meter)
        device.run(tell=lambda heard: print("delivered", len(heard.delivered), flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
