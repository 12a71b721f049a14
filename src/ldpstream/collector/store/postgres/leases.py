"""Leases: which collector leads a stream, by the server's clock."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from ldpstream.collector.store.contract import Lease
from ldpstream.collector.store.postgres.connections import Connections, Transaction
from ldpstream.errors import Mistake, Problem

TAKE = Transaction("lease", again=True)
RENEW = Transaction("renew", again=True)
GIVE_BACK = Transaction("give_back", again=True)


def take(connections: Connections, stream: str, holder: str, seconds: float) -> Lease | None:
    """Take a lease that is free or expired, or renew the holder's own; else return None."""

    def work(connection: psycopg.Connection) -> Lease | None:
        row = connection.execute(
            "INSERT INTO lease AS held"
            " SELECT id, %(holder)s, 1, clock_timestamp() + make_interval(secs => %(seconds)s)"
            " FROM stream WHERE name = %(stream)s"
            " ON CONFLICT (stream) DO UPDATE SET holder = excluded.holder,"
            " expires = excluded.expires,"
            " token = held.token + (held.holder <> excluded.holder)::int"
            " WHERE held.holder = excluded.holder OR held.expires <= clock_timestamp()"
            " RETURNING token",
            {"stream": stream, "holder": holder, "seconds": seconds},
        ).fetchone()
        return None if row is None else Lease(stream, holder, int(row[0]))

    return connections.do(TAKE, work)


def renew(connections: Connections, held: Sequence[Lease], seconds: float) -> set[Lease]:
    """Renew the leases of one holder with one statement; return those whose tokens still hold."""

    def work(connection: psycopg.Connection) -> set[Lease]:
        rows = connection.execute(
            "UPDATE lease SET expires = clock_timestamp() + make_interval(secs => %s)"
            " FROM stream JOIN unnest(%s::text[], %s::bigint[]) AS mine (name, token)"
            " USING (name) WHERE lease.stream = stream.id AND lease.token = mine.token"
            " RETURNING name",
            (seconds, [one.stream for one in held], [one.token for one in held]),
        ).fetchall()
        renewed = {name for (name,) in rows}
        return {one for one in held if one.stream in renewed}

    return connections.do(RENEW, work)


def give_back(connections: Connections, lease: Lease) -> None:
    """Let a lease expire now, unless another collector has taken it already."""

    def work(connection: psycopg.Connection) -> None:
        connection.execute(
            "UPDATE lease SET expires = clock_timestamp() WHERE token = %s AND stream ="
            " (SELECT id FROM stream WHERE name = %s)",
            (lease.token, lease.stream),
        )

    connections.do(GIVE_BACK, work)


def check(connection: psycopg.Connection, lease: Lease) -> None:
    """Refuse the transaction unless its lease has the current fencing token.

    The row stays locked: whoever takes the lease over waits for this commit. A lease that has
    expired and that nobody has taken is still good: nobody else has acted.
    """
    row = connection.execute(
        "SELECT token FROM lease WHERE stream = (SELECT id FROM stream WHERE name = %s) FOR SHARE",
        (lease.stream,),
    ).fetchone()
    if row != (lease.token,):
        raise Mistake(Problem.LEASE_LOST, stream=lease.stream)
