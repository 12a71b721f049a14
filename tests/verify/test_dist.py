"""What `make dist` builds: the same everywhere, complete, and fit for every Python it names."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from ldpstream import __version__
from tests.verify.environments import ROOT, Environment, find_python, run

PYTHON = "Programming Language :: Python :: 3."
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMED = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if one.startswith(PYTHON)]


def git(*arguments: str, folder: Path = ROOT) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def build_in_a_clone(folder: Path, umask: int, zone: str) -> Path:
    """Clone the last commit and build it there, as `make dist` does, with a stray file in it."""
    clone = folder / "clone"
    before = os.umask(umask)
    try:
        git("clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone))
        (clone / "src" / "ldpstream" / "stray.py").write_text("raise SystemExit\n")
        command = ["env", f"TZ={zone}", sys.executable, str(clone / "tools" / "dist.py")]
        run(command, folder)
    finally:
        os.umask(before)
    return clone / "dist"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_in_a_clone(tmp_path_factory.mktemp("one"), 0o022, "UTC")


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def contents(folder: Path) -> dict[str, str]:
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()}


def test_two_clones_build_the_same_bit_for_bit(
    built: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    again = build_in_a_clone(tmp_path_factory.mktemp("another-place"), 0o077, "Asia/Tokyo")
    assert contents(again) == contents(built)


def test_a_release_has_all_its_files_and_their_checksums(built: Path) -> None:
    lines = [line.split("  ") for line in (built / "SHA256SUMS").read_text().splitlines()]
    sums = {name: digest for digest, name in lines}
    found = contents(built)
    del found["SHA256SUMS"]
    assert sums == found
    suffixes = {name.removeprefix(f"ldpstream-{__version__}") for name in found}
    assert {"-py3-none-any.whl", ".tar.gz", ".cdx.json"} <= suffixes
    assert len(found) == 4


def test_the_archives_have_what_was_committed_and_name_the_commit(built: Path, wheel: Path) -> None:
    commit = git("rev-parse", "HEAD")
    tracked = git("ls-files", "src/ldpstream").splitlines()
    with ZipFile(wheel) as archive:
        assert archive.read("ldpstream/COMMIT").decode().strip() == commit
        names = {f"src/{name}" for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {*tracked}
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        inner = {one.name.partition("/")[2] for one in archive.getmembers()}
    assert {*tracked, "CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md"} <= inner
    assert "src/ldpstream/stray.py" not in inner


def test_the_bill_of_materials_is_valid_and_has_what_the_extras_require(built: Path) -> None:
    (file,) = built.glob("*.cdx.json")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read_text()) is None
    bill = json.loads(file.read_text())
    own = bill["metadata"]["component"]["bom-ref"]
    required = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    listed = {one["bom-ref"] for one in bill["components"]}
    assert {ref for refs in required.values() for ref in refs} == listed
    direct = {ref.partition("/")[2].partition("@")[0] for ref in required[own]}
    extras = {name for names in PROJECT["optional-dependencies"].values() for name in names}
    wanted = {name.split("[")[0].split(">")[0].split("<")[0] for name in extras} - {"ldpstream"}
    assert direct == wanted | {"uplot"}
    assert not any("pytest" in ref for ref in listed)


@pytest.mark.parametrize("version", NAMED)
def test_the_wheel_works_on_every_python_that_it_names(
    version: str, wheel: Path, tmp_path: Path
) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here; it is not tested")
    made = Environment.make(tmp_path, python)
    made.install(f"ldpstream[collector] @ {wheel.as_uri()}")
    commit = git("rev-parse", "HEAD")[:12]
    assert made.ldpstream("--version").stdout == f"ldpstream {__version__} ({commit})\n"
    assert made.call("-m", "ldpstream.device", "--help").returncode == 0
    simulated = made.ldpstream("simulate", "--mechanism", "lpf", "--json")
    assert simulated.returncode == 0, simulated.stderr
    assert any(reports_of_a_demo(made) for _ in range(5))  # kernels compile, and machines are busy


def reports_of_a_demo(made: Environment) -> int:
    live = made.ldpstream("demo", "--seconds", "8", "--devices", "200", "--json")
    assert live.returncode == 0, live.stderr
    return int(json.loads(live.stdout)["reports"])


def test_the_checklist_names_what_stands_in_the_way(built: Path) -> None:
    command = [sys.executable, str(built.parent / "tools" / "release_check.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert "  no   Everything is committed: commit or remove: src/ldpstream/stray.py" in lines
    assert "  yes  CITATION.cff can be read, and has what the format requires" in lines
    assert any(line.startswith("  yes  dist/ has the files of this commit") for line in lines)
    assert any(line.startswith("  -    build the images") for line in lines)
