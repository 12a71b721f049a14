"""A change of labels: what was known of the old labels is carried over to the new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Flags, Floats


@dataclass(frozen=True)
class Relabelling:
    """The new label of each old one, by index; labels are along the last axis.

    A label that stays, or has another name, keeps what was known of it. Of labels that were merged
    the means are added, and so are the variances: errors of labels are taken as uncorrelated, and
    since frequencies sum to 1 they are correlated negatively, if at all, so that the sum errs on
    the wide side. What was known of a removed label is dropped, and a new one begins unknown.

    >>> move = Relabelling.between(["a", "b", "c"], ["c", "ab", "d"], called=["ab", "ab", "c"])
    >>> move.summed(np.array([0.25, 0.25, 0.5]), unknown=0.1).tolist()
    [0.5, 0.5, 0.1]
    """

    targets: tuple[int | None, ...]
    """The new index of each old label, or None if it was removed."""
    labels: int
    """The number of labels now."""

    @classmethod
    def between(
        cls, old: Sequence[str], new: Sequence[str], called: Sequence[str] | None = None
    ) -> Relabelling:
        """Return the change from `old` to `new` labels; `called` has the old ones' names of now."""
        places = {name: place for place, name in enumerate(new)}
        return cls(tuple(places.get(name) for name in called or old), len(new))

    @classmethod
    def same(cls, labels: int) -> Relabelling:
        """Return the change that changes nothing."""
        return cls(tuple(range(labels)), labels)

    @classmethod
    def unrelated(cls, before: int, labels: int) -> Relabelling:
        """Return the change to labels that are all new."""
        return cls((None,) * before, labels)

    @property
    def is_same(self) -> bool:
        return self == Relabelling.same(self.labels)

    @cached_property
    def parts(self) -> NDArray[np.int64]:
        """The number of labels of before that each label of now is made of."""
        return np.bincount(self._places, minlength=self.labels)

    @property
    def new(self) -> Flags:
        """Whether a label was not there before."""
        new: Flags = self.parts == 0
        return new

    @cached_property
    def _kept(self) -> Flags:
        return np.array([place is not None for place in self.targets], np.bool_)

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        return np.array([place for place in self.targets if place is not None], np.int64)

    def summed(self, array: Floats, unknown: Floats | float = 0.0) -> Floats:
        """Return an array by labels of now: sums over those of before, `unknown` for new ones."""
        if self.is_same:
            return array
        sums = np.zeros((self.labels, *array.shape[:-1]))
        np.add.at(sums, self._places, np.moveaxis(array[..., self._kept], -1, 0))
        return np.where(self.new, unknown, np.moveaxis(sums, 0, -1))

    def mean(self, array: Floats, unknown: Floats | float) -> Floats:
        """Return an array by labels of now: means over those of before, `unknown` for new ones."""
        return self.summed(array / np.maximum(self._shared_by, 1), unknown)

    @property
    def _shared_by(self) -> Floats:
        """Return, for each earlier label, how many make up the one that it is now."""
        shared = np.ones(len(self.targets))
        shared[self._kept] = self.parts[self._places]
        return shared

    def latest(self, array: Floats, unknown: float) -> Floats:
        """Return an array by labels of now: the largest of those of before."""
        largest = np.full(self.labels, -np.inf)
        np.maximum.at(largest, self._places, array[self._kept])
        return np.where(self.new, unknown, largest)
