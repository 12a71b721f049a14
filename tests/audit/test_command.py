"""`ldpstream audit`: what it tells while it runs, and what a failure looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldpstream.audit import run as audit_run
from ldpstream.audit.bounds import Score
from ldpstream.audit.empirical import Finding, Tell, Trial
from ldpstream.audit.exact import check
from ldpstream.audit.planted import BUGS
from ldpstream.audit.results import Audit
from ldpstream.cli import run
from ldpstream.cli.output import stages
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon

GOOD = check("grr", Oracle.GRR.device(2, Epsilon.of(1)))
KEPT = Finding(Trial("lpa"), Score(70, 100, 200), 0.4, 1.0)
FOUND = Finding(Trial("lsp", BUGS[1]), Score(99, 100, 200), 2.5, 1.0)
BROKEN = Finding(Trial("lpa"), Score(99, 100, 200), 2.5, 1.0)
MISSED = Finding(Trial("lsp", BUGS[1]), Score(70, 100, 200), 0.4, 1.0)
DRILL = next(bug for bug in BUGS if bug.drill is not None)
NOTHING = Score(0, 0, 0)
SHOWN = Finding(Trial("", DRILL), NOTHING, 0.0, 1.0, ("it leaked",))
UNSEEN = Finding(Trial("", DRILL), NOTHING, 0.0, 1.0)
ACCUSED = Finding(Trial("", DRILL), NOTHING, 0.0, 1.0, ("it leaked",), ("it leaks anyway",))
JUDGED = Finding(Trial("lpa"), Score(70, 100, 200), 0.4, 1.0, ("target 3: too much",))


@pytest.mark.parametrize(
    ("audit", "status", "line"),
    [
        (Audit([GOOD], [KEPT, FOUND]), 0, ""),
        (Audit([GOOD], [BROKEN, FOUND]), 1, "lpa: epsilon is at least 2.500, and 1 is promised"),
        (Audit([GOOD], [KEPT, MISSED]), 1, "re-drawn retries: epsilon is at least 0.400"),
        (Audit([GOOD], [KEPT, SHOWN]), 0, ""),
        (Audit([GOOD], [KEPT, UNSEEN]), 1, "no violation: the bug is not found"),
        (Audit([GOOD], [KEPT, ACCUSED]), 1, "the same drill without the bug: it leaks anyway"),
        (Audit([GOOD], [JUDGED, FOUND]), 1, "lpa: target 3: too much"),
        (Audit([GOOD], [KEPT], unfinished=["lpu"]), 1, "not finished: lpu"),
        (Audit([GOOD], [KEPT], unfinished=["lpu"], stopped=True), 130, "not finished: lpu"),
        (Audit([GOOD], [BROKEN], unfinished=["lpu"], stopped=True), 1, "lpa: epsilon is at least"),
    ],
)
def test_a_failure_is_told_and_shown(
    audit: Audit,
    status: int,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def made(tell: Tell) -> Audit:
        return audit

    monkeypatch.setattr(audit_run, "quick_audit", made)
    assert run(["audit", "--quick", "--out", str(tmp_path)]) == status
    told = capsys.readouterr()
    assert line in told.err
    assert "Planted bugs" in told.out
    assert ("Not passed." in (tmp_path / "audit.html").read_text()) == (status != 0)


def test_bugs_that_were_not_looked_for_are_counted() -> None:
    audit = Audit([GOOD], [KEPT, FOUND], unfinished=["lpu", DRILL.name], stopped=True)
    assert audit.verdict_on_bugs == "found 1 of 2; 1 not finished"
    assert Audit([GOOD], [FOUND, UNSEEN]).verdict_on_bugs == "found 1 of 2"


def test_without_a_terminal_each_part_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with stages("audit", lines=True) as show:
        for done, stage in enumerate(("grr, exactly", "grr, exactly", "lpu")):
            show(stage, done, 3)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "ldpstream: audit: grr, exactly (0 of 3 done)"
    assert second == "ldpstream: audit: lpu (2 of 3 done)"


def test_an_exact_failure_is_told() -> None:
    broken = check("grr", Oracle.GRR.device(2, Epsilon.of(1)))
    worse = type(broken)(**{**vars(broken), "ratio": broken.stated * 2})
    (line,) = Audit([worse], []).failures
    assert line.startswith("grr with 2 labels: exact epsilon 1.69")


def test_ctrl_c_in_the_exact_part_shows_what_there_is() -> None:
    def stop(stage: str, done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    audit = audit_run.quick_audit(stop)
    assert audit.stopped
    assert len(audit.exact) == 3
    assert not audit.passed


def test_time_must_be_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "--seconds", "0"]) == 2
    assert "--seconds" in capsys.readouterr().err
