"""The status of a device as one page of HTML, for the person whose device it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from ldpstream.device.display import LAST_REPORTS, Row, limit_remarks, status_object
from ldpstream.device.status import Status, StreamStatus
from ldpstream.protocol.promise import PromiseInWords, lasting, plain

STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
code { overflow-wrap: anywhere }
meter { width: 100%; height: 1rem }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem }
th, td { text-align: left; padding: 0.2rem 0.6rem 0.2rem 0; border-bottom: 1px solid #8886 }
div { overflow-x: auto }
"""
HEADS = {
    "stream": "Stream",
    "t": "Timestamp",
    "spent_nano": "Epsilon spent",
    "at": "When",
    "code": "Refused because of",
    "times": "Times",
    "last": "Last",
}
"""The columns that are shown, in order, of reports and of refusals."""


def status_page(found: Status) -> str:
    """Return the status as a page that needs nothing from elsewhere."""
    body = "\n".join(_body(found))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>What this device gives away</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _body(found: Status) -> Iterator[str]:
    yield "<h1>What this device gives away</h1>"
    if not found.streams:
        yield "<p>It takes part in no stream.</p>"
    for stream in found.streams:
        yield from _stream(stream)
    limit, remarks = found.limit, [*limit_remarks(found)]
    if limit is not None or remarks:
        yield "<h2>All streams together</h2>"
    if limit is not None:
        span = lasting(limit.span_ms)
        left = limit.epsilon_nano - limit.used_nano
        yield from _budget(f"left of the limit for any {span}", left, limit.epsilon_nano)
    for remark in remarks:
        yield f"<p>{escape(remark[0].upper() + remark[1:])}.</p>"
    overview = status_object(found)
    yield from _table("Last reports", overview["entries"][-LAST_REPORTS:])
    yield from _table("What it refused", overview["refusals"])


def _stream(found: StreamStatus) -> Iterator[str]:
    terms, promise = found.terms, PromiseInWords.of(found.terms)
    yield f"<h2>{escape(terms.stream)}</h2>"
    yield f"<p><strong>{escape(promise.sentence)}</strong></p>"
    yield f"<p>{escape(promise.explanation)}</p>"
    yield from _budget(f"left in this span of {promise.time}", found.left_nano, terms.epsilon_nano)
    if found.full_in_ms:
        yield f"<p>All of it is available again in {lasting(found.full_in_ms)}.</p>"
    yield "<dl>"
    facts = {"Collector": found.url, "Level of privacy": promise.called, "Pin": terms.pin}
    for name, text in facts.items():
        yield f"<dt>{name}</dt><dd><code>{escape(text)}</code></dd>"
    yield "</dl>"
    yield (
        "<p>The collector shows its pin, and who asks, on its page "
        f"<code>{escape(found.url)}/privacy/{escape(terms.stream)}</code>. To leave: "
        f"<code>python -m ldpstream.device leave FILE {escape(terms.stream)}</code></p>"
    )


def _budget(what: str, left_nano: int, whole_nano: int) -> Iterator[str]:
    left, whole = plain(max(0, left_nano) / 1e9), plain(whole_nano / 1e9)
    text = f"Epsilon {left} of {whole} {what}"
    meter = f'<meter min="0" max="{whole}" value="{left}" aria-label="{escape(text)}"></meter>'
    yield f"<p>{escape(text)} {meter}</p>"


def _table(title: str, rows: Sequence[Row]) -> Iterator[str]:
    yield f"<h2>{title}</h2>"
    if not rows:
        yield "<p>None.</p>"
        return
    names = [name for name in HEADS if name in rows[0]]
    yield '<div tabindex="0"><table>'
    yield "<tr>" + "".join(f'<th scope="col">{HEADS[name]}</th>' for name in names) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{_cell(name, row[name])}</td>" for name in names) + "</tr>"
    yield "</table></div>"


def _cell(name: str, value: object) -> str:
    if name == "spent_nano" and isinstance(value, int):
        return plain(value / 1e9)
    return "–" if value is None else escape(str(value))
