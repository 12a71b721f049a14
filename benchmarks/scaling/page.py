"""Results as tables of a page, in which the text between two markers is replaced."""

from __future__ import annotations

from typing import Any

from scaling import sizing

BEGIN, END = "<!-- benchmarks/scale.py: begin -->", "<!-- benchmarks/scale.py: end -->"


def page_with(page: str, results: dict[str, Any]) -> str:
    tables = f"{BEGIN}\n{_tables(results)}\n{END}"
    head, begin, rest = page.partition(BEGIN)
    return head + tables + rest.partition(END)[2] if begin else tables


def _tables(results: dict[str, Any]) -> str:
    return "\n\n".join(
        [
            "**Reports accepted durably**, in batches of 1,000 over loopback. The load, the"
            " collectors and the servers share the cores: a second collector shows that nothing is"
            " in its way, not what it adds on a machine of its own. SQLite and PostgreSQL have"
            " synced the disk when they answer. The nats-server of the tests (2.9) has written to"
            " it, and syncs up to two minutes later: it survives kill -9, and leaves power cuts to"
            " replicas, of which there is none here. Single: each report in a request of its own,"
            " as devices send it." + _conditions("ingest", results),
            _table(results["ingest"]["rows"]),
            "**From the deadline to the tally** of a round whose OLH reports, d = 128, all come in"
            " a burst before it. CPU is of all processes of the engine; memory is the most that"
            " each of them has held, added up, pages that they share as often as they share them."
            + _conditions("local", results),
            _table(results["local"]["rows"]),
            "The same on Spark, `local-cluster[2,1,1024]`." + _conditions("spark", results),
            _table(results["spark"]["rows"]),
            "**Faults**: kill -9 in the middle of a round." + _conditions("faults", results),
            _table(results["faults"]["rows"]),
            "**A device in a day**: slots, in which it reports unasked, against long polls of"
            " 30 s, by which it hears of rounds. The bytes are those of HTTP, both ways together,"
            " counted on the socket of a real collector; the rest is arithmetic."
            + _conditions("wire", results),
            _table(results["wire"]["rows"]),
            "**A million devices** with slots in one process (`ldpstream fleet --simulated`:"
            " arrays instead of ledger files), which sends their reports in batches, against one"
            " collector with SQLite. Late are reports whose round was over. Memory is the most"
            " that each process has held; the fleet holds every user's value besides. They had"
            " enrolled before, one by one over HTTP." + _conditions("million", results),
            _table(results["million"]["rows"]),
            f"**Sizes**, extrapolated from the tables above: timestamps of"
            f" {sizing.INTERVAL_SECONDS // 60} minutes, a device reports once in {sizing.WINDOW} of"
            f" them, reports come up to {sizing.PEAK} times faster than on the average, everything"
            f" is used to {sizing.SHARE:.0%} of what was measured on one core, a round is counted"
            f" {sizing.TALLY_SECONDS} s after a burst, the log keeps {sizing.RETENTION_HOURS} hours"
            f" on {sizing.REPLICAS} servers. Collectors are for devices that send each report by"
            " itself, or for gateways that send 1,000 at once. With slots nothing is announced;"
            f" with open selection or a roster, collectors that each hold {sizing.LISTENERS:,} long"
            " polls announce rounds. Measured: the rate of a collector, of a log, of an engine's"
            " core, bytes in the log and of a report with its answer. Not measured: any of it on"
            " more than one machine.",
            _table(results["sizing"]),
        ]
    )


def _conditions(section: str, results: dict[str, Any]) -> str:
    found = results[section]
    flags = " --quick" if found["quick"] else ""
    return (
        f" `benchmarks/scale.py{flags} --only {section}`, one run on {found['cores']} cores that"
        f" others used too: load {found['load']} at its start."
    )


def _table(rows: list[dict[str, Any]]) -> str:
    names = list(rows[0])
    lines = [" | ".join(name.replace("_", " ") for name in names), "|".join("---" for _ in names)]
    lines += [" | ".join(_cell(row[name]) for name in names) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    return f"{value:,}" if isinstance(value, int | float) else str(value)
