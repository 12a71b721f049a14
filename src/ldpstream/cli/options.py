"""Options that several commands share, each defined once."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Oracle = Annotated[str, typer.Option(help="oracle: auto, grr, sue, oue, blh, olh, ...")]
Pool = Annotated[
    bool, typer.Option("--pool", help="publish from the dissimilarity reports as well")
]
ReadToken = Annotated[
    str, typer.Option(envvar="LDPSTREAM_READ_TOKEN", help="read token of a private stream")
]
Repeats = Annotated[int, typer.Option(help="number of runs to average")]
Seed = Annotated[int, typer.Option(help="seed of all random choices")]
Variance = Annotated[str, typer.Option(help="variance formula: paper (as printed) or corrected")]
Window = Annotated[int, typer.Option(help="length w of the window, in timestamps")]
