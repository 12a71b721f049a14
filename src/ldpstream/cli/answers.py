"""The JSON objects that a collector answers with, which may come from another program."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from ldpstream.errors import LdpStreamError, Mistake, Problem

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Answer(dict[str, Any]):
    """An object of an answer; a key that it should have and has not is a user's mistake.

    >>> try:
    ...     read_answer("status", b'{"streams": {"a": {}}}')["streams"]["a"]["state"]
    ... except Mistake as refusal:
    ...     print(str(refusal).partition(";")[0])
    the collector's answer (status) is without 'state'
    """

    def __init__(self, what: str, members: Any) -> None:
        super().__init__(members)
        self._what = what

    def __missing__(self, name: str) -> Any:
        raise malformed(self._what, f"without {name!r}")


def malformed(what: str, given: str) -> Mistake:
    """Return the error about an answer that no collector gives."""
    return Mistake(Problem.ANSWER_MALFORMED, what=what, given=given)


def read_answer(what: str, content: bytes) -> Answer:
    """Read the object in the answer to a request for `what`; refuse anything else."""
    try:
        told = json.loads(content, object_pairs_hook=partial(Answer, what))
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, Answer):
        raise malformed(what, "no JSON object")
    return told


def reads_answers(what: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Let a command refuse answers about `what` whose parts have other types than a collector's."""

    def decorate(command: Callable[Given, Result]) -> Callable[Given, Result]:
        @wraps(command)
        def call(*given: Given.args, **options: Given.kwargs) -> Result:
            try:
                return command(*given, **options)
            except LdpStreamError:
                raise
            except (AttributeError, IndexError, TypeError, ValueError) as fault:
                raise malformed(what, "of an unexpected form") from fault

        return call

    return decorate
