"""The collector's three secrets, from the environment or files, or generated on first start.

They never stand in the configuration itself, which people mail around and commit.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ldpstream.errors import Mistake, Problem
from ldpstream.whole_files import write_whole

ENVIRONMENT = {
    "master": "LDPSTREAM_MASTER_SECRET",
    "enrolment": "LDPSTREAM_ENROLMENT_TOKEN",
    "admin": "LDPSTREAM_ADMIN_TOKEN",
}
NEW_MASTER = "LDPSTREAM_NEW_MASTER_SECRET"
LEAST_CHARACTERS = 16


@dataclass(frozen=True)
class MasterSource:
    """Where the master secret of a collector is, and the new one while it is being rotated.

    The new one is on disk before the store hears of it, and takes the other's place when the store
    has it. So after a crash one of the two opens the store.
    """

    file: Path | None = None
    """None if the secret comes from the environment."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    @property
    def _new_file(self) -> Path | None:
        return None if self.file is None else self.file.with_name(f"{self.file.name}.new")

    @property
    def new(self) -> bytes | None:
        """The master secret that is to take the place of the present one, or None."""
        if NEW_MASTER in self.environment:
            return _checked(NEW_MASTER, self.environment[NEW_MASTER])
        file = self._new_file
        return _checked(str(file), _read(file)) if file is not None and file.exists() else None

    @property
    def known(self) -> tuple[bytes, ...]:
        """The secrets that are there now, in the environment or on disk."""
        given = self.environment.get(ENVIRONMENT["master"]) if self.file is None else None
        present = None if given is None else _checked(ENVIRONMENT["master"], given)
        if self.file is not None and self.file.exists():
            present = _checked(str(self.file), _read(self.file))
        return tuple(one for one in (present, self.new) if one is not None)

    def prepare(self) -> Path | None:
        """Generate a new master secret, unless there is one; return its file, or None."""
        if self.new is None:
            if self._new_file is None:
                raise Mistake(Problem.MASTER_IN_ENVIRONMENT)
            _draw(self._new_file)
        return None if NEW_MASTER in self.environment else self._new_file

    def settle(self, current: bytes) -> None:
        """Put the new master secret into the place of the other, if it is the current one."""
        file = self._new_file
        if file is None or not file.exists() or _checked(str(file), _read(file)) != current:
            return
        assert self.file is not None
        write_whole(self.file, current + b"\n")
        file.unlink()


@dataclass(frozen=True)
class Secrets:
    """The three secrets, which `repr` does not show."""

    master: bytes
    """Every device's key is derived from it. `keys rotate` changes it without a new enrolment."""
    enrolment: bytes
    admin: bytes
    drawn: Path | None = field(default=None, compare=False)
    """The file of the master secret, if it was generated just now."""
    source: MasterSource = field(default=MasterSource(), compare=False)

    def __repr__(self) -> str:
        return "Secrets(...)"

    def forget_drawn(self) -> None:
        """Remove a master secret that was generated just now, and turned out to be of no use."""
        if self.drawn is not None:
            self.drawn.unlink(missing_ok=True)

    @classmethod
    def load(
        cls, files: Mapping[str, Path], folder: Path, environment: Mapping[str, str] = os.environ
    ) -> Secrets:
        """Find each in the environment, its file or `folder`; generate those that are missing."""
        found, drawn = {}, None
        for name in ENVIRONMENT:
            known = find_secret(name, files, folder, environment)
            if known is None:
                file = file_of(name, folder)
                _draw(file)
                drawn = file if name == "master" else drawn
                known = _checked(str(file), _read(file))
            found[name] = known
        given = ENVIRONMENT["master"] in environment
        place = None if given else files.get("master", file_of("master", folder))
        return cls(**found, drawn=drawn, source=MasterSource(place, environment))


def file_of(name: str, folder: Path) -> Path:
    """Return where a secret is that neither the environment nor the configuration gives."""
    return folder / f"{name}.secret"


def place_of(
    name: str,
    files: Mapping[str, Path],
    folder: Path,
    environment: Mapping[str, str] = os.environ,
) -> str:
    """Return where a secret is, in words: a variable of the environment, or a file."""
    variable = ENVIRONMENT[name]
    if variable in environment:
        return f"the environment: {variable}"
    return str(files.get(name, file_of(name, folder)))


def find_secret(
    name: str,
    files: Mapping[str, Path],
    folder: Path,
    environment: Mapping[str, str] = os.environ,
) -> bytes | None:
    """Return a secret from the environment, its file or the folder; None if it is nowhere."""
    variable = ENVIRONMENT[name]
    if variable in environment:
        return _checked(variable, environment[variable])
    file = files.get(name, file_of(name, folder))
    if name not in files and not file.exists():
        return None
    return _checked(str(file), _read(file))


def _checked(source: str, text: str) -> bytes:
    secret = text.strip()
    if len(secret) < LEAST_CHARACTERS or not secret.isascii():
        raise Mistake(
            Problem.SECRET_FILE,
            file=source,
            what="a secret is too short, or not plain ASCII",
            fix=f"give at least {LEAST_CHARACTERS} characters, drawn at random",
        )
    return secret.encode()


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not plain ASCII"
        raise Mistake(
            Problem.SECRET_FILE, file=file, what=what, fix="name a readable file"
        ) from None


def _draw(file: Path) -> None:
    """Generate a secret in a file that only its owner can read."""
    try:
        _write_secret(file)
    except OSError as error:
        fix = "make the store's folder writable, or give the secret in another way"
        raise Mistake(Problem.SECRET_FILE, file=file, what=error.strerror, fix=fix) from None


def _write_secret(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, f"{secrets.token_hex(32)}\n".encode())
