"""Labels and their indexes."""

from __future__ import annotations

import pytest

from ldpstream.domain import LONGEST_LABEL, MOST_LABELS, Domain, check_labels
from ldpstream.errors import Mistake, Problem


def test_indexes_start_at_zero_and_follow_the_order_given() -> None:
    domain = Domain.of(["b", "a", "c"])
    assert [domain.index(label) for label in ("b", "a", "c")] == [0, 1, 2]
    assert len(domain) == 3


def test_domains_are_equal_when_their_labels_are() -> None:
    assert Domain.of(["0", "1"]) == Domain.numbered(2)
    assert hash(Domain.of(["0", "1"])) == hash(Domain.numbered(2))
    assert Domain.of(["1", "0"]) != Domain.numbered(2)


@pytest.mark.parametrize("size", [-1, 0, 1, MOST_LABELS + 1])
def test_sizes_that_no_oracle_serves_are_refused(size: int) -> None:
    for make in (check_labels, Domain.numbered):
        with pytest.raises(Mistake) as refusal:
            make(size)
        assert str(refusal.value) == f"the domain has {size} labels; give 2 to 65536"


def test_the_largest_domain_is_served() -> None:
    assert Domain.numbered(MOST_LABELS).index("65535") == 65535


def test_a_label_stands_once() -> None:
    with pytest.raises(Mistake) as refusal:
        Domain.of(["a", "b", "a"])
    assert refusal.value.problem is Problem.DOMAIN_DUPLICATE
    assert str(refusal.value) == "label 'a' appears twice in the domain; name each label once"


def test_a_label_has_at_most_1000_characters() -> None:
    """Of characters, not of bytes, whatever they take on the wire."""
    longest = "😀" * LONGEST_LABEL
    assert Domain.of([longest, "b"]).index(longest) == 0
    with pytest.raises(Mistake) as refusal:
        Domain.of(["b", "a" * 1001])
    assert refusal.value.problem is Problem.LABEL_LENGTH
    assert str(refusal.value) == "a label has 1001 characters; give it at most 1000"


def test_an_unknown_label_is_answered_with_the_first_known_ones() -> None:
    with pytest.raises(Mistake) as refusal:
        Domain.of(["red", "green"]).index("blue")
    assert str(refusal.value) == "'blue' is not a label of this domain; use one of: red, green"
    with pytest.raises(Mistake, match=r"0, 1, 2, 3, 4, 5, 6, 7, \.\.\.$"):
        Domain.numbered(1000).index("x")
