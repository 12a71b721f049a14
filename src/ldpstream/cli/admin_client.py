"""A client of the admin API of a running collector."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from ldpstream.cli.answers import read_answer
from ldpstream.cli.failing import is_callers
from ldpstream.device.exchange import Address, Unreachable
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.protocol.messages import ADMIN, PREFIX

PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class AdminClient:
    """The address of a collector, and its admin token."""

    url: str
    token: str = field(repr=False)

    @classmethod
    def of(cls, file: Path, url: str) -> AdminClient:
        """Find the address and the token in the configuration of the collector."""
        from ldpstream.collector.config import load
        from ldpstream.collector.credentials.secrets import file_of, find_secret

        config = load(file)
        token = find_secret("admin", config.secret_files, config.folder)
        if token is None:
            what, fix = "there is no admin token", "start the collector once: it generates one"
            place = file_of("admin", config.folder)
            raise Mistake(Problem.SECRET_FILE, file=place, what=what, fix=fix)
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # nosec B104 # noqa: S104
        host = everywhere.get(config.host, config.host)
        own = f"http://[{host}]" if ":" in host else f"http://{host}"
        return cls(url.rstrip("/") or f"{own}:{config.port}", token.decode())

    def get(self, path: str) -> dict[str, Any]:
        return self._call("GET", path)

    def post(self, path: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
        return self._call("POST", path, json.dumps(content or {}).encode())

    def delete(self, path: str) -> dict[str, Any]:
        return self._call("DELETE", path)

    def _call(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        from ldpstream.collector.api.administration import CLI_AGENT

        headers = {"Authorization": f"Bearer {self.token}", "User-Agent": CLI_AGENT}
        Address.of(self.url)  # refuses what is none
        address = f"{self.url}{PREFIX}{ADMIN}/{quote(path, safe='/?=&')}"
        request = Request(address, body, headers, method=method)  # noqa: S310 - checked above
        try:
            with urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310  # nosec B310
                content = answer.read()
        except HTTPError as error:
            raise _refusal(error) from None
        except (HTTPException, OSError) as error:
            what = getattr(error, "reason", error)
            raise Unreachable(Problem.UNREACHABLE, url=self.url, what=what) from None
        return read_answer(path, content or b"{}")


def _refusal(error: HTTPError) -> LdpStreamError:
    """Return what the collector says of a request that it refuses, by whose fault it is."""
    try:
        told = json.loads(error.read())
        code, detail = told["type"].rpartition(":")[2], told["detail"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        code, detail = error.reason, "check that the address is that of an ldpstream collector"
    kind = Mistake if is_callers(error.code) else LdpStreamError
    return kind(Problem.COLLECTOR_REFUSED, what="that", status=error.code, code=code, detail=detail)
