"""Enrolment without a token: where the file allows it, and not too often from one address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ldpstream.errors import Mistake
from tests.collector.api import ENROL, STREAM, Api, assert_problem, running
from tests.collector.helpers import enrolment, stream_config


def enrol(api: Api, headers: dict[str, str] | None = None) -> Any:
    return api.client.post(f"{STREAM}/devices", json=enrolment(1), headers=headers or {})


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({}, False),
        ({"public": True}, True),
        ({"public": False}, False),
        ({"public": True, "public_enrolment": False}, False),
        ({"public_enrolment": True}, True),
    ],
)
def test_it_is_off_unless_the_file_says_public(
    tmp_path: Path, given: dict[str, bool], allowed: bool
) -> None:
    assert stream_config(tmp_path, **given).public_enrolment is allowed


def test_a_private_stream_is_not_for_anyone(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="not public"):
        stream_config(tmp_path, public=False, public_enrolment=True)


def test_a_visitor_enrols_without_a_token_but_not_with_a_wrong_one(tmp_path: Path) -> None:
    with running(tmp_path, public=True) as api:
        assert api.client.get(STREAM).json()["enrolment"] == "public"
        visitor = enrol(api)
        assert visitor.status_code == 201
        assert visitor.json() == enrol(api, ENROL).json()
        assert_problem(enrol(api, {"Authorization": "Bearer wrong"}), 401, "token")


def test_without_it_a_token_is_needed(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        assert api.client.get(STREAM).json()["enrolment"] == "token"
        assert_problem(enrol(api), 401, "token")


def test_visitors_of_one_address_have_a_speed_limit(tmp_path: Path) -> None:
    with running(tmp_path, limits="public_enrolments_per_minute = 2", public=True) as api:
        assert [enrol(api).status_code for _ in range(2)] == [201, 201]
        refused = enrol(api)
        assert_problem(refused, 429, "rate-limited")
        assert refused.headers["Retry-After"] == "60"
        assert enrol(api, ENROL).status_code == 201, "who has the token is no visitor"
        api.clock.advance(30_000)
        assert enrol(api).status_code == 201
        assert_problem(enrol(api), 429, "rate-limited")
