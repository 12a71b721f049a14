"""`ldpstream alerts`: test the webhook of a collector, silence rules."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from ldpstream.cli import options
from ldpstream.cli.admin_client import AdminClient
from ldpstream.cli.administration import File, Stream, Url, print_list
from ldpstream.cli.answers import reads_answers
from ldpstream.errors import LdpStreamError, Mistake, Problem

app = typer.Typer(help="Test and silence the alerts of a collector.", no_args_is_help=True)


@app.command("test")
def send_test(
    file: File,
    as_json: options.Json = False,
) -> None:
    """Send one test alert to the webhook of a configuration file, and print the answer."""
    from ldpstream.collector.alerts.conditions import Threshold
    from ldpstream.collector.alerts.evidence import AlertEvidence
    from ldpstream.collector.alerts.message import AlertChange, message, told
    from ldpstream.collector.alerts.rules import Rule
    from ldpstream.collector.alerts.state import Alert, AlertState
    from ldpstream.collector.alerts.webhook import post
    from ldpstream.collector.config import load
    from ldpstream.collector.store.contract import StoredRelease
    from ldpstream.machine_clock import SystemClock

    config = load(file)
    if config.webhook is None:
        fix = 'add webhook = "http://..." under [collector.alerts]'
        raise Mistake(Problem.CONFIG_FILE, file=file, line=1, what="there is no webhook", fix=fix)
    stream, now = config.streams[0], SystemClock().wall_ms()
    label = (*stream.labels, "any text")[0]
    rule = Rule("LdpstreamTest", stream.name, Threshold(label, above=True, threshold=0.0))
    content = {"values": [0.0], "low": [0.0], "high": [0.0]}
    change = AlertChange(
        rule,
        Alert(AlertState.FIRING, active_ms=now, fired_ms=now),
        AlertEvidence(StoredRelease(0, now, content, asked=0, received=0, missed=False), [label]),
    )
    url = config.external_url
    answer = post(config.webhook, message(stream.name, [told(change, url)], url))
    if as_json:
        print(json.dumps({"status": answer.status, "reason": answer.reason, "body": answer.body}))
    else:
        print(f"{answer.status} {answer.reason}".strip())
        if answer.body.strip():
            print(answer.body.strip())
    if not 200 <= answer.status < 300:
        raise LdpStreamError(Problem.WEBHOOK, what=f"it answered {answer.status}")


@app.command("silence")
@reads_answers("silences")
def silence(
    file: File,
    stream: Stream,
    rule: Annotated[
        str | None, typer.Argument(help="name or id of the rule; none: list all rules")
    ] = None,
    length: Annotated[str | None, typer.Argument(help="for how long, such as 2h")] = None,
    end: Annotated[bool, typer.Option("--end", help="end the silence of the rule")] = False,
    url: Url = "",
    as_json: options.Json = False,
) -> None:
    """Silence an alert rule for a time; its state is still kept and shown."""
    if end == (length is not None) and rule is not None:
        expected = "either a length such as 2h, or --end"
        raise Mistake(Problem.OPTION, option="LENGTH", given=length, expected=expected)
    client = AdminClient.of(file, url)
    told = client.get(f"silences/{stream}")
    if rule is not None:
        found = _found(told["rules"], rule)
        told = (
            client.delete(f"silences/{stream}/{found}")
            if end
            else client.post(f"silences/{stream}", {"rule": found, "for": length})
        )
    print_list(told["rules"], "rule", as_json=as_json)


def _found(rules: list[dict[str, Any]], given: str) -> str:
    """Return the id of a rule that is named, or given by its id."""
    ids = [str(one["id"]) for one in rules if given in (one["id"], one["name"])]
    if len(ids) != 1:
        known = ", ".join(f"{one['id']} ({one['name']})" for one in rules) or "none"
        expected = f"the id or the only name of a rule: {known}"
        raise Mistake(Problem.OPTION, option="RULE", given=repr(given), expected=expected)
    return ids[0]
