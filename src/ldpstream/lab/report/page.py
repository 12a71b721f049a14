"""The parts of an HTML page. All text is escaped, except `Html`, which is kept as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from ldpstream.lab.figures.style import INK
from ldpstream.lab.provenance import made_with
from ldpstream.lab.report.report_table import ReportTable


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


@dataclass(frozen=True)
class Section:
    """A heading, an anchor, and the parts below it."""

    anchor: str
    title: str
    parts: tuple[Html, ...]


def page(title: str, lead: Sequence[Html], sections: Sequence[Section]) -> str:
    """Return the whole file: it has no script and loads nothing from elsewhere."""
    style = files("ldpstream.lab.report").joinpath("page.css").read_text()
    links = "".join(f'<a href="#{s.anchor}">{escape(s.title)}</a> ' for s in sections)
    body = "\n".join(
        f'<section id="{section.anchor}">\n<h2>{escape(section.title)}</h2>\n'
        + "\n".join(section.parts)
        + "\n</section>"
        for section in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(lead) + f"\n<nav>{links}</nav>\n{body}\n"
        "</body>\n</html>\n"
    )


def paragraph(text: str, kind: str = "") -> Html:
    return Html(f'<p class="{kind}">{_escaped(text)}</p>' if kind else f"<p>{_escaped(text)}</p>")


def made_by(command: str) -> Html:
    said = f"Made with {escape(made_with())} by <code>{escape(command)}</code>."
    return paragraph(Html(said), "soft")


def table(grid: ReportTable, kind: str = "") -> Html:
    """Return a table with its numbers aligned to the right."""
    head = "".join(f"<th>{escape(column)}</th>" for column in grid.columns)
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in grid.rows)
    return Html(
        f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def figure(svg: str, name: str, caption: str) -> Html:
    return Html(
        f'<figure><div class="wide">{inlined(svg, name, caption)}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def inlined(svg: str, name: str, label: str) -> str:
    """Return an SVG of Matplotlib's as a part of the page.

    Its text takes the page's colour, its background is removed, and its ids get a prefix, since
    those of two figures may be the same.

    >>> inlined('<?xml?><svg width="1pt" id="a"><use href="#a"/></svg>', "f", "a plot")
    '<svg role="img" aria-label="a plot" id="f-a"><use href="#f-a"/></svg>'
    """
    text = svg[svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"| (width|height)="[^"]*pt"| version="[^"]*"', "", text)
    text = text.replace("xlink:href", "href")
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    text = text.replace(INK, "currentColor").replace("fill: #ffffff", "fill: none")
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def _escaped(text: object) -> str:
    return text if isinstance(text, Html) else escape(str(text))


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f'<td class="number">{value:.4g}</td>'
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{_escaped(value)}</td>"
