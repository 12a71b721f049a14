"""The page at /: static files that the browser may run, and nothing else."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ldpstream.collector.api.lookup import check_admin, find_stream
from ldpstream.collector.credentials.read_tokens import read_token
from ldpstream.collector.service.service import Service
from ldpstream.protocol.messages import PREFIX, SHARE

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain; charset=utf-8",
}
"""What is served, by suffix; any other file of the folder is not."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # Text that came from elsewhere cannot become markup, not even by mistake.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-cache",  # kept, but asked about every time: see the tag
    "Vary": "Accept-Encoding",
}


@dataclass(frozen=True)
class Asset:
    """A file, in memory: all of them together are a few hundred kilobytes."""

    body: bytes
    packed: bytes
    media_type: str
    tag: str

    @classmethod
    def of(cls, body: bytes, media_type: str) -> Asset:
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        return cls(body, gzip.compress(body, mtime=0), media_type, tag)

    def answer(self, request: Request) -> Response:
        headers = HEADERS | {"ETag": self.tag}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self.body, headers=headers, media_type=self.media_type)
        headers["Content-Encoding"] = "gzip"
        return Response(self.packed, headers=headers, media_type=self.media_type)


@cache
def assets() -> dict[str, Asset]:
    """The files of the page by their path; the page itself is at /."""
    found = dict(_walk(files("ldpstream.collector").joinpath("page"), ""))
    return found | {"/": found["/index.html"]}


def _walk(folder: Traversable, path: str) -> list[tuple[str, Asset]]:
    found = []
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        here = f"{path}/{file.name}"
        if file.is_dir():
            found += _walk(file, here)
        elif (kind := TYPES.get("." + file.name.rpartition(".")[2])) is not None:
            found.append((here, Asset.of(file.read_bytes(), kind)))
    return found


def mount_page(app: FastAPI, service: Service) -> None:
    """Serve the page, and hand out what its share links are made of."""
    for path, asset in assets().items():
        app.router.routes.append(Route(path, _answering(asset), methods=["GET"]))
    app.include_router(_sharing(service))


def _answering(asset: Asset) -> Any:
    async def answer(request: Request) -> Response:
        return asset.answer(request)

    return answer


def _sharing(service: Service) -> APIRouter:
    router = APIRouter(prefix=PREFIX, tags=["releases"])

    @router.get(SHARE)
    def share(stream: str, request: Request) -> dict[str, str]:
        """A token that lets its bearer read this stream, and nothing else; for admins."""
        check_admin(request)
        return {
            "token": read_token(service.secrets.admin, find_stream(service, stream).config.name)
        }

    return router
