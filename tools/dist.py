"""Build what a release publishes, from the last commit, into a folder.

These are the sdist, the wheel, the npm package, the bill of materials (CycloneDX), and SHA256SUMS
over them. Files that are not committed are not in it. The time in every archive is that of the
commit, so that two builds of one commit, anywhere, are equal bit for bit
(tests/verify/test_dist.py).

    .venv/bin/python tools/dist.py [FOLDER]
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from pack_npm import pack, read_version
from sbom import make_sbom

ROOT = Path(__file__).parents[1]


def git(*arguments: str) -> str:
    """Return what git says about this repository."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def build(out: Path) -> list[Path]:
    """Build all files of a release from HEAD into an empty folder, and return them."""
    commit, epoch = git("rev-parse", "HEAD"), git("log", "-1", "--format=%ct", "HEAD")
    with tempfile.TemporaryDirectory() as made:
        source, unpacked = Path(made) / "source", Path(made) / "sdist"
        git("archive", "--format=tar", f"--output={made}/source.tar", commit)
        _unpack(Path(made) / "source.tar", source)
        version = read_version(source)
        _hatch("sdist", source, out, epoch)
        # The wheel is built from the sdist, so that whoever starts from that gets the same.
        (sdist,) = out.glob("*.tar.gz")
        _unpack(sdist, unpacked)
        _hatch("wheel", unpacked / f"ldpstream-{version}", out, epoch)
        pack(out, source)
        bill = out / f"ldpstream-{version}.cdx.json"
        bill.write_text(make_sbom(source, version, commit, int(epoch)))
    files = sorted(out.iterdir())
    lines = [f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in files]
    (out / "SHA256SUMS").write_text("".join(lines))
    return [*files, out / "SHA256SUMS"]


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")


def _hatch(target: str, source: Path, out: Path, epoch: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": epoch}
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"dist: the {target} could not be built\n{done.stdout}{done.stderr}")


def main(folder: Path) -> None:
    """Replace what is in the folder by a new build, and print its checksums."""
    if git("status", "--porcelain"):
        print("dist: there are changes that are not committed; they are not in it", file=sys.stderr)
    with tempfile.TemporaryDirectory() as made:
        built = build(Path(made))
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*"):
            old.unlink()
        for file in built:
            (folder / file.name).write_bytes(file.read_bytes())
    print((folder / "SHA256SUMS").read_text(), end="")


if __name__ == "__main__":
    main(Path(*sys.argv[1:]).resolve() if sys.argv[1:] else ROOT / "dist")
