"""`ldpstream alerts`: test the webhook of a collector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ldpstream.cli import options
from ldpstream.errors import LdpStreamError, Mistake, Problem

app = typer.Typer(help="Test the alerts of a collector.", no_args_is_help=True)


@app.callback()
def alerts() -> None:
    """Test the alerts of a collector."""


@app.command("test")
def send_test(
    file: Annotated[Path, typer.Argument(help="configuration file, TOML (docs/collector.md)")],
    as_json: options.Json = False,
) -> None:
    """Send one test alert to the webhook of a configuration file, and print the answer."""
    from ldpstream.collector.alerts.evidence import Evidence
    from ldpstream.collector.alerts.message import Change, message
    from ldpstream.collector.alerts.rules import Rule
    from ldpstream.collector.alerts.state import Alert, State
    from ldpstream.collector.alerts.webhook import post
    from ldpstream.collector.config import load
    from ldpstream.collector.store.contract import Release
    from ldpstream.machine_clock import SystemClock

    config = load(file)
    if config.webhook is None:
        fix = 'add webhook = "http://..." under [collector.alerts]'
        raise Mistake(Problem.CONFIG_FILE, file=file, line=1, what="there is no webhook", fix=fix)
    stream, now = config.streams[0], SystemClock().wall_ms()
    label = stream.alerts[0].label if stream.alerts else stream.labels[0]
    rule = Rule("LdpstreamTest", stream.name, label, True, 0.0)
    content = {"values": [0.0], "low": [0.0], "high": [0.0]}
    change = Change(
        rule,
        Alert(State.FIRING, active_ms=now, fired_ms=now),
        Evidence(Release(0, now, content, asked=0, received=0, missed=False), [label]),
    )
    answer = post(config.webhook, message(stream.name, [change], config.external_url))
    if as_json:
        print(json.dumps({"status": answer.status, "reason": answer.reason, "body": answer.body}))
    else:
        print(f"{answer.status} {answer.reason}".strip())
        if answer.body.strip():
            print(answer.body.strip())
    if not 200 <= answer.status < 300:
        raise LdpStreamError(Problem.WEBHOOK, what=f"it answered {answer.status}")
