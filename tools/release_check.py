"""Go through the checklist of a release, and print a line for each item.

Exit status 1 if an item fails. What no script can see is printed at the end, to be done by hand.

    .venv/bin/python tools/release_check.py [--quick]

--quick leaves out what takes long: all tests, and the builds in two clones with the wheel in fresh
environments (make test, make verify).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml
from pack_npm import read_version

ROOT = Path(__file__).parents[1]
BY_HAND = (
    "build the images of deploy/Dockerfile and start deploy/compose.yaml: no test builds them",
    "upload the files of dist/ with SHA256SUMS, after comparing it with that of another machine",
    "tag the commit v{version}, and set the next version in src/ldpstream/__init__.py",
)


class NotReady(Exception):
    """What has to be done before this version can be released."""


def insist(holds: object, otherwise: str) -> None:
    """Fail an item of the list."""
    if not holds:
        raise NotReady(otherwise)


def run(*command: str) -> str:
    """Run a command in the repository, and fail with its last lines if it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    last = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
    insist(done.returncode == 0, f"{' '.join(command)} failed:\n{last}")
    return done.stdout


def everything_is_committed() -> None:
    """Everything is committed."""
    changed = run("git", "status", "--porcelain").splitlines()
    insist(not changed, f"commit or remove: {', '.join(line[3:] for line in changed[:5])}")


def the_version_is_one_of_a_release() -> None:
    """The version is one of a release, and has no tag yet."""
    version = read_version(ROOT)
    insist(
        re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version),
        f"src/ldpstream/__init__.py says {version}; write the version to be released",
    )
    insist(not run("git", "tag", "--list", f"v{version}"), f"the tag v{version} is there already")


def the_changelog_has_the_version() -> None:
    """The changelog has the version with its date, and says what changed."""
    base = re.sub(r"(rc|\.dev)\d+$", "", read_version(ROOT))
    text = (ROOT / "CHANGELOG.md").read_text()
    entries = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    insist(entries[0].startswith(f"{base} ("), f"the first entry of CHANGELOG.md is not {base}")
    insist(
        re.match(rf"{re.escape(base)} \(\d{{4}}-\d\d-\d\d\)\n", entries[0]),
        f"CHANGELOG.md has no date for {base}: write it in place of 'unreleased'",
    )
    insist("\n- " in entries[0], f"CHANGELOG.md says nothing about {base}")


def the_citation_is_complete() -> None:
    """CITATION.cff can be read, and has what the format requires."""
    given = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    missing = {"cff-version", "message", "title", "authors", "license"} - given.keys()
    insist(not missing, f"CITATION.cff has no {', '.join(sorted(missing))}")
    licence = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"]
    insist(given["license"] == licence, "CITATION.cff and pyproject.toml name other licences")
    insist("version" not in given, "CITATION.cff names a version; the one place is __init__.py")


def the_lock_is_that_of_pyproject() -> None:
    """The lock files are those of pyproject.toml."""
    run("tools/lock.sh")
    changed = run("git", "status", "--porcelain", "--", "*.lock")
    insist(not changed, "make lock changed the lock files; look at them, test, and commit them")


def no_known_vulnerability() -> None:
    """No package of the lock has a known vulnerability, as far as the service can be asked."""
    run(sys.executable, "tools/audit_dependencies.py")


def all_tests_pass() -> None:
    """All tests pass, none skipped (.ci/run)."""
    run("bash", ".ci/run")


def what_is_built_works() -> None:
    """Two clones build the same; the wheel works on every Python it names (make verify)."""
    run("env", "CI=true", "make", "verify")


def the_files_are_built() -> None:
    """dist/ has the files of this commit (make dist)."""
    run(sys.executable, "tools/dist.py")


QUICK: tuple[Callable[[], None], ...] = (
    everything_is_committed,
    the_version_is_one_of_a_release,
    the_changelog_has_the_version,
    the_citation_is_complete,
    the_lock_is_that_of_pyproject,
    no_known_vulnerability,
    the_files_are_built,
)
SLOW: tuple[Callable[[], None], ...] = (all_tests_pass, what_is_built_works)


def _said(item: Callable[[], None]) -> str:
    return (item.__doc__ or "").removesuffix(".")


def failures(items: tuple[Callable[[], None], ...]) -> Iterator[str]:
    """Check the items in turn, print how each came out, and yield those that failed."""
    for item in items:
        try:
            item()
        except NotReady as fault:
            print(f"  no   {_said(item)}: {fault}", flush=True)
            yield item.__name__
        else:
            print(f"  yes  {_said(item)}", flush=True)


def main(quick: bool) -> int:
    """Go through the list, and return the exit status."""
    failed = [*failures(QUICK if quick else QUICK + SLOW)]
    if quick:
        print(*(f"  ?    {_said(item)}: not looked at" for item in SLOW), sep="\n")
    print("By hand:")
    print(*(f"  -    {line.format(version=read_version(ROOT))}" for line in BY_HAND), sep="\n")
    print(f"{len(failed)} of the items stand in the way" if failed else "nothing stands in the way")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main("--quick" in sys.argv[1:]))
