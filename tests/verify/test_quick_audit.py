"""`ldpstream audit --quick` passes, finds every planted bug, and writes its report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ldpstream.audit.empirical import MECHANISMS
from ldpstream.audit.exact import TAGGED
from ldpstream.audit.planted import BUGS
from ldpstream.cli import run
from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle

TEXTS = "lpf of texts"


def test_the_quick_audit_passes_and_prints_what_programs_expect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With fresh randomness each time: the device's own, which no seed reaches.

    It accuses an honest mechanism with a chance below 1e-6 (`empirical.ERROR`). By the binomial law
    at these sizes it misses a bug with less: the chances are 1e-16 for re-drawn retries (1,190
    guesses, 88.1 % right), 1e-13 for recycling (1,050), 2e-8 for the coin (1,000, 86.5 %), 2e-7 for
    epsilon/w (560, 98.2 %), and no chance at all for the bit (every guess is right).
    """
    assert run(["audit", "--quick", "--json", "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["exact", "empirical", "planted", "shuffled"]
    assert "link" in found["shuffled"]["condition"]
    for row in found["shuffled"]["rounds"]:
        assert 0 < row["at_least"] <= row["epsilon"] < row["local_epsilon"]
    for row in found["exact"]:
        assert set(row) == {"oracle", "labels", "epsilon", "exact_epsilon"}
        assert 0 < row["exact_epsilon"] <= row["epsilon"]
    assert {row["oracle"] for row in found["exact"]} == {*Oracle, *Numeric, TAGGED}
    for row in found["empirical"]:
        assert set(row) == {"mechanism", "epsilon", "lower_bound"}
        assert row["lower_bound"] <= row["epsilon"] == 1
    assert [row["mechanism"] for row in found["empirical"]] == [*MECHANISMS, TEXTS]
    # What spends all of epsilon in one report comes near it: an attack that is worth its name.
    near = {row["mechanism"]: row["lower_bound"] for row in found["empirical"]}
    assert min(near[name] for name in ("lsp", "lpu", "lpf")) > 0.5
    assert found["planted"] == [{"bug": bug.name, "found": True} for bug in BUGS]
    published = {"recycled one step early", "k + 1 reports where k are promised"}
    assert published <= {row["bug"] for row in found["planted"]}
    details = json.loads((tmp_path / "audit.json").read_text())["attacks"]
    attacked = {bug.name for bug in BUGS if bug.drill is None}
    for row in details:  # those who see the wire only find what the judge finds
        assert row["lower_bound"] > row["epsilon"] or row["name"] not in attacked
        assert bool(row["violations"]) or row["name"] in {*attacked, *MECHANISMS, TEXTS}
        assert not row["violations"] or row["planted"]
    page = (tmp_path / "audit.html").read_text()
    assert "Passed." in page
    assert "http" not in page.replace("http://www.w3.org", "")  # nothing has to be fetched
    assert json.loads((tmp_path / "audit.json").read_text())["passed"] is True
