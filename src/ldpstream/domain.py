"""The domain: the labels a value can take, and their indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ldpstream.errors import Mistake, Problem

MOST_LABELS = 1 << 16
"""The hash of the local-hashing oracles is exact for values of 16 bits (`oracles/hashing.py`)."""

LONGEST_LABEL = 1000
"""In characters (code points). Devices store the labels of a stream, whoever has named them."""

SHOWN = 8
"""The labels of a domain that a message or a repr names."""


def check_labels(labels: int, most: int = MOST_LABELS) -> int:
    """Refuse a domain of fewer than 2 labels, or of more than `most`."""
    if not 2 <= labels <= most:
        raise Mistake(Problem.DOMAIN_SIZE, given=labels, most=most)
    return labels


@dataclass(frozen=True, repr=False)
class Domain:
    """An ordered set of labels; a value is stored as the index of its label, from 0.

    >>> colours = Domain.of(["red", "green", "blue"])
    >>> colours.index("blue"), colours.labels[0], len(colours)
    (2, 'red', 3)
    >>> Domain.numbered(4).labels
    ('0', '1', '2', '3')
    >>> Domain.numbered(100)
    Domain('0', '1', '2', '3', '4', '5', '6', '7', ... 100 labels)
    """

    most_labels: ClassVar[int] = MOST_LABELS

    labels: tuple[str, ...]
    _indexes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_labels(len(self.labels), self.most_labels)
        indexes: dict[str, int] = {}
        for index, label in enumerate(self.labels):
            if len(label) > LONGEST_LABEL:
                raise Mistake(Problem.LABEL_LENGTH, given=len(label), most=LONGEST_LABEL)
            if indexes.setdefault(label, index) != index:
                raise Mistake(Problem.DOMAIN_DUPLICATE, label=label)
        object.__setattr__(self, "_indexes", indexes)

    @classmethod
    def of(cls, labels: Sequence[str]) -> Domain:
        return cls(tuple(labels))

    @classmethod
    def numbered(cls, size: int) -> Domain:
        """A domain whose labels are the indexes themselves."""
        return cls(tuple(str(index) for index in range(check_labels(size))))

    def __repr__(self) -> str:
        more = [f"... {len(self)} labels"] if len(self) > SHOWN else []
        return f"Domain({', '.join([*map(repr, self.labels[:SHOWN]), *more])})"

    def __len__(self) -> int:
        return len(self.labels)

    def index(self, label: str) -> int:
        try:
            return self._indexes[label]
        except KeyError:
            known = ", ".join(self.labels[:SHOWN]) + (", ..." if len(self) > SHOWN else "")
            raise Mistake(Problem.LABEL_UNKNOWN, label=label, known=known) from None
