"""A background job that takes part without the SDK: plain HTTP, in some 60 lines of code.

It reports how busy this machine is, to a stream with slots, the oracle grr, and the labels "idle"
and "busy". Read docs/protocol.md beside it before you port it to another language. The promise is
kept here, whatever the collector says: a draw is on disk before it leaves, there is one in any w
intervals of the machine's steady clock, and a new file is silent for w intervals. It goes on under
its first terms only, and does not renew its key.

    python plain_http.py https://collector.example load TOKEN load.json
"""

import hashlib
import hmac
import json
import os
import secrets
import sys
import time
from decimal import Decimal, localcontext
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

URL, STREAM, TOKEN, FILE = sys.argv[1:]
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text()
os.umask(0o077)


def mac(key, *lines, body=b""):
    return hmac.digest(bytes.fromhex(key), "\n".join(map(str, lines)).encode() + body, "sha256")


def post(path, body, headers):
    headers["Content-Type"] = "application/octet-stream"
    with urlopen(Request(f"{URL}/v1/streams/{STREAM}{path}", body, headers), timeout=9) as answer:
        return json.load(answer)


def own_ms(state):
    """Return the device's own time: a wrong date cannot make it pass faster."""
    steady = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 10**6
    passed = steady - state["steady"] if state["boot"] == BOOT else steady
    state.update(own=state["own"] + passed, boot=BOOT, steady=steady)
    return state["own"]


def debit(state):
    """Count all of epsilon as spent now, on disk."""
    state["spent"] = own_ms(state)
    Path(f"{FILE}.new").write_text(json.dumps(state))
    os.sync()
    os.replace(f"{FILE}.new", FILE)
    os.sync()
    return state


def join():
    """Enrol; nothing is known of what was reported before, so that all of epsilon is spent."""
    shown = mac(secrets.token_hex(32), "ldpstream enrol 2", URL, STREAM, 0).hex()
    body = json.dumps({"secret": shown, "version": 2}).encode()
    state = post("/devices", body, {"Authorization": f"Bearer {TOKEN}"})
    assert (state["terms"]["selection"], state["terms"]["oracle"]) == ("slots", "grr")
    terms = json.dumps(state["terms"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    pin = hashlib.sha256(terms.encode()).hexdigest()
    return debit(state | {"pin": pin, "own": 0, "boot": "", "steady": 0})


def grr(value, labels, epsilon_nano):
    """Return the true label with odds e^epsilon : 1 to any other, rounded towards privacy."""
    with localcontext(prec=60):
        odds = int((Decimal(epsilon_nano) / 10**9).exp() * 2**64)
    truthful = secrets.randbelow(odds + 2**64 * (labels - 1)) < odds
    other = secrets.randbelow(labels - 1)
    return bytes([1, value if truthful else other + (other >= value)])


def report(name, deadline_ms, state):
    """Draw and debit one report, and send the same bytes until they arrive or the round closes."""
    terms = state["terms"]
    value = terms["labels"].index("busy" if os.getloadavg()[0] > os.cpu_count() else "idle")
    drawn = grr(value, len(terms["labels"]), terms["epsilon_nano"])
    debit(state)
    lines = ("ldpstream report 2", STREAM, state["pin"], name, "", "", "", "")
    signed = mac(state["key"], *lines, body=drawn)[:16].hex()
    headers = {"Ldp-Device": state["device"], "Ldp-Mac": signed}
    while time.time() * 1000 < deadline_ms:
        try:
            return post(f"/rounds/{name}/reports", drawn, headers)["status"]
        except HTTPError as refusal:
            return refusal.read().decode()
        except OSError:
            time.sleep(1)
    return "undelivered"


def run(state):
    """Report at each timestamp that is this device's slot, at a moment of its own within it."""
    terms, key, t = state["terms"], state.get("slot_key", state["key"]), 0
    w, interval, deadline = terms["window"], terms["interval_ms"], terms["deadline_ms"]
    u = int.from_bytes(mac(key, "ldpstream moment 2", STREAM)[:8], "big")
    while True:
        t = max(t, int(time.time() * 1000 - terms["start_ms"]) // interval) + 1
        slot = mac(key, "ldpstream slot 2", 1, "", (t - 1) // (16 * w))
        if t % w == int.from_bytes(slot[:8], "big") % w:
            begin = terms["start_ms"] + (t - 1) * interval
            moment = begin + deadline * (2**64 + 10 * u) // 2**68
            time.sleep(max(0, moment - time.time() * 1000) / 1000)
            time.sleep(max(0, state["spent"] + w * interval - own_ms(state)) / 1000)
            rested = own_ms(state) - state["spent"] >= w * interval
            if rested and begin <= time.time() * 1000 < begin + deadline:
                print(t, report(f"{t}-publication", begin + deadline, state), flush=True)


run(json.loads(Path(FILE).read_text()) if Path(FILE).exists() else join())
