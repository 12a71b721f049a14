"""The table of data sets. A new one is one file here and one line below."""

from __future__ import annotations

from ldpstream.errors import Mistake, Problem
from ldpstream.streams.datasets.dataset import DataSet
from ldpstream.streams.datasets.foursquare import FOURSQUARE
from ldpstream.streams.datasets.gowalla import GOWALLA
from ldpstream.streams.datasets.msnbc import MSNBC
from ldpstream.streams.datasets.nycflights import NYCFLIGHTS
from ldpstream.streams.datasets.taobao import TAOBAO
from ldpstream.streams.datasets.tdrive import TDRIVE
from ldpstream.streams.events import EventsStream

DATA_SETS = {
    known.name: known for known in (TDRIVE, FOURSQUARE, TAOBAO, MSNBC, GOWALLA, NYCFLIGHTS)
}


def data_set(name: str) -> DataSet:
    if name not in DATA_SETS:
        raise Mistake(Problem.DATA_SET_UNKNOWN, given=name, known=", ".join(DATA_SETS))
    return DATA_SETS[name]


def open_data_set(name: str) -> EventsStream:
    """Return the prepared stream of this name."""
    known = data_set(name)
    stream = known.open()
    if stream is None:
        raise Mistake(Problem.DATA_SET_NOT_PREPARED, name=name, where=known.where)
    return stream


def prepared_streams(most: int) -> list[EventsStream]:
    """Return all data sets that are prepared; longer ones are cut after `most` timestamps."""
    streams = (known.open() for known in DATA_SETS.values())
    return [one.first(min(one.timestamps, most)) for one in streams if one is not None]
