"""The page of all errors, from the catalogue."""

from __future__ import annotations

from ldpstream.collector.api.problems import STATUSES, TYPE_PREFIX
from ldpstream.errors import Problem
from reference.markdown import code, table

INTRODUCTION = f"""# Errors

Every error of the command line, the HTTP API and the SDKs is an entry of one catalogue,
`ldpstream.errors`: what is wrong, and what to do. The command line prints both as one line; the
API sends them as an RFC 9457 problem body, whose `type` is `{TYPE_PREFIX}` and the code. Words in
braces are facts of the case. Statuses are those of the API where it is not 400.

"""


def page() -> str:
    """Return the page."""
    rows = (
        (code(one.code), code(one.message), code(one.remedy), STATUSES.get(one, ""))
        for one in sorted(Problem, key=lambda one: one.code)
    )
    return INTRODUCTION + table(("code", "what is wrong", "what to do", "status"), rows)
