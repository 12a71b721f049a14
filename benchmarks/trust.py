"""Write the results of the audit as the tables of docs/trust.md.

    .venv/bin/python benchmarks/trust.py [--seconds N] [--write]

Without --seconds it is the short form, `ldpstream audit --quick`; with it, `ldpstream audit`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ldpstream.audit.empirical import EPSILON, WorldSize
from ldpstream.audit.results import CONFIDENCE, Audit, by_oracle
from ldpstream.audit.run import full_audit, quick_audit
from ldpstream.lab.report.markdown import table
from ldpstream.lab.report.report_table import ReportTable
from sections import write_section

PAGE = Path(__file__).parents[1] / "docs" / "trust.md"


def sections(audit: Audit, command: str) -> dict[str, str]:
    """Return the sections by the names of their markers in the page."""
    made_by = f"`{command}`"
    return {
        "audit-exact": f"{made_by}: {len(audit.exact)} checks.\n\n{table(exact(audit))}",
        "audit-attacks": (
            f"{made_by}: epsilon {EPSILON}, w = {WorldSize().window}, two labels by GRR, and two"
            " texts; all bounds of this table and the next hold together with confidence"
            f" {CONFIDENCE}.\n\n"
            f"{table(attacks(audit))}"
        ),
        "audit-planted": f"{made_by}, the same run.\n\n{table(planted(audit))}",
    }


def exact(audit: Audit) -> ReportTable:
    rows: list[tuple[object, ...]] = [
        (
            one.oracle,
            one.checks,
            "; ".join(one.methods),
            f"`{one.example.ratio}`",
            str(one.example.digits(24)),
            f"{one.least_margin:.2g}",
            "yes" if one.holds else "**no**",
        )
        for one in by_oracle(audit.exact)
    ]
    return ReportTable(
        (
            "oracle",
            "checks",
            "how",
            "worst ratio at epsilon 1",
            "its logarithm",
            "least margin of all",
            "never above epsilon",
        ),
        rows,
    )


def attacks(audit: Audit) -> ReportTable:
    rows: list[tuple[object, ...]] = [
        (
            one.trial.name.upper(),
            f"{one.lower_bound:.2f}",
            one.score.secrets,
            one.score.guesses,
            one.score.right,
            "yes" if one.as_it_should_be else "**no**",
        )
        for one in audit.honest
    ]
    return ReportTable(
        ("mechanism", "epsilon is at least", "secrets", "guessed", "right", "within epsilon"), rows
    )


def planted(audit: Audit) -> ReportTable:
    rows: list[tuple[object, ...]] = [
        (
            bug.name,
            bug.words,
            one.under,
            bug.epsilon,
            one.proof,
            "yes" if one.exceeds else "**no**",
        )
        for one in audit.planted
        if (bug := one.trial.bug) is not None
    ]
    return ReportTable(
        ("bug", "what it does", "under", "promised", "epsilon is at least", "found"), rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, help="how long to attack; else the short form")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/trust.md")
    given = parser.parse_args()

    def quiet(stage: str, done: int, total: int) -> None: ...

    audit = full_audit(given.seconds, quiet) if given.seconds else quick_audit(quiet)
    command = ".venv/bin/python benchmarks/trust.py"
    command += f" --seconds {given.seconds:g} --write" if given.seconds else " --write"
    for name, text in sections(audit, command).items():
        print(f"{name}: {text}\n")
        if given.write:
            write_section(PAGE, name, text)
    for line in audit.complaints:
        print(line)
    raise SystemExit(not audit.passed)


if __name__ == "__main__":
    main()
