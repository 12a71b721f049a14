"""The key of a store's chain: generated when the store is first used, and kept in it, sealed.

It is not derived from the master secret, so that the chain outlives a change of that.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from ldpstream.collector.credentials.sealing import KEY_BYTES, check_of, seal, unseal
from ldpstream.collector.store.chain import Chain
from ldpstream.errors import Mistake, Problem

MASTER = "master"
CHAIN_KEY = "chain-key"
KEYRING = "keyring"
"""The property with the earlier master secrets, sealed with the current one."""
LOG = "admin-log"
"""The property that authenticates the end of the admin log."""
_WITH_LOG = b"\1"
"""Follows the key, within its seal, in a store whose admin log has had a sealed end from the start:
so that a log without one, however empty, was tampered with. Stores of release 0.2.0 get it when
their master secret is rotated."""
STREAMS = "streams"
"""The property that authenticates the list of streams."""

Get = Callable[[str], str | None]
"""Returns a property of the store."""
Put = Callable[[str, str], object]
"""Adds one."""


def find_chain(get: Get, master: bytes, where: object) -> Chain | None:
    """Return the chain of a store with this master secret; None if it has no key."""
    if get(MASTER) not in (None, check_of(master)):
        raise Mistake(Problem.MASTER_DIFFERS, where=where)
    sealed = get(CHAIN_KEY)
    if sealed is None:
        return None
    key = unseal(master, CHAIN_KEY, sealed)
    if key is None:
        if get(MASTER) is None:
            raise Mistake(Problem.MASTER_DIFFERS, where=where)
        what = "the key of its chain does not open"
        raise Mistake(Problem.STORE_DAMAGED, file=where, what=what)
    return Chain(key[:KEY_BYTES], seals_log=key.endswith(_WITH_LOG) and len(key) > KEY_BYTES)


def with_log(key: bytes) -> bytes:
    """Return the content of a seal with the mark that the store's admin log has a sealed end."""
    return key[:KEY_BYTES] + _WITH_LOG


def key_missing(where: object) -> Mistake:
    """Return the error that a store has a chain, but not the key of it."""
    return Mistake(Problem.STORE_DAMAGED, file=where, what="the key of its chain is missing")


def draw_chain(get: Get, put: Put, master: bytes) -> Chain:
    """Generate the key of a store that has none, and keep it with a check of the master secret."""
    key = secrets.token_bytes(KEY_BYTES)
    if get(MASTER) is None:
        put(MASTER, check_of(master))
    put(CHAIN_KEY, seal(master, CHAIN_KEY, with_log(key)))
    chain = Chain(key, seals_log=True)
    put(LOG, chain.seal_log(0, b""))
    return chain
