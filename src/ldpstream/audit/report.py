"""The report of an audit as one HTML page, for readers who do not read code."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from ldpstream.audit.empirical import ERROR, Finding
from ldpstream.audit.exact import Exact
from ldpstream.audit.results import CONFIDENCE, Audit, by_oracle
from ldpstream.audit.shuffled import CONDITION, shuffled_rounds
from ldpstream.lab.files import write_whole
from ldpstream.lab.report.page import Html, Section, made_by, page, paragraph, table
from ldpstream.lab.report.report_table import ReportTable

PROMISE = (
    "The promise: in any span of w timestamps, wherever it begins, what a device sends tells an"
    " observer little about its values there. Whatever the observer sees, the odds between any two"
    " histories of values move by a factor of at most e^epsilon. This page says how that was"
    " checked, and what came of it. The proof is in docs/guarantee.md."
)
EXACT = (
    "Each randomiser of the device was run under every possible outcome of its random draws. That"
    " gives the exact probability of every report, as a fraction of whole numbers, and so the worst"
    " factor between any two values. It must not exceed e^epsilon, not by the last digit. Where"
    " there are too many draws to follow, the factor is computed from the whole-number odds that"
    " the code draws with."
)
ATTACK = (
    "An attacker reads everything that goes over the wire between a real collector and real"
    " devices, and guesses what each device held in each window of w timestamps; values were drawn"
    " by a fair coin, and differ in all w timestamps. It knows the randomiser, and it makes devices"
    " answer every round twice. If epsilon is kept, its guesses are right with probability at most"
    " e^epsilon / (1 + e^epsilon). From the guesses that were right follows a lower bound on"
    f" epsilon (Clopper and Pearson). All bounds of this page hold together with confidence"
    f" {CONFIDENCE}. A bound below the promised epsilon is what a kept promise looks like; one that"
    " comes near it shows that the attack is a good one."
)
PLANTED = (
    "An attack that finds nothing proves little, unless it would have found something. So each of"
    " these bugs was planted, one at a time, in the code under attack. Finding one means: epsilon"
    " is proven to exceed the promised one, by the attack; or, in a drill, a judge who knows when"
    " each value was read has seen the promise broken, and kept when the bug was taken out again."
)


def write_report(audit: Audit, folder: Path, command: str) -> Path:
    """Write `audit.html` into this folder and return its path."""
    sections = [
        Section("exact", "Randomisers, exactly", _exact_parts(audit.exact)),
        Section("attack", "Mechanisms under attack", _attack_parts(audit.honest)),
        Section("planted", "Planted bugs", _planted_parts(audit.planted)),
        Section("shuffled", "Behind a shuffler", _shuffled_parts()),
        Section("fractions", "All worst ratios", (table(_fractions(audit.exact)),)),
    ]
    lead = [_verdict(audit), paragraph(PROMISE), made_by(command), _where()]
    return write_whole(folder / "audit.html", page("Privacy audit", lead, sections))


def _where() -> Html:
    """Return when and on which platform the audit was made, for whoever signs it."""
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return paragraph(f"{when}, {python}, {platform.system()} {platform.machine()}.", "soft")


def _verdict(audit: Audit) -> Html:
    words = (
        f"{len(audit.exact)} exact checks of {len(by_oracle(audit.exact))} randomisers,"
        f" {len(audit.honest)} mechanisms attacked; of the planted bugs"
        f" {audit.verdict_on_bugs}."
    )
    if audit.passed:
        return paragraph(f"Passed. {words}", "lead good")
    return paragraph(f"Not passed. {words} {'; '.join(audit.complaints)}", "lead bad")


def _exact_parts(exact: Sequence[Exact]) -> tuple[Html, ...]:
    rows: list[tuple[object, ...]] = [
        (
            one.oracle,
            one.checks,
            "; ".join(one.methods),
            f"{one.example.digits(24)}",
            f"{one.least_margin:.2g}",
            _mark(one.holds, "never above epsilon", "ABOVE EPSILON"),
        )
        for one in by_oracle(exact)
    ]
    columns = ("oracle", "checks", "how", "exact, of 1", "least margin", "verdict")
    return paragraph(EXACT), table(ReportTable(columns, rows))


def _attack_parts(findings: Sequence[Finding]) -> tuple[Html, ...]:
    columns = ("mechanism", "promised", "at least", "secrets", "guessed", "right", "verdict")
    rows: list[tuple[object, ...]] = [
        (
            one.trial.name.upper(),
            float(one.trial.epsilon),
            one.lower_bound,
            one.score.secrets,
            one.score.guesses,
            one.score.right,
            _mark(one.as_it_should_be, "kept", "BROKEN"),
        )
        for one in findings
    ]
    return paragraph(ATTACK), _bars(findings), table(ReportTable(columns, rows))


def _planted_parts(findings: Sequence[Finding]) -> tuple[Html, ...]:
    columns = ("bug", "what it does", "under", "promised", "at least", "found")
    rows: list[tuple[object, ...]] = [
        (
            bug.name,
            bug.words,
            one.under,
            float(one.trial.epsilon),
            one.proof,
            _mark(one.exceeds, "found", "NOT FOUND"),
        )
        for one in findings
        if (bug := one.trial.bug) is not None
    ]
    attacked = [one for one in findings if one.trial.attacked]
    return paragraph(PLANTED), _bars(attacked), table(ReportTable(columns, rows))


def _shuffled_parts() -> tuple[Html, ...]:
    columns = ("epsilon of a report", "reports", "delta", "central epsilon", "at least")
    rows: list[tuple[object, ...]] = [
        (one.local, one.reports, f"{one.delta:g}", one.epsilon, one.at_least)
        for one in shuffled_rounds()
    ]
    how = (
        "Computed from theorem 3.2 of Feldman, McMillan and Talwar (FOCS 2021), for any randomiser;"
        " the last column is a lower bound from binary reports if all other devices agree."
    )
    return paragraph(CONDITION), table(ReportTable(columns, rows)), paragraph(how, "soft")


def _fractions(exact: Sequence[Exact]) -> ReportTable:
    rows: list[tuple[object, ...]] = [
        (
            one.oracle,
            one.labels,
            str(one.epsilon),
            Html(f"<code>{one.ratio}</code> &le; e<sup>{one.epsilon}</sup>"),
            f"{one.margin:.2g}",
            one.method.value,
        )
        for one in exact
    ]
    return ReportTable(("oracle", "labels", "epsilon", "worst ratio", "margin", "how"), rows)


def _mark(good: bool, yes: str, no: str) -> Html:
    return Html(f'<span class="{"good" if good else "bad"}">{yes if good else no}</span>')


LEFT, WIDE, HIGH = 230, 480, 24
"""Pixels: the width of names and of the longest bar, and the height of a row."""


def _bars(findings: Sequence[Finding]) -> Html:
    """Return a chart with a bar for each lower bound and a line at the promised epsilon."""
    if not findings:
        return paragraph("None were finished.")
    most = max(max(one.lower_bound, float(one.trial.epsilon)) for one in findings) * 1.05
    parts = []
    for place, one in enumerate(findings):
        top = place * HIGH + 4
        bar = one.lower_bound / most * WIDE
        limit = LEFT + float(one.trial.epsilon) / most * WIDE
        colour = "var(--bad)" if one.exceeds else "var(--good)"
        parts.append(
            f'<text x="{LEFT - 8}" y="{top + 12}" text-anchor="end">{escape(one.trial.name)}</text>'
            f'<rect x="{LEFT}" y="{top}" width="{bar:.1f}" height="{HIGH - 8}" fill="{colour}"/>'
            f'<text x="{LEFT + bar + 6:.1f}" y="{top + 12}">{one.lower_bound:.2f}</text>'
            f'<line x1="{limit:.1f}" x2="{limit:.1f}" y1="{top - 4}" y2="{top + HIGH - 4}"'
            ' stroke="currentColor" stroke-dasharray="3 2"/>'
        )
    caption = (
        "Lower bounds on epsilon; the dashed line is the promised one. Beyond it (orange), the"
        f" promise is broken, but for a chance of {ERROR:g} for all bars together."
    )
    return Html(
        f'<figure><svg role="img" aria-label="{escape(caption)}" font-size="12"'
        f' fill="currentColor" viewBox="0 0 {LEFT + WIDE + 50} {len(findings) * HIGH + 4}">'
        f"{''.join(parts)}</svg><figcaption>{escape(caption)}</figcaption></figure>"
    )
