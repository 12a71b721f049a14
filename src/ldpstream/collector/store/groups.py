"""Releases of one group of devices, written "country:de", in place of those of the whole fleet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ldpstream.collector.store.contract import StoredRelease
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.breakdown import Group
from ldpstream.mechanisms.following import MOST_LISTED
from ldpstream.protocol.attributes import OTHER
from ldpstream.protocol.terms import Terms

GROUPS = "groups"
"""In a release: the figures of groups, where a stream has attributes."""
FIGURES = ("values", "variance", "low", "high")


def most_figures(versions: Iterable[Terms]) -> int:
    """Return how many figures a release under any of these terms has at most, with all groups."""
    return max((len(one.names) or MOST_LISTED) * (1 + len(_groups(one))) for one in versions)


def known_groups(versions: Iterable[Terms]) -> list[str]:
    """Return the groups of any version of a stream's terms, as they are written."""
    return list(dict.fromkeys(written(group) for one in versions for group in _groups(one)))


def _groups(terms: Terms) -> tuple[Group, ...]:
    return () if terms.attributes is None else terms.attributes.groups


def written(group: Group) -> str:
    """Write a group as readers and alert rules name it: "country:de"."""
    return ":".join(group)


def read_group(text: str, known: Sequence[str]) -> Group:
    """Parse a group as it is written; refuse one that the stream has not."""
    if text not in known:
        expected = f"one of {', '.join(known)}" if known else "a stream with attributes"
        raise Mistake(Problem.PARAMETER, name="group", given=repr(text), expected=expected)
    return split(text)


def split(text: str) -> Group:
    """Split a group as it is written, which is known to be valid."""
    name, _, value = text.partition(":")
    return name, value


def figures_of(content: Mapping[str, Any], group: Group) -> dict[str, Any] | None:
    """Return the figures of a group in a release, or None if it is merged or has no devices."""
    name, value = group
    found = (
        one for one in content.get(GROUPS, ()) if one["attribute"] == name and one["value"] == value
    )
    return next(found, None)


def of_group(release: StoredRelease, group: Group) -> StoredRelease:
    """Return a release with a group's figures in place of the fleet's.

    They are null where the release does not show the group; if it was merged with others, it says
    under which value.
    """
    told = figures_of(release.content, group)
    if told is None:
        merged = figures_of(release.content, (group[0], OTHER)) or {}
        own: dict[str, Any] = dict.fromkeys(FIGURES) | {"fresh": False}
        own |= {"merged_into": OTHER} if group[1] in merged.get("merged", ()) else {}
    else:
        own = {key: part for key, part in told.items() if key not in ("attribute", "value")}
    kept = {key: part for key, part in release.content.items() if key != GROUPS}
    return replace(release, content=kept | own | {"group": written(group)})
