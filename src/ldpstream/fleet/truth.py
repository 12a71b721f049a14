"""A collector that also serves the truth, to the page of a demonstration.

Run it as `python -m ldpstream.fleet.truth FILE TRUTH`. No other collector has such a route, and
only a demonstration knows what to write into TRUTH.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ldpstream.collector.api.server import listen, serve, url_of
from ldpstream.collector.config import load
from ldpstream.collector.json_logging import set_up
from ldpstream.collector.service.opening import load_secrets
from ldpstream.collector.service.service import Service
from ldpstream.collector.service.warm_up import warm_up
from ldpstream.lab.files import write_whole
from ldpstream.streams.stream import CountsStream

PATH = "/demo/truth"


def write_truth(file: Path, source: CountsStream, first_t: int) -> None:
    """Write the shares of the source, which start at timestamp `first_t` and then repeat."""
    shares = (source.table / source.users).round(6).tolist()
    write_whole(file, json.dumps({"first_t": first_t, "shares": shares}).encode())


def main(configuration: str, truth: str) -> None:
    """Run like `ldpstream serve`, but also serve the truth, and print only the address."""

    async def answer(request: Request) -> Response:
        if not Path(truth).exists():  # there is no release yet
            return Response(status_code=204)
        return Response(Path(truth).read_bytes(), media_type="application/json")

    set_up("error")  # that a fleet which is still joining is thin is for the page to say
    config = load(Path(configuration))
    secrets = load_secrets(config)
    listening = listen(config)
    warm_up(config.streams)
    service = Service(config, secrets)

    def ready() -> None:
        print(url_of(listening), flush=True)

    serve(service, listening, ready, [Route(PATH, answer, methods=["GET"])])


if __name__ == "__main__":
    main(*sys.argv[1:])
