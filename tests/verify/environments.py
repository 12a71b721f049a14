"""The wheel of this project, and fresh environments to install it into."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Environment:
    """A virtual environment, run from an empty folder outside the repository."""

    folder: Path
    workplace: Path

    @classmethod
    def make(cls, folder: Path, python: str = sys.executable) -> Environment:
        run([uv(), "venv", "--quiet", "--python", python, str(folder / "venv")], folder)
        (folder / "workplace").mkdir()
        return cls(folder / "venv", folder / "workplace")

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    @property
    def size(self) -> int:
        """Bytes of what is installed, without what Python compiles."""
        return sum(
            file.stat().st_size
            for file in self.packages.rglob("*")
            if file.is_file() and file.suffix != ".pyc"
        )

    def install(self, *what: str) -> None:
        """Install with pip, which knows how its registry is reached; versions are those locked."""
        constraints = self.folder / "constraints.txt"
        constraints.write_text(_without_hashes((ROOT / "requirements.lock").read_text()))
        pip = [sys.executable, "-m", "pip", "--python", self.python]
        options = ["--quiet", "--no-compile", "--constraint", str(constraints)]
        run([*pip, "install", *options, *what], self.workplace)

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run this environment's Python, and return what came of it."""
        return _call([self.python, *arguments], self.workplace)

    def ldpstream(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the console script."""
        return _call([str(self.folder / "bin" / "ldpstream"), *arguments], self.workplace)


def uv() -> str:
    """Return the uv of `make setup`; Debian's Python has no module venv."""
    return shutil.which("uv", path=str(ROOT / ".uv" / "bin")) or "uv"


def find_python(version: str) -> str | None:
    """Return the program of a version of Python such as 3.12, also one that pyenv keeps."""
    found = subprocess.run([uv(), "python", "find", version], capture_output=True, text=True)
    if found.returncode == 0:
        return found.stdout.strip()
    kept = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    return next((str(one) for one in sorted(kept.glob(f"{version}.*/bin/python"))), None)


def build_wheel(folder: Path) -> Path:
    """Build the wheel with the hatchling of this environment; nothing is downloaded."""
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def run(command: list[str], folder: Path) -> None:
    """Run a command that must succeed."""
    done = _call(command, folder)
    assert done.returncode == 0, done.stderr


def _call(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    ours = ("PYTHONPATH", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def _without_hashes(lock: str) -> str:
    lines = [line.rstrip(" \\") for line in lock.splitlines() if "--hash" not in line]
    return "\n".join(lines) + "\n"
