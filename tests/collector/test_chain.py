"""The chain itself, without a store; and that its tests would notice if it forgot something."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import replace

import pytest

from ldpstream.collector.credentials.sealing import seal, unseal
from ldpstream.collector.store.chain import Chain, ChainEnds, ChainRow, LinkedRow

KEY = bytes(range(32))
Kept = tuple[ChainEnds, list[LinkedRow]]


def kept(chain: Chain) -> Kept:
    numbers = range(1, 8)
    rows = [ChainRow(2 * n, 1000, b'{"values":[0.%d]}' % n, 10, 8, False) for n in numbers]
    links, ends = chain.extended("a", chain.begun("a", b"{}"), rows, b'{"t":7}')
    return ends, [(*row, link) for row, link in zip(rows, links, strict=True)]


def changed(position: int, value: object) -> Callable[[Kept], Kept]:
    """Change a column of the fourth release."""

    def change(given: Kept) -> Kept:
        ends, rows = given
        row = list(rows[3])
        row[position] = value
        return ends, [*rows[:3], tuple(row), *rows[4:]]  # type: ignore[list-item]

    return change


def without(first: int, after: int) -> Callable[[Kept], Kept]:
    return lambda given: (given[0], given[1][:first] + given[1][after:])


def cut_off(given: Kept) -> Kept:
    """Remove the tail, and let the row say that this is the end."""
    ends, rows = given
    return replace(ends, last_t=8, head=rows[3][-1]), rows[:4]


def exchanged(given: Kept) -> Kept:
    ends, rows = given
    third, fourth = rows[2], rows[3]
    swapped: list[LinkedRow] = [(6, *fourth[1:]), (8, *third[1:])]
    return ends, [*rows[:2], *swapped, *rows[4:]]


DAMAGE: dict[str, Callable[[Kept], Kept]] = {
    "t": changed(0, 9),
    "time": changed(1, 4001),
    "content": changed(2, b'{"values":[0.9]}'),
    "asked": changed(3, 11),
    "received": changed(4, 9),
    "missed": changed(5, True),
    "removed": without(2, 4),
    "tail": without(5, 7),
    "tail and row": cut_off,
    "exchanged": exchanged,
    "state": lambda given: (replace(given[0], mechanism=b'{"t":8}'), given[1]),
    "no state": lambda given: (replace(given[0], mechanism=None), given[1]),
    "terms": lambda given: (replace(given[0], terms=b'{"window":1}'), given[1]),
    "another type": changed(2, None),
}


def unnoticed(kind: type[Chain]) -> set[str]:
    chain = kind(KEY)
    assert chain.check("a", *kept(chain)).damage is None
    return {
        name for name, damage in DAMAGE.items() if not chain.check("a", *damage(kept(chain))).damage
    }


def forgetting(position: int) -> type[Chain]:
    """A chain that leaves out a column, or (0) the link before."""

    class Forgetting(Chain):
        def _link_after(self, stream: str) -> Callable[..., bytes]:
            real = super()._link_after(stream)

            def link(*given: object) -> bytes:
                usual: object = b"" if isinstance(given[position], bytes) else 0
                return real(*given[:position], usual, *given[position + 1 :])

            return link

    return Forgetting


class Unsealed(Chain):
    """A chain that trusts the stream's row."""

    def _seal(self, stream: str, ends: ChainEnds) -> bytes:
        return b""


def test_nothing_that_is_done_to_releases_goes_unnoticed() -> None:
    assert unnoticed(Chain) == set()


@pytest.mark.parametrize("position", range(7))
def test_a_chain_that_forgets_something_would_be_noticed(position: int) -> None:
    assert unnoticed(forgetting(position)) != set()


def test_a_row_that_is_not_sealed_would_be_noticed() -> None:
    assert unnoticed(Unsealed) >= {"tail and row", "state", "terms"}


def test_links_cannot_be_made_without_the_key() -> None:
    made = kept(Chain(bytes(32)))
    damage = Chain(KEY).check("a", *made).damage
    assert damage is not None
    assert damage.t == 2


def test_a_link_is_what_the_documentation_says() -> None:
    """So that others can check a chain, and no later version changes it unnoticed."""
    ends, ((*_, first), *_) = kept(Chain(KEY))
    start = hmac.digest(KEY, b"ldpstream chain 1\na", "sha256")
    numbers = b"".join(n.to_bytes(8, "big") for n in (2, 1000, 10, 8)) + b"\0"
    content = b'{"values":[0.1]}'
    message = b"ldpstream release 1\na\n" + start + numbers + content
    assert first == hmac.digest(KEY, message, "sha256")
    assert ends.checkpoint == start


def test_progress_is_told() -> None:
    chain, told = Chain(KEY), list[int]()
    rows = [ChainRow(t, t, b"{}", 0, 0, False) for t in range(1, 20_002)]
    links, ends = chain.extended("a", chain.begun("a", b"{}"), rows, b"{}")
    linked = [(*row, link) for row, link in zip(rows, links, strict=True)]
    assert chain.check("a", ends, linked, told.append).damage is None
    assert told == [10_000, 20_000]


def test_a_key_is_sealed_for_one_secret_and_one_purpose() -> None:
    sealed = seal(b"master", "chain-key", KEY)
    assert sealed != seal(b"master", "chain-key", KEY)
    assert KEY.hex() not in sealed
    assert unseal(b"master", "chain-key", sealed) == KEY
    for master, label, given in (
        (b"another", "chain-key", sealed),
        (b"master", "other", sealed),
        (b"master", "chain-key", "00" + sealed[2:]),
        (b"master", "chain-key", sealed[:-2]),
        (b"master", "chain-key", ""),
        (b"master", "chain-key", "nonsense"),
    ):
        assert unseal(master, label, given) is None
