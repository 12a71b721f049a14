"""Terms whose reports say which part of the fleet their device is of."""

from __future__ import annotations

from enum import Enum
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

from ldpstream.privacy.randomness import SystemSource
from ldpstream.protocol.succession import objection
from ldpstream.protocol.terms import Terms, TermsRefused
from ldpstream.vocabulary import Vocabulary

KEY = bytes(32)
COMMON: dict[str, Any] = {
    "version": 2,
    "stream": "a",
    "epsilon_nano": 10**9,
    "window": 20,
    "interval_ms": 1000,
    "start_ms": 0,
    "oracle": "hadamard",
    "selection": "slots",
    "deadline_ms": 900,
}
TEXTS = COMMON | {
    "query": "vocabulary",
    "salt": "00000000000000ff",
    "bits": 20,
    "prefixes": [2, 4, 6],
}
COUNTRIES = [{"name": "country", "values": ["de", "fr"]}]
PARTS = COMMON | {
    "version": 3,
    "query": "histogram",
    "labels": ["x", "y", "z"],
    "attributes": COUNTRIES,
}


@pytest.mark.parametrize("sent", [TEXTS, PARTS])
def test_terms_survive_their_json(sent: dict[str, Any]) -> None:
    terms = Terms.read(sent)
    assert terms.to_json() == sent
    seen = terms.seen_by(KEY, {"country": "fr"})
    assert (seen.pin, seen.to_json()) == (terms.pin, sent)


def test_a_text_is_reported_as_a_bucket_of_the_devices_group_in_five_bytes() -> None:
    terms = Terms.read(TEXTS).seen_by(KEY, {})
    assert isinstance(terms.values, Vocabulary)
    randomiser = terms.randomiser(terms.epsilon)
    place = terms.place("a text")
    report = randomiser.encode(randomiser.perturb(place, SystemSource()))
    assert place == terms.values.bucket("a text", terms.values.groups[terms.tag])
    assert (len(report), report[-1]) == (5, terms.tag)


def test_a_device_tells_its_attributes_beside_its_report() -> None:
    terms = Terms.read(PARTS)
    tags = [
        terms.seen_by(KEY, said).randomiser(terms.epsilon).encode(0)[-1]
        for said in ({"country": "de"}, {"country": "fr"}, {"country": "us"}, {}, {"x": 1})
    ]
    assert tags == [0, 1, 2, 2, 2]


def test_a_member_of_an_enumeration_is_the_text_that_it_is() -> None:
    class Country(str, Enum):  # noqa: UP042 - as applications have them: its `str` is another
        FRANCE = "fr"

    assert str(Country.FRANCE) != "fr"
    assert Terms.read(PARTS).seen_by(KEY, {"country": Country.FRANCE}).tag == 1


@pytest.mark.parametrize("said", [None, 0, ["de"], b"de", np.array(["de", "fr"]), ANY])
def test_whatever_is_said_of_a_device_it_is_not_silent(said: object) -> None:
    """An array is equal to a text, or not, element by element; some objects are equal to all."""
    assert Terms.read(PARTS).seen_by(KEY, {"country": said}).tag == 2


@pytest.mark.parametrize(
    "wrong",
    [
        TEXTS | {"salt": "ff"},
        TEXTS | {"salt": "00000000000000FF"},
        TEXTS | {"bits": 15},
        TEXTS | {"bits": True},
        TEXTS | {"prefixes": [4, 2]},
        TEXTS | {"prefixes": "24"},
        TEXTS | {"oracle": "grr"},
        TEXTS | {"version": 3, "attributes": COUNTRIES},
        {key: TEXTS[key] for key in TEXTS if key != "deadline_ms"} | {"selection": "open"},
        PARTS | {"version": 2},
        PARTS | {"attributes": []},
        PARTS | {"attributes": COUNTRIES * 2},
        PARTS | {"attributes": [{"name": "Country", "values": ["de"]}]},
        PARTS | {"attributes": [{"name": "country", "values": ["other"]}]},
        PARTS | {"attributes": [{"name": "country", "values": []}]},
        PARTS | {"attributes": [{"name": "c", "values": [str(n) for n in range(32)]}]},
        PARTS
        | {"attributes": [{"name": f"a{n}", "values": ["1", "2", "3", "4"]} for n in range(4)]},
        {key: PARTS[key] for key in PARTS if key != "deadline_ms"} | {"selection": "roster"},
    ],
)
def test_what_is_malformed_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TermsRefused):
        Terms.read(wrong)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ([{"name": "country", "values": ["de", "fr"]}], None),
        ([{"name": "country", "values": ["fr"]}], None),
        (None, None),
        ([{"name": "country", "values": ["de", "it"]}], "the value 'it' of the attribute country"),
        ([*COUNTRIES, {"name": "model", "values": ["a"]}], "the attribute model is new"),
    ],
)
def test_a_device_goes_over_to_terms_that_tell_no_more(now: object, why: str | None) -> None:
    old = Terms.read(PARTS)
    follows = {
        "pin": old.pin,
        "version": 2,
        "from_t": 9,
        "until_t": 20,
        "labels": ["x", "y", "z"],
    }
    given = {key: part for key, part in PARTS.items() if key != "attributes"}
    told = {} if now is None else {"attributes": now}
    found = objection(old, Terms.read(given | told | {"succeeds": follows}))
    assert (found is None) == (why is None)
    assert why is None or why in (found or "")


def test_terms_that_told_nothing_cannot_be_followed_by_some_that_do() -> None:
    plain = {key: part for key, part in PARTS.items() if key != "attributes"}
    old = Terms.read(plain | {"version": 2})
    follows = {"pin": old.pin, "version": 2, "from_t": 9, "until_t": 20, "labels": ["x", "y", "z"]}
    new = Terms.read(PARTS | {"succeeds": follows})
    assert objection(old, new) == "the attribute country is new"
