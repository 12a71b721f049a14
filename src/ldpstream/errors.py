"""The one catalogue of everything that can go wrong, in the words a user reads.

Each entry says what is wrong and what to do about it. The command line prints the line, the HTTP
API puts the code into a problem body, the documentation lists the entries: all from here.

>>> from ldpstream.errors import Mistake, Problem
>>> print(Mistake(Problem.EPSILON_RANGE, given="-1"))
epsilon is -1; give a number from 1e-9 to 32
"""

from __future__ import annotations

from enum import Enum


class Problem(Enum):
    """What is wrong (a template over facts), and what to do."""

    EPSILON_RANGE = ("epsilon is {given}", "give a number from 1e-9 to 32")
    WINDOW_RANGE = ("window is {given}", "give a whole number of timestamps, 1 or more")
    DOMAIN_SIZE = ("the domain has {given} labels", "give 2 to 65536")
    DOMAIN_DUPLICATE = ("label {label!r} stands twice in the domain", "name each label once")
    LABEL_UNKNOWN = ("{label!r} is not a label of this domain", "use one of: {known}")
    VALUE_RANGE = ("value {given} is outside the domain of {labels} labels", "give 0 to {last}")
    ORACLE_UNKNOWN = ("there is no oracle {given!r}", "use one of: {known}")
    MECHANISM_UNKNOWN = ("there is no mechanism {given!r}", "use one of: {known}")
    STREAM_UNKNOWN = ("there is no stream {given!r}", "use one of: {known}")
    STREAM_PARAMETER = ("{stream} stream: {name} is {given}", "give {expected}")
    TOO_FEW_USERS = (
        "{users} users are too few for a window of {window}: a timestamp would be left without any",
        "give at least {needed} users, or a shorter window",
    )
    BUDGET_TOO_SMALL = (
        "epsilon {epsilon} over a window of {window} leaves less than 1e-9 a timestamp",
        "give a larger epsilon, or a shorter window",
    )
    TIMESTAMP_ORDER = ("timestamp {given} was asked for after {last}", "go forward only")
    STATE_MISMATCH = (
        "the saved state is of {found}, not of {expected}",
        "restore it where it was made",
    )
    REPORT_LENGTH = ("a report has {given} bytes", "this oracle's reports have {expected}")
    REPORT_VERSION = ("a report has version {given}", "this collector reads version {expected}")
    REPORT_RANGE = ("a report's {field} is {given}", "it must be {expected}")
    SUPPORT_MISMATCH = (
        "support counts of {left} and {right} labels do not add",
        "merge one round only",
    )
    NO_REPORTS = ("there is no estimate from zero reports", "carry the last release over")
    EPSILON_EXCEEDED = (
        "user {user} would have spent {spent} nano-epsilon in {window} timestamps up to t={t}",
        "the limit is {limit}: the mechanism breaks its guarantee",
    )
    ROSTER_EXHAUSTED = (
        "{asked} users are asked for at t={t} and {available} are available",
        "the mechanism asks for more than a window holds",
    )
    COUNTS_FILE = ("{file}: {what}", "{fix}")
    OPTION = ("{option} is {given}", "give {expected}")

    def __init__(self, message: str, remedy: str) -> None:
        self.message = message
        self.remedy = remedy

    @property
    def code(self) -> str:
        """The stable name of the entry, as it stands in a problem body."""
        return self.name.lower().replace("_", "-")


class LdpStreamError(Exception):
    """Any error of this package: an entry of the catalogue and the facts of the case."""

    def __init__(self, problem: Problem, /, **facts: object) -> None:
        self.problem = problem
        self.facts = facts
        super().__init__(f"{problem.message}; {problem.remedy}".format(**facts))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.facts)


class Mistake(LdpStreamError, ValueError):
    """The caller gave something that cannot work, and can change it."""


class MalformedReport(LdpStreamError, ValueError):
    """Bytes that no honest device of this round sends."""


class GuaranteeBroken(LdpStreamError):
    """A mechanism was about to spend more of some user's epsilon than it may. Never caught."""


def _rebuild(
    kind: type[LdpStreamError], problem: Problem, facts: dict[str, object]
) -> LdpStreamError:
    return kind(problem, **facts)
