"""New terms for a stream that has some, made from its file if no promise becomes looser.

The collector makes them once, when it finds at its start that the file describes others than the
store has, and that its [stream.successor] section says how these follow those.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldpstream.collector.config import StreamConfig
from ldpstream.collector.config.successor import SuccessorConfig
from ldpstream.collector.rounds.changes import Difference, Requirement, described
from ldpstream.domain import Domain
from ldpstream.errors import Mistake, Problem
from ldpstream.protocol.strata import Succession
from ldpstream.protocol.succession import objection
from ldpstream.protocol.terms import Terms

NOTICE_MS = 60_000
"""How long before new terms are in force they are told of, or one window if that is shorter: for
other collectors of a shared store to learn of them. A device that hears later goes over later."""
OVERLAP_WINDOWS = 4
"""How long reports under earlier terms are counted, in windows of the longest level."""


def make_successor(
    config: StreamConfig, old: Terms, different: Difference, now_ms: int, begun_t: int
) -> Terms:
    """Return the terms that the file describes, as those that follow `old`.

    They are in force from the first timestamp that begins after due notice; the last one that was
    begun is `begun_t`. It is refused, in one line, if the file does not say how they follow, or if
    a device could not go over to them.
    """
    section = config.successor
    if section is None or different.verdict is Requirement.IMPOSSIBLE:
        raise refusal(config, old, different)
    if section.version != old.version + 1:
        section.refuse(
            f"version {old.version} of stream {config.name} is stored with {different.key} ="
            f" {different.stored}, but the file says {different.given}",
            f"restore the old value, or set version = {old.version + 1}",
        )
    start_ms = now_ms + min(NOTICE_MS, old.window * old.interval_ms)
    from_t = max(old.timestamp_at(start_ms - 1) + 1, begun_t + 1, _first_t(old) + 1)
    succession = Succession(
        old.pin,
        section.version,
        from_t,
        from_t - 1 + _overlap(section, old),
        _called(section, old, config),
    )
    new = described(config, config.values, old.start_ms, succession)
    for stratum in old.strata:
        why = objection(stratum, new)
        if why is not None:
            at = f" at level {stratum.level}" if stratum.level else ""
            fix = "a successor never loosens a promise: see docs/collector.md, or use a new name"
            section.refuse(f"these terms cannot follow version {old.version}{at}: {why}", fix)
    return Terms.read(new.to_json())


def urgent(found: Sequence[Difference]) -> Difference:
    """Return the difference to report first: an impossible one, if there is any."""
    impossible = (one for one in found if one.verdict is Requirement.IMPOSSIBLE)
    return next(impossible, found[0])


def refusal(config: StreamConfig, old: Terms, different: Difference) -> Mistake:
    """Return why a file cannot be served as it is, with its line, and what to do about it."""
    if different.verdict is Requirement.IMPOSSIBLE:
        why, fix = f": {different.why}", "give the stream a new name"
    else:
        why, fix = "", f"add [stream.successor] with version = {old.version + 1}"
    return Mistake(
        Problem.TERMS_CHANGED,
        file=config.source.file,
        line=config.source.line(different.key),
        stream=config.name,
        name=different.key,
        stored=different.stored,
        given=different.given,
        why=why,
        fix=fix,
    )


def _first_t(terms: Terms) -> int:
    return 0 if terms.succeeds is None else terms.succeeds.from_t


def _overlap(section: SuccessorConfig, old: Terms) -> int:
    """Return for how many timestamps reports under the old terms are counted besides the new."""
    if section.overlap_ms is None:
        return OVERLAP_WINDOWS * max(one.window for one in old.strata)
    return -(-section.overlap_ms // old.interval_ms)


def _called(section: SuccessorConfig, old: Terms, config: StreamConfig) -> tuple[str, ...] | None:
    """Return the new name of each earlier label; None in a stream of numbers."""
    if old.domain is None or not isinstance(config.values, Domain):
        return None
    for name in section.rename:
        if name not in old.domain.labels:
            what = f"{name!r} is renamed, and was no label of version {old.version}"
            section.refuse(what, "take it out of rename")
    called = tuple(section.rename.get(name, name) for name in old.domain.labels)
    for before, now in zip(old.domain.labels, called, strict=True):
        if now not in config.labels:
            what = f"label {before!r} of version {old.version} is gone, and nothing says where to"
            section.refuse(what, f'say what it is now: rename = {{ "{before}" = "..." }}')
    return called
