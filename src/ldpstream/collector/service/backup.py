"""Backups of a store in one file, made while collectors run, and checked by restoring them."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import ENOSPC
from pathlib import Path
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from ldpstream import __version__
from ldpstream.collector.config import Config
from ldpstream.collector.credentials.secrets import ENVIRONMENT, file_of, find_secret
from ldpstream.collector.service.opening import find_master, needing_extras, open_archive
from ldpstream.collector.store.chain import EVERY
from ldpstream.collector.store.sqlite.integrity import find_main_file, is_begun, log_of
from ldpstream.collector.store.sqlite.portable import copy_file
from ldpstream.collector.store.sqlite.store import SqliteStore, make_private
from ldpstream.errors import Mistake, Problem
from ldpstream.machine_clock import SystemClock
from ldpstream.whole_files import write_whole

FORMAT = 1
MANIFEST, STORE, SECRETS = "manifest.json", "store.sqlite", "secrets/"

_DAMAGED = (
    *(BadZipFile, KeyError, ValueError, TypeError, EOFError, RuntimeError, OverflowError),
    *(struct.error, zlib.error, lzma.LZMAError),
)
"""What reading a ZIP with changed bytes raises: it may seem encrypted, or packed otherwise."""


@dataclass(frozen=True)
class Content:
    """What a backup holds."""

    streams: dict[str, int]
    """The last timestamp that each stream has released."""
    secrets: tuple[str, ...]


def back_up(config: Config, file: Path, *, with_secrets: bool) -> Content:
    """Back up a configuration's store; the file gets its name once a test restore has passed.

    Collectors may be running. A file that is there already is never replaced.
    """
    _refuse_existing(file)
    master = _master(config)
    secrets = _known_secrets(config) if with_secrets else {}
    with _folder_beside(file) as folder:
        store, packed = folder / STORE, make_private(folder / "packed")
        if config.database is None:
            copy_file(config.store, store)
        else:
            with needing_extras():
                from ldpstream.collector.store.postgres.portable import dump
            dump(config.database, store)
        made = Content(check(store, master), tuple(secrets))
        _pack(packed, store, made, secrets)
        again = folder / "restored"
        again.mkdir()
        if _unpack(packed, again) != made or check(again / STORE, master) != made.streams:
            raise Mistake(Problem.BACKUP_FILE, file=file, what="it differs from what was written")
        _refuse_existing(file)
        os.replace(packed, file)
    return made


def restore(file: Path, config: Config) -> Content:
    """Restore the store of a configuration from a backup; none may exist, and no collector run."""
    if config.database is None:
        _refuse_store(config.store)
    config.folder.mkdir(parents=True, exist_ok=True)
    with _folder_beside(config.store) as folder:
        content = _unpack(file, folder)
        secrets = {name: (folder / SECRETS / name).read_bytes() for name in content.secrets}
        _refuse_other_secrets(config, secrets)
        master = secrets.get("master") or find_master(config)
        if master is None:
            raise Mistake(Problem.BACKUP_NEEDS_MASTER, file=file_of("master", config.folder))
        if check(folder / STORE, master) != content.streams:
            raise Mistake(Problem.BACKUP_FILE, file=file, what="its list of streams is wrong")
        SqliteStore(folder / STORE, master).close()  # brings it to the newest version
        for name, secret in secrets.items():
            if _found(config, name) is None:
                write_whole(config.secret_files.get(name, file_of(name, config.folder)), secret)
        if config.database is None:
            os.replace(folder / STORE, config.store)
        else:
            with needing_extras():
                from ldpstream.collector.store.postgres.portable import load
            load(folder / STORE, config.database)
            check(config.database.url, master)
    return content


def _refuse_store(given: Path) -> None:
    """Refuse a place where there is a store, or what a store has left."""
    file = Path(os.path.realpath(given))
    log = log_of(file)
    if not is_begun(file) and is_begun(log):
        what = "it is the write-ahead log of an earlier store, whose file is gone"
        raise Mistake(Problem.DATA_FILE, file=log, what=what, fix="move it away")
    if is_begun(find_main_file(given)):
        raise Mistake(Problem.RESTORE_OCCUPIED, where=given)


def check(store: Path | str, master: bytes) -> dict[str, int]:
    """Follow all chains of a store; return the last timestamp of each stream."""
    with open_archive(str(store)) as archive:
        chain = archive.chain(master)
        streams = {}
        for name in sorted(archive.terms()):
            known = archive.stream(name)
            assert known is not None
            streams[name] = known.last_t
        if chain is not None:  # else an earlier release has written it
            for name in (EVERY, *streams):
                archive.check_releases(chain, name).refuse_damage()
            archive.check_log(chain).refuse_damage()
    return streams


def _refuse_existing(file: Path) -> None:
    if os.path.lexists(file):
        what, fix = "it is there already", "name a new file: a backup replaces none"
        raise Mistake(Problem.DATA_FILE, file=file, what=what, fix=fix)


def _pack(file: Path, store: Path, made: Content, secrets: dict[str, bytes]) -> None:
    manifest = {
        "format": FORMAT,
        "made_by": __version__,
        "made_ms": SystemClock().wall_ms(),
        "streams": made.streams,
        "secrets": list(made.secrets),
    }
    with file.open("wb") as raw:
        with ZipFile(raw, "w", ZIP_DEFLATED) as packed:
            packed.writestr(MANIFEST, json.dumps(manifest))
            for name, secret in secrets.items():
                packed.writestr(SECRETS + name, secret)
            packed.write(store, STORE)
        os.fsync(raw.fileno())


def _unpack(file: Path, folder: Path) -> Content:
    """Write the store of a backup, and its secrets, into a folder."""
    try:
        with ZipFile(file) as packed:
            manifest = json.loads(packed.read(MANIFEST))
            if manifest["format"] != FORMAT:
                what = f"it is of format {manifest['format']}, and this release knows {FORMAT}"
                raise Mistake(Problem.BACKUP_FILE, file=file, what=what)
            secrets = tuple(name for name in ENVIRONMENT if name in manifest["secrets"])
            content = Content(manifest["streams"], secrets)
            (folder / SECRETS).mkdir()
            for name in (STORE, *(SECRETS + one for one in secrets)):
                with packed.open(name) as source, make_private(folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except _DAMAGED as error:
        raise Mistake(Problem.BACKUP_FILE, file=file, what=error) from None
    except OSError as error:
        if error.errno == ENOSPC:  # nothing is wrong with the backup
            raise
        raise Mistake(Problem.BACKUP_FILE, file=file, what=error.strerror or error) from None
    return content


def _master(config: Config) -> bytes:
    master = find_master(config)
    if master is None:
        where = config.database or config.store
        raise Mistake(Problem.MASTER_MISSING, where=where, file=file_of("master", config.folder))
    return master


def _known_secrets(config: Config) -> dict[str, bytes]:
    found = {name: _found(config, name) for name in ENVIRONMENT}
    return {name: secret for name, secret in found.items() if secret is not None}


def _found(config: Config, name: str) -> bytes | None:
    file = config.secret_files.get(name)
    files = {} if file is None or not file.exists() else {name: file}
    return find_secret(name, files, config.folder)


def _refuse_other_secrets(config: Config, secrets: dict[str, bytes]) -> None:
    """Refuse to put secrets into the place of others."""
    for name, secret in secrets.items():
        if _found(config, name) not in (None, secret):
            raise Mistake(
                Problem.SECRET_FILE,
                file=config.secret_files.get(name, file_of(name, config.folder)),
                what=f"there is another {name} secret than that of the backup",
                fix="move it away",
            )


@contextmanager
def _folder_beside(file: Path) -> Iterator[Path]:
    """Make a folder for the owner only, on the disk of a file that will be moved there."""
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as name:
            yield Path(name)
    except OSError as error:
        fix = "name a file in a writable folder, on a disk with room for it"
        raise Mistake(Problem.DATA_FILE, file=file, what=error.strerror, fix=fix) from None
