"""The collector's three secrets: read from the environment or from files, or drawn on first start.

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
LEAST_CHARACTERS = 16


@dataclass(frozen=True)
class Secrets:
    """The three secrets, which `repr` does not show."""

    master: bytes
    """Every device's key is derived from it: if it changes, all devices must enrol again."""
    enrolment: bytes
    admin: bytes
    drawn: Path | None = field(default=None, compare=False)
    """The file of the master secret, if it was drawn just now."""

    def __repr__(self) -> str:
        return "Secrets(...)"

    def forget_drawn(self) -> None:
        """Remove a master secret that was drawn just now, and turned out to be of no use."""
        if self.drawn is not None:
            self.drawn.unlink(missing_ok=True)

    @classmethod
    def load(
        cls, files: Mapping[str, Path], folder: Path, environment: Mapping[str, str] = os.environ
    ) -> Secrets:
        """Each from the environment, else from its file, else from `folder`, drawn if not there."""
        found, drawn = {}, None
        for name in ENVIRONMENT:
            known = find_secret(name, files, folder, environment)
            if known is None:
                file = file_of(name, folder)
                _draw(file)
                drawn = file if name == "master" else drawn
                known = _checked(str(file), _read(file))
            found[name] = known
        return cls(**found, drawn=drawn)


def file_of(name: str, folder: Path) -> Path:
    """Return where a secret is that neither the environment nor the configuration gives."""
    return folder / f"{name}.secret"


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
    """Write a new secret into a file for its owner's eyes only."""
    try:
        _write_secret(file)
    except OSError as error:
        fix = "make the store's folder writable, or give the secret otherwise"
        raise Mistake(Problem.SECRET_FILE, file=file, what=error.strerror, fix=fix) from None


def _write_secret(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, f"{secrets.token_hex(32)}\n".encode())
