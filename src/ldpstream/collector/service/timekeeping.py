"""The clock that a service uses."""

from __future__ import annotations

from ldpstream.collector.clock import Clock, ConfirmedClock
from ldpstream.collector.config import Config
from ldpstream.collector.store.contract import Store
from ldpstream.machine_clock import SystemClock


def clock_of(config: Config, store: Store) -> Clock:
    """Return the machine's clock, confirmed by a shared store's, or by what is kept beside a file.

    Collectors of a shared store need no file: its clock outlives them.
    """
    machine = SystemClock()
    if store.shared:
        return ConfirmedClock(machine, store_ms=store.clock_ms())
    return ConfirmedClock(machine, config.folder / "clock.json", _last_release_ms(config, store))


def _last_release_ms(config: Config, store: Store) -> int | None:
    """Return when something was last released, of any stream."""
    known = {one.name: store.stream(one.name) for one in config.streams}
    return max(
        (
            release.at_ms
            for name, stream in known.items()
            if stream is not None
            for release in store.releases(name, stream.last_t, 1)
        ),
        default=None,
    )
