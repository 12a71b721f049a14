"""Which build of the program this is: its version, and the commit it was made from."""

from __future__ import annotations

import subprocess  # nosec B404
from functools import cache
from pathlib import Path

from ldpstream import __version__

PACKAGE = Path(__file__).parent
SHOWN = 12


def version_line() -> str:
    """Return what `--version` prints: the version, and the commit where it is known."""
    commit = find_commit()
    return f"ldpstream {__version__}" + (f" ({commit[:SHOWN]})" if commit else "")


@cache
def find_commit(package: Path = PACKAGE) -> str | None:
    """Return the commit that `git archive` wrote into the package, or that of the checkout.

    A package that was built from neither, such as a copy of the folder, does not know its commit.
    """
    written = (package / "COMMIT").read_text().strip()
    if not written.startswith("$"):
        return written
    checkout = package.parents[1]
    if not (checkout / ".git").exists():
        return None
    try:
        said = subprocess.run(  # noqa: S603  # nosec B603 B607
            ["git", "-C", str(checkout), "rev-parse", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.stdout.strip()
