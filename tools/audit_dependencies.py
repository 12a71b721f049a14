"""Look up known vulnerabilities of the packages in requirements.lock, with pip-audit.

The exit status is 1 if there are any. Without a network, or with a mirror that has no such service,
it says so in one line and exits with 0: nothing was looked up, and nothing is claimed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements.lock"
SECONDS = 5
SERVICES = {
    "pypi": "https://pypi.org/pypi/pip/24.0/json",
    "osv": "https://api.osv.dev/v1/vulns/PYSEC-2023-228",
}


def reachable(url: str) -> bool:
    """Return whether the service answers a request that it can always answer."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            return isinstance(json.load(answer), dict)
    except (OSError, ValueError):
        return False


def main() -> None:
    service = next((name for name, url in SERVICES.items() if reachable(url)), None)
    if service is None:
        print("audit-dependencies: no vulnerability service can be reached; nothing was looked up")
        return
    options = ["-r", str(LOCK), "--no-deps", "--disable-pip", "-s", service, "--strict"]
    sys.exit(subprocess.run([sys.executable, "-m", "pip_audit", *options], check=False).returncode)


if __name__ == "__main__":
    main()
