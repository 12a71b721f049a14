"""What participants are told of a stream: from its configuration and its terms, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ldpstream.collector.api.app import build_app
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import parse
from ldpstream.collector.service.service import Service
from ldpstream.errors import Mistake
from ldpstream.protocol.terms import Terms
from tests.collector.helpers import SECRETS, START_MS

NOTICE = """
[stream.notice]
who = "The harbour office"
why = "To see how full the quays are"
contact = "harbour@example.org"
retention = "Reports are deleted after a day; figures are kept."
"""
STREAM = """
[[stream]]
name = "{name}"
labels = ["north", "south", "none"]
other = "none"
epsilon = 1
window = 20
interval = "1min"
population = 100
"""
LEVEL = """
[[stream.level]]
name = "careful"
epsilon = 0.5
window = 40
"""
NUMBERS = """
[[stream]]
name = "depth"
range = [0, 12]
epsilon = 2
window = 10
interval = "1h"
population = 100
mechanism = "lbu"
selection = "open"
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("privacy")
    text = STREAM.format(name="quays") + NOTICE + LEVEL + STREAM.format(name="bare") + NUMBERS
    text += STREAM.format(name="hidden") + "public = false\n"
    service = Service(parse(text, folder / "collector.toml"), SECRETS, ManualClock(START_MS))
    with TestClient(build_app(service)) as made:
        yield made


def told(client: TestClient, stream: str) -> dict[str, Any]:
    answer = client.get(f"/privacy/{stream}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    found: dict[str, Any] = answer.json()
    return found


def test_it_says_who_asks_what_and_what_is_promised(client: TestClient) -> None:
    found = told(client, "quays")
    assert found["notice"]["who"] == "The harbour office"
    assert found["notice"]["retention"].startswith("Reports are deleted")
    assert found["question"] == (
        "Every 1 minute: which value each device holds, one of 3 values, listed below;"
        ' a device without a value reports "none".'
    )
    own, careful = found["promises"]
    assert "20 timestamps (20 minutes)" in own["sentence"]
    assert "at most 2.72" in own["sentence"]
    assert "at most 73 % sure" in own["explanation"]
    assert careful["summary"] == "epsilon 0.5 in any 40 minutes: odds change by at most 1.65"
    assert found["reports"][0]["how_often"].startswith("One report in every 20 minutes, 72 a day")
    assert found["reports"][1]["how_often"].startswith("One report in every 40 minutes, 36 a day")
    assert "for another 40 minutes" in found["leaving"]


def test_the_pin_is_that_of_the_terms_beside_it(client: TestClient) -> None:
    found = told(client, "quays")
    assert Terms.read(found["terms"]).pin == found["pin"]
    assert client.get("/v1/streams/quays").json()["promises"] == found["promises"]


def test_a_report_has_the_length_that_is_named(client: TestClient) -> None:
    found = told(client, "quays")
    for report, terms in zip(found["reports"], Terms.read(found["terms"]).strata, strict=True):
        assert report["epsilon_nano"] == terms.epsilon_nano
        assert report["bytes"] == terms.randomiser(terms.epsilon).report_bytes


def test_a_share_of_epsilon_is_no_promise_of_one_report(client: TestClient) -> None:
    found = told(client, "depth")
    assert "one number from 0 to 12." in found["question"]
    (report,) = found["reports"]
    assert report["epsilon_nano"] * 10 == found["terms"]["epsilon_nano"]
    assert "every timestamp" in report["how_often"]


def test_who_says_nothing_is_said_to_say_nothing(client: TestClient) -> None:
    assert told(client, "bare")["notice"] is None


def test_a_browser_gets_a_page_that_is_the_same_for_every_name(client: TestClient) -> None:
    names = ("quays", "hidden", "missing")
    pages = [client.get(f"/privacy/{name}", headers={"Accept": "text/html"}) for name in names]
    assert [page.status_code for page in pages] == [200, 200, 200]
    assert len({page.text for page in pages}) == 1
    assert {page.headers["vary"] for page in pages} == {"Accept, Accept-Encoding"}
    assert "script-src 'self'" in pages[0].headers["content-security-policy"]
    assert client.get("/privacy/hidden").status_code == 404


@pytest.mark.parametrize(
    ("notice", "said"),
    [
        (NOTICE.replace("why =", "reason ="), "why is missing"),
        (NOTICE.replace("The harbour office", " "), "who is empty"),
        (NOTICE.replace("harbour@", "x" * 2000), "contact has 2011 characters"),
        (NOTICE + 'more = "x"\n', "there is no key 'more'"),
        ("notice = 5\n", "notice is 5"),
    ],
)
def test_a_notice_is_whole_or_refused(notice: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=said):
        parse(STREAM.format(name="quays") + notice, tmp_path / "collector.toml")
