"""The collector's three secrets: read from the environment or from files, or drawn on first start.

They never stand in the configuration itself, which people mail around and commit.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
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

    def __repr__(self) -> str:
        return "Secrets(...)"

    @property
    def check(self) -> str:
        """A digest that tells whether two collectors have the same master secret, and no more."""
        return hmac.digest(self.master, b"ldpstream master check 1", "sha256").hex()

    @classmethod
    def load(
        cls, files: Mapping[str, Path], folder: Path, environment: Mapping[str, str] = os.environ
    ) -> Secrets:
        """Read each from the environment, its file, or `folder`, where a missing one is drawn."""
        found = {}
        for name, variable in ENVIRONMENT.items():
            if variable in environment:
                found[name] = _checked(variable, environment[variable])
            elif name in files:
                found[name] = _checked(str(files[name]), _read(files[name]))
            else:
                file = folder / f"{name}.secret"
                found[name] = _checked(str(file), _read_or_draw(file))
        return cls(**found)


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


def _read_or_draw(file: Path) -> str:
    """Read the secret in `file`, which is drawn at the first start."""
    try:
        if not file.exists():
            _draw(file)
    except OSError as error:
        fix = "make the store's folder writable, or give the secret otherwise"
        raise Mistake(Problem.SECRET_FILE, file=file, what=error.strerror, fix=fix) from None
    return _read(file)


def _draw(file: Path) -> None:
    """Draw a secret into a file; one that is half-written, or lost, would lock devices out."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, f"{secrets.token_hex(32)}\n".encode())
