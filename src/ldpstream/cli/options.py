"""Options that several commands have, each told once."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Oracle = Annotated[str, typer.Option(help="auto, grr, sue, oue, blh, olh, ...")]
Pool = Annotated[
    bool, typer.Option("--pool", help="publish from the dissimilarity reports as well")
]
ReadToken = Annotated[
    str, typer.Option(envvar="LDPSTREAM_READ_TOKEN", help="of a private stream: its read token")
]
Repeats = Annotated[int, typer.Option(help="runs to average")]
Seed = Annotated[int, typer.Option(help="everything random follows from it")]
Variance = Annotated[str, typer.Option(help="paper (as printed) or corrected")]
Window = Annotated[int, typer.Option(help="w, in timestamps")]
