"""Terms with levels and successors: what is read, what is pinned, and what may follow what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.authentication import device_key, report_prefix
from ldpstream.protocol.messages import Enrol, ListRounds
from ldpstream.protocol.strata import round_name, stratum_in, timestamp_in
from ldpstream.protocol.succession import Acceptance, Policy, objection
from ldpstream.protocol.terms import Terms, TermsRefused

PLAIN: dict[str, Any] = {
    "version": 2,
    "stream": "regions",
    "query": "histogram",
    "labels": ["north", "south", "west"],
    "epsilon_nano": 10**9,
    "window": 20,
    "interval_ms": 60_000,
    "start_ms": 0,
    "oracle": "grr",
    "selection": "slots",
    "deadline_ms": 54_000,
}
CAREFUL = {"name": "careful", "epsilon_nano": 5 * 10**8, "window": 40, "oracle": "oue"}
LEVELS = PLAIN | {"version": 3, "levels": [CAREFUL]}


def following(old: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return terms that follow others, with these members changed."""
    before = Terms.read(old)
    new = old | {"version": 3} | changes
    assert before.domain is not None
    mapped = [one if one in new["labels"] else new["labels"][0] for one in before.domain.labels]
    succeeds = {
        "pin": before.pin,
        "version": before.version + 1,
        "from_t": 100,
        "until_t": 500,
        "labels": mapped,
    }
    return {"succeeds": succeeds} | new


class TestTerms:
    def test_plain_terms_are_those_of_0_2_0(self) -> None:
        terms = Terms.read(PLAIN)
        assert terms.to_json() == PLAIN
        assert (terms.version, terms.suffix, terms.strata) == (1, "", (terms,))

    @pytest.mark.parametrize("sent", [LEVELS, following(PLAIN), following(LEVELS)])
    def test_they_come_back_as_they_were(self, sent: dict[str, Any]) -> None:
        terms = Terms.read(sent)
        assert terms.to_json() == sent
        assert Terms.read(terms.to_json()) == terms

    def test_a_level_has_its_own_promise_under_the_same_pin(self) -> None:
        terms = Terms.read(LEVELS)
        careful = terms.at_level("careful")
        assert careful.promise.epsilon_nano == 5 * 10**8
        assert careful.promise.span == 40 * 60_000
        assert careful.oracle.value == "oue"
        assert (careful.pin, careful.to_json()) == (terms.pin, LEVELS)
        assert careful.at_level("") == terms
        assert [one.suffix for one in terms.strata] == ["", "-careful"]

    def test_an_unknown_level_is_a_mistake(self) -> None:
        with pytest.raises(Mistake) as raised:
            Terms.read(LEVELS).at_level("bold")
        assert raised.value.problem is Problem.LEVEL_UNKNOWN

    @pytest.mark.parametrize(
        "wrong",
        [
            LEVELS | {"version": 2},
            PLAIN | {"version": 3},
            PLAIN | {"version": 3, "levels": []},
            PLAIN | {"version": 3, "levels": [CAREFUL, CAREFUL]},
            PLAIN | {"version": 3, "levels": [CAREFUL | {"name": "v2"}]},
            PLAIN | {"version": 3, "levels": [CAREFUL | {"window": 0}]},
            PLAIN | {"version": 3, "levels": [CAREFUL | {"oracle": "hybrid"}]},
            PLAIN | {"version": 3, "levels": [CAREFUL | {"more": 1}]},
            {key: value for key, value in LEVELS.items() if key != "deadline_ms"}
            | {"selection": "open"},
            following(PLAIN) | {"succeeds": {"version": 2}},
            following(PLAIN) | {"succeeds": following(PLAIN)["succeeds"] | {"labels": ["x"] * 3}},
            following(PLAIN) | {"succeeds": following(PLAIN)["succeeds"] | {"until_t": 98}},
            following(PLAIN) | {"succeeds": following(PLAIN)["succeeds"] | {"version": 1}},
        ],
    )
    def test_malformed_ones_are_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(TermsRefused):
            Terms.read(wrong)


class TestSuccessors:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"labels": ["north", "south"]},
            {"labels": ["north", "south", "west", "east"]},
            {"oracle": "oue"},
            {"epsilon_nano": 10**8},
            {"window": 21},
            {"levels": [CAREFUL]},
        ],
    )
    def test_what_is_not_looser_may_follow(self, changes: dict[str, Any]) -> None:
        assert objection(Terms.read(PLAIN), Terms.read(following(PLAIN, **changes))) is None

    @pytest.mark.parametrize(
        "changes",
        [
            {"epsilon_nano": 10**9 + 1},
            {"window": 19},
            {"interval_ms": 60_001},
            {"start_ms": 1},
            {"stream": "areas"},
            {"succeeds": following(PLAIN)["succeeds"] | {"pin": "0" * 64}},
            {"succeeds": following(PLAIN)["succeeds"] | {"version": 3}},
            {"succeeds": following(PLAIN)["succeeds"] | {"labels": ["north"]}},
        ],
    )
    def test_what_is_looser_may_not(self, changes: dict[str, Any]) -> None:
        assert objection(Terms.read(PLAIN), Terms.read(following(PLAIN, **changes))) is not None

    def test_a_level_is_held_to_its_own_promise(self) -> None:
        old = Terms.read(LEVELS)
        looser = Terms.read(following(LEVELS, levels=[CAREFUL | {"window": 39}]))
        without = Terms.read({**following(LEVELS, levels=[CAREFUL | {"name": "other"}])})
        assert objection(old, looser) is None
        assert objection(old.at_level("careful"), looser) == "the window would become shorter"
        assert objection(old.at_level("careful"), without) is not None

    def test_a_policy_decides_within_its_floors(self) -> None:
        old = Terms.read(PLAIN)
        same = Terms.read(following(PLAIN, epsilon_nano=10**8, window=30))
        other = Terms.read(following(PLAIN, labels=["north", "south"]))
        by_labels, any_of = Policy(Acceptance.SAME_LABELS), Policy(Acceptance.NOT_LOOSER)
        assert not Policy().agrees(old, same)
        assert by_labels.agrees(old, same)
        assert not by_labels.agrees(old, other)
        assert any_of.agrees(old, other)
        assert not replace(any_of, least_epsilon_nano=10**8 + 1).agrees(old, same)
        assert not replace(any_of, longest_window=29).agrees(old, same)
        assert Policy(pins=frozenset({other.pin})).agrees(old, other)


class TestOnTheWire:
    def test_plain_strata_look_as_in_0_2_0(self) -> None:
        assert round_name(7) == "7-publication"
        assert report_prefix("s", "p", "r").endswith(b"\nr\n\n\n\n")
        assert ListRounds("s", 1, 2).http.path.endswith("?after=1&wait=2")

    def test_a_stratum_is_named_by_its_rounds(self) -> None:
        careful = Terms.read(following(LEVELS)).at_level("careful")
        assert round_name(7, careful.suffix) == "7-publication-v2-careful"
        assert timestamp_in("7-publication-v2-careful") == 7
        assert stratum_in("7-publication-v2-careful") == (2, "careful")
        assert report_prefix("s", "p", "r", "careful").endswith(b"\nr\ncareful\n\n\n")
        assert ListRounds("s", 1, 2, terms_version=2).http.path.endswith("&version=2")

    def test_each_level_has_a_key_of_its_own(self) -> None:
        number = bytes(16)
        keys = {device_key(bytes(32), "s", number, level) for level in ("", "a", "b")}
        assert len(keys) == 3

    def test_an_enrolment_names_its_level_only_if_there_is_one(self) -> None:
        assert b"level" not in Enrol("s", "t", bytes(32)).http.body
        assert b'"level": "careful"' in Enrol("s", "t", bytes(32), "careful").http.body
