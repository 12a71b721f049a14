"""The catalogue: every entry is one line that says what is wrong and what to do."""

from __future__ import annotations

import copy
import pickle
import string

import pytest

from ldpstream.errors import GuaranteeBroken, LdpStreamError, MalformedReport, Mistake, Problem

KINDS = (LdpStreamError, Mistake, MalformedReport, GuaranteeBroken)


def facts_of(problem: Problem) -> dict[str, object]:
    """Some value for everything that an entry's template mentions."""
    template = problem.message + problem.remedy
    return {name: 7 for _, name, _, _ in string.Formatter().parse(template) if name}


@pytest.mark.parametrize("problem", Problem)
def test_an_entry_reads_as_one_line(problem: Problem) -> None:
    line = str(Mistake(problem, **facts_of(problem)))
    assert "\n" not in line
    assert "{" not in line
    assert "; " in line
    assert not line.endswith(".")


@pytest.mark.parametrize("problem", Problem)
def test_an_entry_states_a_problem_and_a_remedy(problem: Problem) -> None:
    assert problem.message.strip() == problem.message != ""
    assert problem.remedy.strip() == problem.remedy != ""


def test_codes_are_unique_and_fit_into_a_url() -> None:
    codes = [problem.code for problem in Problem]
    assert len(set(codes)) == len(codes) == len(Problem.__members__)
    assert set("".join(codes)) <= set(string.ascii_lowercase + "-")
    assert Problem.EPSILON_RANGE.code == "epsilon-range"


@pytest.mark.parametrize("kind", KINDS)
def test_errors_survive_the_way_to_another_process(kind: type[LdpStreamError]) -> None:
    error = kind(Problem.TIMESTAMP_ORDER, given=3, last=5)
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is kind
        assert str(again) == (
            "timestamp 3 was asked for after 5; ask for timestamps in increasing order"
        )
        assert (again.problem, again.facts) == (error.problem, error.facts)


def test_a_missing_fact_is_a_bug_and_not_a_message_with_a_hole() -> None:
    with pytest.raises(KeyError):
        Mistake(Problem.TIMESTAMP_ORDER, given=3)


def test_a_broken_guarantee_is_no_mistake_of_the_caller() -> None:
    """What catches user errors must not swallow it."""
    assert not issubclass(GuaranteeBroken, ValueError)
    assert issubclass(Mistake, ValueError)
