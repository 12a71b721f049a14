"""Test vectors for SDKs in other languages, from the Python device: `vectors.json` beside this.

    python -m tests.page.vectors.make

A scripted source answers the n-th question (from 0) from u = SHA-256("<seed> <n>"), read as a
number, most significant byte first: `below(bound)` is u mod bound, `coin(favour, total)` is whether
u mod total < favour.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ldpstream.device.clock import ClockReading, OwnTime
from ldpstream.device.exchange import Address
from ldpstream.device.memory import StoredEnrolment
from ldpstream.device.rules import (
    DeviceState,
    Fresh,
    Repeat,
    SilenceReason,
    TooEarly,
    decide,
    selects,
)
from ldpstream.errors import Problem
from ldpstream.numeric import Numeric, Range
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import LARGEST_NANO, Epsilon, Odds
from ldpstream.privacy.ledger import Ledger, Promise, Reserve
from ldpstream.protocol.answers import Announcement, Refused, Round, announced
from ldpstream.protocol.authentication import (
    leave_message,
    message_mac,
    renew_message,
    report_mac,
    report_prefix,
    rounds_message,
    terms_message,
)
from ldpstream.protocol.identity import enrolment_secret, number_of
from ldpstream.protocol.limits import LARGEST_SERIAL
from ldpstream.protocol.messages import REPORTS, path_of
from ldpstream.protocol.messages import TERMS as TERMS_ROUTE
from ldpstream.protocol.notice import Notice, undated
from ldpstream.protocol.slots import (
    EPOCH_WINDOWS,
    group_of,
    moment_ms,
    next_turn,
    slot_of,
)
from ldpstream.protocol.strata import round_name
from ldpstream.protocol.succession import Acceptance, Policy, objection
from ldpstream.protocol.terms import Terms
from ldpstream.vocabulary import Vocabulary

FILE = Path(__file__).with_name("vectors.json")
NANOS = [1, 2, 10, 10**3, 10**6, 25_000_000, 10**8, 5 * 10**8, 693_147_180, 693_147_181]
NANOS += [10**9, 10**9 + 1, 2 * 10**9, 5 * 10**9, 10**10, 10_397_177_190, 17_000_000_003]
NANOS += [LARGEST_NANO - 1, LARGEST_NANO]
TERMS: dict[str, Any] = {
    "version": 2,
    "stream": "regions",
    "query": "histogram",
    "labels": ["north", "south"],
    "epsilon_nano": 10**9,
    "window": 4,
    "interval_ms": 1000,
    "start_ms": 1_700_000_000_000,
    "oracle": "grr",
    "selection": "open",
}
TERMS_1 = {name: value for name, value in TERMS.items() if name != "selection"} | {"version": 1}
SLOTS = TERMS | {"selection": "slots", "deadline_ms": 900}
NUMBERS = {name: value for name, value in TERMS.items() if name != "labels"} | {
    "query": "mean",
    "low": "-20",
    "high": "60.5",
    "steps": 1024,
    "oracle": "hybrid",
}
BINNED = NUMBERS | {"query": "distribution", "steps": 255, "bins": 32, "oracle": "square_wave"}
CAREFUL = {"name": "careful", "epsilon_nano": 5 * 10**8, "window": 8, "oracle": "oue"}
LEVELS = SLOTS | {"version": 3, "levels": [CAREFUL]}
TEXTS = {name: value for name, value in SLOTS.items() if name != "labels"} | {
    "query": "vocabulary",
    "salt": "0123456789abcdef",
    "bits": 20,
    "prefixes": [2, 4, 6, 8],
    "oracle": "hadamard",
}
COUNTRY = {"name": "country", "values": ["de", "fr"]}
FIRMWARE = {"name": "firmware_2", "values": ["1.0 (beta)", '~"\\']}
PARTS = SLOTS | {"version": 3, "attributes": [COUNTRY, FIRMWARE]}
DEVICE_PROBLEMS = (
    Problem.TERMS_MALFORMED,
    Problem.PIN_DIFFERS,
    Problem.TERMS_DIFFER,
    Problem.LEVEL_UNKNOWN,
    Problem.SUCCESSOR_REFUSED,
    Problem.LIMIT_TOO_SMALL,
    Problem.LIMIT_SPENT,
    Problem.SEVERAL_STREAMS,
    Problem.STREAM_ELSEWHERE,
    Problem.STREAM_NOT_ENROLLED,
    Problem.ANSWER_MALFORMED,
    Problem.ROUND_MALFORMED,
    Problem.ROUND_AHEAD,
    Problem.ROUND_PAST,
    Problem.BUDGET_SPENT,
    Problem.TOO_MANY_ROUNDS,
    Problem.PAST_UNKNOWN,
    Problem.VALUE_UNUSABLE,
    Problem.LEDGER_FILE,
    Problem.LEDGER_MISSING,
    Problem.LEDGER_EXISTS,
    Problem.LEDGER_REPLACED,
    Problem.NOT_ENROLLED,
    Problem.PLAIN_HTTP,
    Problem.UNREACHABLE,
    Problem.COLLECTOR_REFUSED,
    Problem.OPTION,
)


class Scripted:
    """The scripted source."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._asked = 0

    def _next(self) -> int:
        digest = hashlib.sha256(f"{self._seed} {self._asked}".encode()).digest()
        self._asked += 1
        return int.from_bytes(digest, "big")

    def coin(self, favour: int, total: int) -> bool:
        return self._next() % total < favour

    def below(self, bound: int) -> int:
        return self._next() % bound


def vectors() -> dict[str, Any]:
    rng = random.Random(20)
    return {
        "odds": [
            {"nano": nano, "parts": parts, "favour": str(Odds.within(Epsilon(nano), parts).favour)}
            for nano in NANOS + [rng.randrange(1, LARGEST_NANO + 1) for _ in range(40)]
            for parts in (1, 2)
        ],
        "reports": [_reports(oracle, labels, nano) for oracle, labels, nano in _cases(rng)],
        "numbers": [_reports(numeric, levels, nano) for numeric, levels, nano in _numbers(rng)],
        "levels": [_levels(*given, rng) for given in RANGES],
        "doubles": [_double(rng) for _ in range(200)],
        "terms": [_terms(given) for given in _terms_given()],
        "malformed_terms": list(_malformed_terms()),
        "successors": list(_successors()),
        "notices": [[sent, _notice(sent)] for sent in NOTICES],
        "announcements": [[sent, _announcement(sent)] for sent in _announcements()],
        "coins": [_coin(rng) for _ in range(40)],
        "identities": [_identity(rng, url) for url in URLS],
        "slots": [_slots(rng, window) for window in (1, 2, 7, 20, 1440, 1 << 31)],
        "moments": [_moment(rng, ms) for ms in (1, 16, 900, 60_000, 1 << 41)],
        "macs": [_mac(rng) for _ in range(5)],
        "rounds_macs": [_rounds_mac(after) for after in (0, 1, 7, 10**9, LARGEST_SERIAL)],
        "own_times": [_own_time(rng) for _ in range(60)],
        "ledgers": [_ledger(rng) for _ in range(60)],
        "decisions": [_decision(rng) for _ in range(400)],
        "groups": [_group(rng) for _ in range(20)],
        "buckets": [_buckets(*given) for given in VOCABULARIES],
        "tagged": [_tagged(sent, rng) for sent in _tagged_terms() for _ in range(4)],
        "problems": {one.code: [one.message, one.remedy] for one in DEVICE_PROBLEMS},
    }


def _cases(rng: random.Random) -> list[tuple[Oracle, int, int]]:
    cases = []
    for oracle in Oracle:
        cases += [(oracle, labels, 10**9) for labels in (2, 3, 4, 7, 8, 9, 128, 257, 1000)]
        cases += [(oracle, rng.choice((2, 5, 17, 300)), nano) for nano in NANOS]
    number_reports = (Oracle.GRR, Oracle.BLH, Oracle.OLH, Oracle.HADAMARD)
    cases += [(oracle, 65_536, 2 * 10**9) for oracle in number_reports]
    return cases + [(Oracle.HADAMARD, (1 << bits) - 1, 2 * 10**9) for bits in (16, 20, 24)]


def _numbers(rng: random.Random) -> list[tuple[Numeric, int, int]]:
    cases = []
    for numeric in Numeric:
        cases += [(numeric, levels, 10**9) for levels in (2, 3, 9, 256, 257, 1025)]
        cases += [(numeric, rng.choice((2, 5, 801, 1025)), nano) for nano in NANOS]
        cases.append((numeric, 65_536, 2 * 10**9))
    return cases


def _reports(oracle: Oracle | Numeric, labels: int, nano: int) -> dict[str, Any]:
    device: Any = oracle.device(labels, Epsilon(nano))
    seed = f"{oracle} {labels} {nano}"
    values = sorted({0, labels // 2, labels - 1})
    return {
        "oracle": oracle.value,
        "labels": labels,
        "nano": nano,
        "worst_ratio": _text(device.worst_ratio),
        "buckets": getattr(device, "buckets", None),
        "size": getattr(device, "size", None),
        "outputs": getattr(device, "outputs", None),
        "reports": [
            {"value": value, "seed": f"{seed} {value} {turn}", "wire": wire.hex()}
            for value in values
            for turn in range(2)
            for wire in [device.encode(device.perturb(value, Scripted(f"{seed} {value} {turn}")))]
        ],
    }


RANGES = [("-20", "60", 800), ("0", "1", 1), ("-0.5", "0.75", 1024), ("0.0000001", "0.1", 65_535)]


def _levels(low: str, high: str, steps: int, rng: random.Random) -> dict[str, Any]:
    """Readings inside and outside of a range, and halfway between levels."""
    values = Range(float(low), float(high), steps)
    span = values.high - values.low
    readings = [values.low, values.high, values.low - 1, values.high + 1, 5e-324, 1e308]
    readings += [values.low + span * rng.random() for _ in range(20)]
    readings += [values.low + span * (rng.randrange(steps) + 0.5) / steps for _ in range(20)]
    assert values.to_json() == {"low": low, "high": high, "steps": steps}
    return {
        "range": values.to_json(),
        "levels": [[reading, values.level(reading)] for reading in readings],
    }


def _text(ratio: Fraction) -> str:
    return f"{ratio.numerator}/{ratio.denominator}"


def _double(rng: random.Random) -> dict[str, Any]:
    over = rng.getrandbits(rng.choice((1, 8, 53, 54, 60, 120, 300)))
    under = rng.getrandbits(rng.choice((1, 8, 53, 54, 60, 120, 300))) or 1
    return {"fraction": f"{over}/{under}", "double": (over / under).hex(), "value": over / under}


def _terms_given() -> list[dict[str, Any]]:
    odd = ["süd", "東", "😀", 'quo"te', "back\\slash", "tab\tnew\nline\x01\x1f\x7f", "</script>"]
    return [
        TERMS,
        TERMS | {"labels": [*odd, "\u2028 \u2029", " ", "\u00e9", "e\u0301"]},
        TERMS | {"oracle": "hadamard", "epsilon_nano": LARGEST_NANO, "window": 1 << 31},
        TERMS | {"start_ms": 1 << 52, "interval_ms": 1 << 41, "stream": "a_c-9"},
        TERMS | {"labels": [str(number) for number in range(300)], "epsilon_nano": 1},
        TERMS | {"other": "south"},
        TERMS | {"selection": "roster"},
        TERMS_1,
        SLOTS,
        SLOTS | {"other": "south", "deadline_ms": 1000, "window": 1},
        NUMBERS,
        NUMBERS | {"low": "-0.0000001", "high": "0", "steps": 1, "oracle": "square_wave"},
        NUMBERS | {"low": "-123456789012345680", "high": "-0", "oracle": "duchi"},
        NUMBERS | {"selection": "slots", "deadline_ms": 1, "oracle": "piecewise"},
        BINNED,
        BINNED | {"bins": 3, "steps": 383, "selection": "slots", "deadline_ms": 1},
        LEVELS,
        LEVELS | {"levels": [CAREFUL, CAREFUL | {"name": "v2x", "window": 1}]},
        following(TERMS),
        following(LEVELS, labels=["süd", "north"], levels=[CAREFUL | {"window": 9}]),
        following(following(SLOTS, labels=["a", "b"]), epsilon_nano=1),
        following(NUMBERS, window=5),
        TEXTS,
        TEXTS | {"salt": "f" * 16, "bits": 24, "prefixes": []},
        TEXTS | {"salt": "0" * 16, "bits": 16, "prefixes": [1, 2, 3, 4, 5, 6, 16]},
        PARTS,
        PARTS | {"levels": [CAREFUL]},
        following(PARTS, labels=["süd", "north"]),
        _with_deadline(NUMBERS) | {"version": 3, "attributes": [COUNTRY]},
        _with_deadline(BINNED) | {"version": 3, "attributes": [COUNTRY]},
    ]


def _with_deadline(terms: dict[str, Any]) -> dict[str, Any]:
    return terms | {"selection": "slots", "deadline_ms": 900}


def following(old: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return terms that follow others, with these members changed."""
    before, new = Terms.read(old), old | {"version": 3} | changes
    succeeds = {
        "pin": before.pin,
        "version": before.version + 1,
        "from_t": 100,
        "until_t": 500,
    }
    if before.domain is not None:
        labels = before.domain.labels
        succeeds["labels"] = [one if one in new["labels"] else new["labels"][0] for one in labels]
    return new | {"succeeds": succeeds | changes.get("succeeds", {})}


def _terms(given: dict[str, Any]) -> dict[str, Any]:
    terms = Terms.read(given)
    moments = (given["start_ms"] - 1, given["start_ms"], given["start_ms"] + 12_345)
    return {
        "sent": given,
        "canonical": terms.canonical,
        "pin": terms.pin,
        "other": None if terms.other is None else terms.place(terms.other),
        "span": terms.promise.span,
        "timestamps": [[ms, terms.timestamp_at(ms)] for ms in moments],
        "ends": [[t, terms.end_of(t)] for t in (1, 2, 7)],
        "deadlines": [[t, terms.deadline_of(t)] for t in (1, 2, 7)],
        "strata": [_stratum(one) for one in terms.strata],
    }


def _stratum(terms: Terms) -> dict[str, Any]:
    return {
        "level": terms.level,
        "version": terms.version,
        "round": round_name(7, terms.suffix),
        "epsilon_nano": terms.epsilon_nano,
        "span": terms.promise.span,
        "oracle": terms.oracle.value,
    }


def _successors() -> list[dict[str, Any]]:
    """Pairs of terms at a level, why one may not follow the other, and which policies agree."""
    numbers = NUMBERS | {"selection": "slots", "deadline_ms": 900}
    second = following(LEVELS, labels=["north", "süd"])
    pairs = [
        (SLOTS, following(SLOTS)),
        (SLOTS, following(SLOTS, labels=["west", "north", "south"])),
        (SLOTS, following(SLOTS, other="north")),
        (SLOTS, following(SLOTS, epsilon_nano=9 * 10**8, oracle="oue")),
        (SLOTS, following(SLOTS, window=40)),
        (SLOTS, following(LEVELS)),
        (SLOTS, following(SLOTS, epsilon_nano=10**9 + 1)),
        (SLOTS, following(SLOTS, window=3)),
        (SLOTS, following(SLOTS, stream="others")),
        (SLOTS, following(SLOTS, interval_ms=999, deadline_ms=900)),
        (SLOTS, following(SLOTS, start_ms=0)),
        (SLOTS, SLOTS),
        (SLOTS, following(SLOTS, succeeds={"pin": "0" * 64})),
        (SLOTS, following(SLOTS, succeeds={"version": 3})),
        (SLOTS, following(SLOTS, succeeds={"labels": ["north"]})),
        (TERMS, following(TERMS)),
        (TERMS, following(TERMS, selection="roster")),
        (numbers, following(numbers, window=8)),
        (numbers, following(numbers, high="60")),
        (LEVELS, second),
        (LEVELS, following(LEVELS, levels=[CAREFUL | {"name": "other"}])),
        (LEVELS, following(LEVELS, levels=[CAREFUL | {"epsilon_nano": 10**9}])),
        (LEVELS, following(LEVELS, levels=[CAREFUL | {"window": 7}])),
        (second, following(second, labels=["süd", "ost"])),
        (second, following(LEVELS)),
        *_successors_of_parts(),
    ]
    return [
        {
            "old": old,
            "new": new,
            "level": level,
            "objection": why,
            "renamed": None if why else _renamed(before, after),
            "agreed": None if why else [one.agrees(before, after) for one in _policies(after)],
        }
        for old, new in pairs
        for before in Terms.read(old).strata
        for after, level in [(Terms.read(new), before.level)]
        for why in [objection(before, after)]
    ]


def _successors_of_parts() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Successors that tell as much of a device as before, less, or more."""
    fewer = {name: value for name, value in following(PARTS).items() if name != "attributes"}
    told: list[list[dict[str, Any]]] = [
        [FIRMWARE, COUNTRY],
        [COUNTRY | {"values": ["fr"]}],
        [COUNTRY | {"values": ["de", "it", "es"]}],
        [{"name": "colour", "values": ["red"]}],
        *([FIRMWARE | {"values": [value]}] for value in ("it's", '"', "'\\'", "'\"'")),
    ]
    pairs = [(PARTS, following(PARTS, attributes=attributes)) for attributes in told]
    return [*pairs, (PARTS, fewer), (SLOTS, following(PARTS))]


def _renamed(old: Terms, new: Terms) -> dict[str, str]:
    """Return what old labels are called now, and those before: "past" was "south" once."""
    enrolment = StoredEnrolment(
        "", old, bytes(16), bytes(32), bytes(32), bytes(32), 0, 0, renamed={"past": "south"}
    )
    return dict(replace(enrolment, successor=new.at_level(old.level)).gone_over.renamed)


def _policies(terms: Terms) -> list[Policy]:
    """Return the policies that are compared, in the order in which the tests make them too."""
    floors = {"least_epsilon_nano": 95 * 10**7, "longest_window": 20}
    return [
        *(Policy(accept) for accept in Acceptance),
        Policy(pins=frozenset({terms.pin})),
        Policy(Acceptance.NOT_LOOSER, **floors),  # type: ignore[arg-type]
    ]


NOTICES: list[Any] = [
    {},
    None,
    [],
    "x",
    {"now_ms": 7, "successor": "ab" * 32, "renew": True, "status": "accepted"},
    {"now_ms": -1, "successor": "AB" * 32, "renew": 1},
    {"now_ms": (1 << 52) + 1, "successor": 7, "renew": "true"},
    {"now_ms": None, "successor": "ab" * 31, "renew": False},
    *({"halt": halt} for halt in ("paused", "retired", "Paused", "", True, None)),
]


def _notice(sent: Any) -> dict[str, Any]:
    notice = Notice.read(sent)
    known = {"nowMs": notice.now_ms, "successor": notice.successor, "renew": notice.renew}
    return known | {"halt": notice.halt}


def _announcements() -> list[Any]:
    """Return announcements, and parts of them, that are well-formed and that are not."""
    asked = Round("2-publication", 2, 10**9, 80_000, (1, 20)).to_json("publication")
    wrong: dict[str, list[Any]] = {
        "round": ["", "-a", "_a", "A", "a_b", "a/b", "a" * 65, 7, None],
        "t": [0, -1, 1.5, "2", True, (1 << 52) + 1, None],
        "epsilon_nano": [0, LARGEST_NANO + 1, "1", None],
        "deadline_ms": [-1, (1 << 52) + 1, None],
        "rate": [[2, 1], [0, 0], [1], [1, 2, 3], [-1, 2], [0.5, 1], ["1", 2], "1/2", None],
    }
    rounds: list[Any] = [
        asked | {name: value} for name, values in wrong.items() for value in values
    ]
    rounds += [{name: value for name, value in asked.items() if name != lost} for lost in wrong]
    rounds += [{}, None, [], "round", asked | {"round": "a" * 64}, asked | {"rate": [0, 1]}, asked]
    told = announced(Notice(5), 3, "ab" * 32, 2, [asked])
    malformed: dict[str, list[Any]] = {
        "serial": [-1, 1.5, "3", LARGEST_SERIAL + 1, None],
        "pin": [7, None],
        "rounds": ["no", {}, None, 65 * [None]],
    }
    sent: list[Any] = [
        told | {name: value} for name, values in malformed.items() for value in values
    ]
    sent += [told | {"rounds": rounds}, told | {"now_ms": -1}, undated(told), {}, [], None, "x"]
    return sent


def _announcement(sent: Any) -> Any:
    """Return an announcement as it is read, with the field of each round that is refused."""
    try:
        told = Announcement.read(sent)
    except Refused:
        return None
    rounds = [
        one.facts["field"]
        if isinstance(one, Refused)
        else [one.name, one.t, one.epsilon_nano, one.deadline_ms, one.rate]
        for one in told.rounds
    ]
    return {"serial": told.serial, "pin": told.pin, "nowMs": told.now_ms, "rounds": rounds}


def _malformed_terms() -> list[Any]:
    wrong: dict[str, list[Any]] = {
        "version": [1, 3, "2", None],
        "stream": ["", "a/b", "-a", "_a", "A", "aB", "a.b", "a" * 65, 3],
        "query": ["mean", "median", "constructor", None],
        "labels": [[], ["one"], ["a", "a"], ["a", 1], "ab", None],
        "epsilon_nano": [0, LARGEST_NANO + 1, "1", 0.5, None],
        "window": [0, -1, 1.5, "4"],
        "interval_ms": [0, None],
        "start_ms": [-1, (1 << 52) + 1],
        "oracle": ["none", "hybrid", "constructor", 1, None],
        "selection": ["all", "", 1, None, "slots", ["open"]],
        "deadline_ms": [900],
        "other": ["east", "", 0, None, ["north"]],
    }
    malformed: list[Any] = [
        TERMS | {name: value} for name, values in wrong.items() for value in values
    ]
    malformed += [{}, [], None, "terms", TERMS | {"more": 1}]
    malformed += [TERMS_1 | {"version": 2}, TERMS_1 | {"deadline_ms": 900}]
    malformed += [SLOTS | {"deadline_ms": ms} for ms in (0, 1001, "900", None, 1.5)]
    malformed += [
        NUMBERS | {"low": low} for low in ("-20.0", "+1", "1e3", "61", "60.5", -20, "-00")
    ]
    malformed += [NUMBERS | {"steps": steps} for steps in (0, 65_536, "9", None, 1.5)]
    malformed += [NUMBERS | {"oracle": "grr"}, NUMBERS | {"labels": ["a", "b"]}]
    malformed += [NUMBERS | {"other": "north"}, NUMBERS | {"high": "1" * 19}]
    malformed += [BINNED | {"bins": bins} for bins in (0, 1, 31, 64.5, "32", None, 512, -32)]
    narrow = ("1.0000000000000002", "1.000000000000006")  # bins without width: all of them, or some
    malformed += [BINNED | {"low": "1", "high": high} for high in narrow]
    malformed += [BINNED | {"steps": 1024}, BINNED | {"oracle": "hybrid"}, NUMBERS | {"bins": 32}]
    malformed.append(
        BINNED | {"selection": "slots", "deadline_ms": 900, "version": 3, "levels": []}
    )
    malformed.append(TERMS | {"window": 1 << 31, "interval_ms": 1 << 41})
    malformed.append({name: value for name, value in TERMS.items() if name != "window"})
    levels: list[Any] = [[], None, {}, [CAREFUL, CAREFUL], [CAREFUL | {"more": 1}], [{}], ["a"]]
    wrong_levels: dict[str, list[Any]] = {
        "name": ["", "v2", "Careful", "a-b", "a" * 17, "9a", None],
        "epsilon_nano": [0, LARGEST_NANO + 1, "1", None],
        "window": [0, 1.5, (1 << 31) + 1, None],
        "oracle": ["duchi", "none", None],
    }
    levels += [
        [CAREFUL | {name: value}] for name, values in wrong_levels.items() for value in values
    ]
    malformed += [LEVELS | {"levels": one} for one in levels]
    many = [CAREFUL | {"name": f"a{number}"} for number in range(17)]
    malformed += [LEVELS | {"levels": many}, LEVELS | {"version": 2}, SLOTS | {"version": 3}]
    malformed += [TERMS | {"version": 3, "levels": [CAREFUL]}, TERMS_1 | {"levels": [CAREFUL]}]
    successor = following(SLOTS)["succeeds"]
    wrong_successors: dict[str, list[Any]] = {
        "pin": ["", "0" * 63, "A" * 64, None],
        "version": [1, 0, 1.5, (1 << 31) + 1, "2"],
        "from_t": [0, -1, None],
        "until_t": [98, None, (1 << 52) + 1],
        "labels": [None, "ab", ["north", "west"], ["north", 1], {"a": "b"}],
        "more": [1],
    }
    malformed += [
        SLOTS | {"version": 3, "succeeds": successor | {name: value}}
        for name, values in wrong_successors.items()
        for value in values
    ]
    no_successors: list[Any] = [None, [], {}, "x"]
    malformed += [SLOTS | {"version": 3, "succeeds": one} for one in no_successors]
    unmapped = {name: value for name, value in successor.items() if name != "labels"}
    malformed += [SLOTS | {"version": 3, "succeeds": unmapped}]
    malformed += [NUMBERS | {"version": 3, "succeeds": successor}]
    malformed += [TERMS_1 | {"succeeds": successor}, SLOTS | {"succeeds": successor}]
    malformed += _malformed_texts() + _malformed_parts(successor)
    for sent in malformed:
        _must_fail(sent)
    return malformed


def _malformed_texts() -> list[Any]:
    wrong: dict[str, list[Any]] = {
        "salt": ["", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdef0", 7, None],
        "bits": [15, 25, 20.5, "20", None],
        "prefixes": [[4, 2], [2, 2], [0], [17], [1.5], ["2"], "24", None, list(range(1, 9))],
        "oracle": ["grr", "hybrid", None],
        "selection": ["open", "roster"],
        "version": [1, 3],
        "labels": [["a", "b"]],
        "other": ["a"],
        "levels": [[CAREFUL]],
        "attributes": [[COUNTRY]],
    }
    malformed = [TEXTS | {name: value} for name, values in wrong.items() for value in values]
    malformed += [
        {name: value for name, value in TEXTS.items() if name != missing}
        for missing in ("salt", "bits", "prefixes", "deadline_ms", "selection")
    ]
    unasked = {name: value for name, value in TEXTS.items() if name != "deadline_ms"}
    unsaid = {name: value for name, value in unasked.items() if name != "selection"}
    return [*malformed, unasked | {"selection": "open"}, unsaid | {"version": 1}]


def _malformed_parts(successor: dict[str, Any]) -> list[Any]:
    wrong: dict[str, list[Any]] = {
        "name": ["", "Country", "9a", "a-b", "a" * 17, None, 3],
        "values": [
            [],
            ["other"],
            ["de", "de"],
            [""],
            ["a" * 65],
            ["süd"],
            ["a\n"],
            [1],
            "de",
            None,
        ],
        "more": [1],
    }
    attributes: list[Any] = [[], None, {}, "x", [{}], ["a"], [COUNTRY, COUNTRY]]
    attributes += [[COUNTRY | {name: value}] for name, values in wrong.items() for value in values]
    attributes.append([{"name": "c", "values": [str(n) for n in range(32)]}])
    attributes.append([{"name": f"a{n}", "values": ["1", "2", "3", "4"]} for n in range(4)])
    malformed: list[Any] = [PARTS | {"attributes": one} for one in attributes]
    malformed += [PARTS | {"version": 2}, SLOTS | {"attributes": [COUNTRY]}]
    malformed += [TERMS | {"version": 3, "attributes": [COUNTRY]}, PARTS | {"succeeds": {}}]
    return [*malformed, TERMS_1 | {"attributes": [COUNTRY]}, TEXTS | {"succeeds": successor}]


def _must_fail(sent: Any) -> None:
    try:
        Terms.read(sent)
    except Exception:
        return
    raise AssertionError(f"these terms are well-formed: {sent}")


def _coin(rng: random.Random) -> dict[str, Any]:
    total = rng.choice((1, 2, 3, 20, 10**6, 2**53 - 1))
    favour = rng.choice((0, total, rng.randrange(total + 1)))
    t, name, secret = rng.randrange(1, 10**6), rng.choice(("2-publication", "a")), rng.randbytes(32)
    heads = selects(secret, Round(name, t, 1, 0, (favour, total)))
    return {"secret": secret.hex(), "t": t, "name": name, "rate": [favour, total], "heads": heads}


URLS = [
    "https://stats.example",
    "HTTPS://Stats.Example:443/ldp/",
    "http://127.0.0.1:8000",
    "http://[::1]:80",
    "https://stats.example:8443/a/b",
]


def _identity(rng: random.Random, url: str) -> dict[str, Any]:
    secret, rejoins = rng.randbytes(32), rng.choice((0, 1, 12))
    place = Address.of(url).place
    shown = enrolment_secret(secret, place, "regions", rejoins)
    return {
        "url": url,
        "place": place,
        "secret": secret.hex(),
        "rejoins": rejoins,
        "shown": shown.hex(),
        "number": number_of(shown).hex(),
    }


def _slots(rng: random.Random, window: int) -> dict[str, Any]:
    key = rng.randbytes(32)
    last = min(40 * window, 1 << 40)
    return {
        "key": key.hex(),
        "window": window,
        "slots": [[epoch, slot_of(key, window, epoch)] for epoch in (0, 1, 2, 10**6)],
        "turns": [
            [t, next_turn(key, window, t)]
            for t in sorted(
                {1, 2, *(rng.randrange(1, last + 1) for _ in range(40))}
                | {
                    EPOCH_WINDOWS * window * epoch + after
                    for epoch in range(1, 9)
                    for after in (0, 1)
                }
            )
        ],
        "names": [[t, round_name(t)] for t in (1, window)],
    }


def _group(rng: random.Random) -> dict[str, Any]:
    key = rng.randbytes(32)
    return {"key": key.hex(), "groups": [[n, group_of(key, n)] for n in (2, 4, 6, 10, 16)]}


VOCABULARIES = [
    (0, 16, []),
    ((1 << 64) - 1, 24, [1, 2, 15]),
    (0x0123456789ABCDEF, 20, [2, 4, 6, 8]),
]
TEXTS_REPORTED = [
    "",
    " ",
    "a",
    "error 404: not found",
    "Zürich",
    "Zu\u0308rich",
    "\u1e69 s\u0323\u0307 s\u0307\u0323",  # three spellings of one composed letter
    "\ud55c\uae00 \u1112\u1161\u11ab",
    "\u212b \ufb01 \u2126",
    "東京",
    "👩\u200d👩\u200d👧",
    "\ud800",
    "a\udc00b\ud800",
    "\ud800\u0338",
    "nul\0nul",
    "\ufffd\ufffe\uffff",
    "x" * 255,
    "x" * 256,
    "x" * 300,
    "ü" * 200,
    "x" + "😀" * 80,
    "x" * 255 + "u\u0308",
    "a" + "\u0301" * 500 + "\u0323",  # cut before its last mark, which would come first
    "😀" * 398 + "u" + "\u0308\u0301",
    "u\u0308\u0304" * 150,
    "12345678",
    "123456789",
]


def _buckets(salt: int, bits: int, prefixes: list[int]) -> dict[str, Any]:
    """Texts in all spellings, and their buckets in each group."""
    words = Vocabulary(salt, bits, tuple(prefixes))
    return {
        **words.to_json(),
        "texts": [
            [text, [words.bucket(text, one) for one in words.groups]] for text in TEXTS_REPORTED
        ],
    }


def _tagged_terms() -> list[dict[str, Any]]:
    return [
        TEXTS,
        TEXTS | {"bits": 16, "prefixes": []},
        PARTS,
        PARTS | {"oracle": "oue"},
        _with_deadline(NUMBERS) | {"version": 3, "attributes": [FIRMWARE, COUNTRY]},
    ]


def _tagged(sent: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A report of a device of which the application says something, as the terms want it."""
    key = rng.randbytes(32)
    said = {"country": rng.choice(["de", "fr", "it", "constructor"]), "colour": "red"}
    described = said if rng.random() < 0.8 else {}
    described |= {"firmware_2": rng.choice(FIRMWARE["values"])} if rng.random() < 0.5 else {}
    terms = Terms.read(sent).seen_by(key, described)
    value = rng.choice(["north", "south"] if "labels" in sent else ["a text", "Zürich"])
    given = value if "low" not in sent else rng.uniform(-20, 60)
    place, seed = terms.place(given), f"tagged {rng.getrandbits(32)}"
    randomiser = terms.randomiser(terms.epsilon)
    return {
        "sent": sent,
        "key": key.hex(),
        "described": described,
        "tags": terms.tags,
        "tag": terms.tag,
        "value": given,
        "place": place,
        "seed": seed,
        "wire": randomiser.encode(randomiser.perturb(place, Scripted(seed))).hex(),
    }


def _moment(rng: random.Random, deadline_ms: int) -> dict[str, Any]:
    key = rng.randbytes(32)
    ms = moment_ms(key, "regions", deadline_ms)
    return {"key": key.hex(), "deadline_ms": deadline_ms, "moment_ms": ms}


def _mac(rng: random.Random) -> dict[str, Any]:
    key, report, name = rng.randbytes(32), rng.randbytes(11), f"{rng.randrange(99)}-publication"
    pin = rng.randbytes(32).hex()
    level = rng.choice(("", "careful"))
    prefix = report_prefix("regions", pin, name, level)
    assert prefix == f"ldpstream report 2\nregions\n{pin}\n{name}\n{level}\n\n\n".encode()
    mac = report_mac(key, prefix, report)
    assert mac == hmac.digest(key, prefix + report, "sha256")[:16]
    assert leave_message("regions") == b"ldpstream leave 2\n/v1/streams/regions/devices\n"
    return {
        "key": key.hex(),
        "path": path_of(REPORTS, stream="regions", round=name),
        "pin": pin,
        "round": name,
        "report": report.hex(),
        "mac": mac.hex(),
        "level": level,
        "leave": message_mac(key, leave_message("regions")).hex(),
        "renew": message_mac(key, renew_message("regions")).hex(),
        "terms_path": path_of(TERMS_ROUTE, stream="regions", pin=pin),
        "terms": message_mac(key, terms_message("regions", pin)).hex(),
    }


def _rounds_mac(after: int) -> dict[str, Any]:
    key, message = hashlib.sha256(b"%d" % after).digest(), rounds_message("regions", after)
    mac = message_mac(key, rounds_message("regions", after))
    assert message == b"ldpstream rounds 2\n/v1/streams/regions/rounds\n%d\n" % after
    assert mac == hmac.digest(key, message, "sha256")[:16]
    return {"key": key.hex(), "stream": "regions", "after": after, "mac": mac.hex()}


def _own_time(rng: random.Random) -> dict[str, Any]:
    """A mark and a look, of the same boot, of another, or of one that is not known."""
    boots = ("a", "a", "b", None)
    own_ms = rng.randrange(10**6)
    then, now = (
        ClockReading(rng.randrange(10**6), rng.randrange(10**6), rng.choice(boots))
        for _ in range(2)
    )
    mark = OwnTime(own_ms, then)
    same = now.boot is not None and now.boot == then.boot
    at = mark.at(now) if same else mark.resumed(now).own_ms
    return {"own_ms": own_ms, "then": _clock_reading(then), "now": _clock_reading(now), "at": at}


def _clock_reading(clocks: ClockReading) -> dict[str, Any]:
    return {"wallMs": clocks.wall_ms, "steadyMs": clocks.steady_ms, "boot": clocks.boot}


def _ledger(rng: random.Random) -> dict[str, Any]:
    """Debits in any order, kept promise or not; then what is left after some are forgotten."""
    promises: list[list[Any]] = [[rng.randrange(1, 40), rng.randrange(1, 8), None]]
    for _ in range(rng.choice((0, 0, 1, 2))):
        ended = rng.choice((None, rng.randrange(25)))
        promises.append([rng.randrange(1, 40), rng.randrange(1, 8), ended])
    debits = [[rng.randrange(1, 20), rng.randrange(1, 20)] for _ in range(rng.randrange(12))]
    forgotten = rng.choice((None, None, rng.randrange(1, 20)))
    reserves: list[dict[str, Any]] = [
        {
            "nano": rng.randrange(1, 12),
            "debits": rng.sample(debits, rng.randrange(len(debits) + 1)),
            "asks": place == 0 and rng.random() < 0.5,
        }
        for place in range(rng.choice((0, 0, 1, 2)))
    ]
    ledger = Ledger.of(
        (Promise(*promise) for promise in promises),
        ((at, nano) for at, nano in debits),
        forgotten,
        tuple(
            Reserve(one["nano"], tuple((at, nano) for at, nano in one["debits"]), one["asks"])
            for one in reserves
        ),
    )
    moment = rng.randrange(1, 25)
    later = ledger.forget(moment)
    return {
        "promises": promises,
        "debits": debits,
        "forgotten": forgotten,
        "reserves": reserves,
        "left": [ledger.left(at) for at in range(25)],
        "allows": [[at, n, ledger.allows(at, n)] for at in range(0, 25, 4) for n in (0, 1, 9)],
        "free_from": [[nano, ledger.free_from(nano)] for nano in (1, 2, 5, 10, 39)],
        "forget": {
            "moment": moment,
            "debits": len(later.debits),
            "forgotten": later.forgotten,
            "left": [later.left(at) for at in range(25)],
        },
    }


def _decision(rng: random.Random) -> dict[str, Any]:
    """A random state and round, and what the rules say."""
    sent = SLOTS if rng.random() < 0.3 else TERMS
    terms = Terms.read(sent)
    now_t = rng.randrange(1, 8)
    into = rng.randrange(terms.interval_ms)
    label_ms = terms.start_ms + (now_t - 1) * terms.interval_ms + into
    own_ms = rng.randrange(10**5, 10**6)
    t = max(1, now_t + rng.choice((-2, -1, 0, 0, 0, 0, 0, 0, 1)))
    asked = Round(
        f"{t}-{'publication' if rng.random() < 0.9 else 'dissimilarity'}",
        t,
        rng.choice((1, 5 * 10**8, 10**9, 10**9 + 1)),
        label_ms + rng.choice((-1, 0, 1, 200, 225, 500, 500, 500)),
        (rng.choice((1, 2, 2)), 2),
    )
    span = terms.promise.span
    ages = rng.choice(((), (0,), (span - 300,), (span - 1, 700), (span, span + 1), (span - 200,)))
    debits = [[own_ms - age, rng.choice((10**8, 5 * 10**8, 10**9))] for age in ages]
    if rng.random() < 0.05:
        debits = [[own_ms - age, 1] for age in range(rng.choice((15, 16)))]
    forgotten = rng.choice((None, None, None, own_ms - span, own_ms - span + 1))
    answered = {asked.key: b"\1\0"} if rng.random() < 0.1 else {}
    secret, key = rng.randbytes(32), rng.randbytes(32)
    ledger = Ledger.of((terms.promise,), ((at, nano) for at, nano in debits), forgotten)
    others = [[own_ms - rng.randrange(2 * span), rng.choice((10**8, 10**9))] for _ in range(3)]
    promise = [rng.choice((10**9, 2 * 10**9, 4 * 10**9)), rng.choice((span // 2, 2 * span))]
    over_all = Ledger.of(
        (Promise(*promise),), ((at, nano) for at, nano in debits + others), forgotten
    )
    limited = rng.choice((False, True))
    state = DeviceState(terms, ledger, answered, secret, key, over_all if limited else None)
    pin = terms.pin if rng.random() < 0.95 else "0" * 64
    match decide(pin, asked, state, own_ms, label_ms):
        case Fresh():
            outcome = "fresh"
        case Repeat(report=report):
            outcome = f"repeat {report.hex()}"
        case TooEarly(wait_ms=wait_ms):
            outcome = f"wait {wait_ms}"
        case SilenceReason() as silence:
            outcome = f"silence {silence.value}"
        case Refused() as refusal:
            outcome = f"refused {refusal.problem.code}"
    return {
        "slots": sent is SLOTS,
        "pin": pin,
        "round": {
            "round": asked.name,
            "t": asked.t,
            "epsilon_nano": asked.epsilon_nano,
            "purpose": "publication",
            "deadline_ms": asked.deadline_ms,
            "rate": list(asked.rate),
        },
        "debits": debits,
        "forgotten": forgotten,
        "limit": {"promise": promise, "debits": debits + others} if limited else None,
        "answered": bool(answered),
        "secret": secret.hex(),
        "key": key.hex(),
        "own_ms": own_ms,
        "label_ms": label_ms,
        "outcome": outcome,
    }


def text() -> str:
    """Return the vectors as JSON, with a line for each case."""
    kinds = []
    for name, cases in vectors().items():
        items = cases.items() if isinstance(cases, dict) else [(None, case) for case in cases]
        lines = ",\n".join(
            json.dumps(case) if key is None else f"{json.dumps(key)}: {json.dumps(case)}"
            for key, case in items
        )
        opened, closed = "{}" if isinstance(cases, dict) else "[]"
        kinds.append(f'"{name}": {opened}\n{lines}\n{closed}')
    return "{\n" + ",\n".join(kinds) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text())
    print(f"{FILE}: {FILE.stat().st_size} bytes")
