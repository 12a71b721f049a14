"""Errors in reading a damaged store, whatever they are, reported in one line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ldpstream.errors import LdpStreamError, Mistake, Problem

MOST_CHARACTERS = 200

_log = logging.getLogger(__name__)


@contextmanager
def reading_store(where: object) -> Iterator[None]:
    """Refuse the store if the block fails with an unexpected exception.

    A file may hold any JSON, number or NULL anywhere, so its exceptions cannot be listed.
    """
    try:
        yield
    except LdpStreamError:
        raise
    except Exception as error:
        _log.debug("the store cannot be read", exc_info=True)
        words = f"{type(error).__name__}: {error}".splitlines()[0][:MOST_CHARACTERS]
        raise Mistake(Problem.STORE_DAMAGED, file=where, what=words) from None
