"""A stream of texts that is driven by hand: devices in their groups, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from ldpstream.collector.config import StreamConfig
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.store.contract import Store, StoredRelease
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.vocabulary import Vocabulary
from tests.collector.driving import World
from tests.collector.helpers import SECRETS, source_of, stream_config, unsigned

WINDOW = 4
POPULATION = 1600
SALT = "00000000000000ff"
NASTY = 'a,"b"\n\\ é'
"""A text with all that a format must escape."""


def texts_config(folder: Path, **stream: object) -> StreamConfig:
    return stream_config(folder, **(TEXTS | stream))


TEXTS: dict[str, object] = {
    "labels": None,
    "vocabulary": "open",
    "salt": SALT,
    "bits": 16,
    "prefixes": [2, 4],
    "epsilon": 4,
    "window": WINDOW,
    "mechanism": None,
    "oracle": None,
    "selection": None,
    "population": POPULATION,
}
"""Keys of a stream in which a third of 1600 devices is found within a window or two."""


@dataclass
class TextWorld(World):
    """Devices that hold one of some texts, report in a slot of their own, and keep their group."""

    held: Sequence[str] = ("osl", "rome", "paris")
    """What the devices hold, each about as many; it depends on neither group nor slot."""
    silent: frozenset[int] = frozenset()
    """Timestamps at which nobody reports."""

    def holds(self, number: int) -> str:
        return self.held[crc32(b"%d" % number) % len(self.held)]

    def answering(self, asking: OpenRound) -> list[int]:
        t = asking.stored.t
        return [] if t in self.silent else [n for n in self.devices if n % WINDOW == t % WINDOW]

    def answer(self, store: Store, asking: OpenRound) -> None:
        self.told.setdefault(asking.name, asking)
        numbers = self.answering(asking)
        if numbers:
            records = unsigned(*((n, self.report(asking, n)) for n in numbers))
            store.accept(self.config.name, asking.name, records)

    def report(self, asking: OpenRound, number: int) -> bytes:
        words = asking.terms.values
        assert isinstance(words, Vocabulary)
        group = number // WINDOW % len(words.groups)
        inner = asking.terms.oracle.device(len(words), asking.terms.epsilon)
        tagged = Tagged(inner, len(words.groups), group)
        bucket = words.bucket(self.holds(number), words.groups[group])
        return tagged.encode(tagged.perturb(bucket, source_of(f"{asking.name} {number}")))

    def releases(self) -> list[StoredRelease]:
        store = SqliteStore(self.file, SECRETS.master)
        try:
            return store.releases(self.config.name, 0, 10_000)
        finally:
            store.close()


def world_of(folder: Path, name: str = "store", **stream: object) -> TextWorld:
    return TextWorld(texts_config(folder, **stream), folder / f"{name}.sqlite")


def labels_of(release: StoredRelease) -> list[str]:
    labels: list[str] = release.content["labels"]
    return labels
