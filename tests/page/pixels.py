"""What is really on the screen: pixels of canvases, and where each text stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import BrowserContext, Page

RECORDER = """
{
    const written = new Map() // of each canvas: the texts on it, with their boxes
    const { fillText, clearRect } = CanvasRenderingContext2D.prototype
    Object.assign(CanvasRenderingContext2D.prototype, {
        clearRect(...box) {
            written.set(this.canvas, [])
            clearRect.apply(this, box)
        },
        fillText(text, x, y, ...more) {
            const box = this.measureText(text)
            const { a, d, e, f } = this.getTransform()
            written.get(this.canvas)?.push({
                text,
                left: e + a * (x - box.actualBoundingBoxLeft),
                right: e + a * (x + box.actualBoundingBoxRight),
                top: f + d * (y - box.actualBoundingBoxAscent),
                bottom: f + d * (y + box.actualBoundingBoxDescent),
            })
            fillText.call(this, text, x, y, ...more)
        },
    })
    window.writtenOn = (canvas) => written.get(canvas) ?? []
}
"""
"""To run before the page: keeps what is written on canvases, since pixels are no text."""

_TEXTS = """() => {
    const found = []
    let number = 0
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (!node.data.trim() || node.parentElement.closest('.unseen, .tip, select')) continue
        const range = document.createRange()
        range.setStart(node, node.data.search(/\\S/)) // blanks at the ends keep texts apart
        range.setEnd(node, node.data.trimEnd().length)
        number += 1
        for (const one of range.getClientRects()) {
            let { left, right, top, bottom } = one
            for (let box = node.parentElement; box; box = box.parentElement) {
                if (getComputedStyle(box).overflowX === 'visible') continue
                const clip = box.getBoundingClientRect() // what is cut off is not seen
                left = Math.max(left, clip.left)
                right = Math.min(right, clip.right)
            }
            const text = node.data.trim()
            if (right - left > 1) found.push({ text, number, left, right, top, bottom })
        }
    }
    for (const canvas of document.querySelectorAll('main canvas')) {
        const at = canvas.getBoundingClientRect()
        for (const { text, ...box } of window.writtenOn(canvas)) {
            const [across, down] = [at.width / canvas.width, at.height / canvas.height]
            found.push({
                text, canvas: true,
                left: at.left + across * box.left, right: at.left + across * box.right,
                top: at.top + down * box.top, bottom: at.top + down * box.bottom,
            })
        }
    }
    return found
}"""

_HEAT = """(labels) => {
    const canvas = document.querySelector('.heat')
    const context = canvas.getContext('2d')
    const height = (canvas.clientHeight - 9) * devicePixelRatio // without the marks below
    return Array.from({ length: labels }, (_, label) => Array.from(context.getImageData(
        canvas.width - 2, Math.floor((label + 0.5) * height / labels), 1, 1).data))
}"""

_LINE = """([slot, first, last, t]) => {
    const canvas = document.querySelector('.panel-lines canvas')
    const [at, over] = [canvas, document.querySelector('.u-over')].map(
        (one) => one.getBoundingClientRect())
    const ink = getComputedStyle(document.documentElement).getPropertyValue(`--curve-${slot + 1}`)
    const wanted = [1, 3, 5].map((place) => Number.parseInt(ink.trim().slice(place, place + 2), 16))
    const { data, width } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    const rows = (x) => {
        const found = []
        for (let y = Math.ceil(over.top - at.top); y < over.bottom - at.top - 8; y += 1) {
            const here = 4 * (y * width + x)
            const isInk = (part, place) => Math.abs(data[here + place] - part) < 10
            if (wanted.every(isInk)) found.push(y)
        }
        return found
    }
    const left = over.left - at.left
    const size = { length: Math.floor(over.width) }
    const columns = Array.from(size, (_, x) => rows(Math.ceil(left + x)))
    const highest = Math.min(...columns.map(([top]) => top ?? Infinity))
    const x = Math.round(left + (over.width * (t - first)) / (last - first))
    return {
        covered: columns.filter((one) => one.length).length / columns.length,
        top: (highest - over.top + at.top) / over.height,
        at: rows(x),
        ticks: window.writtenOn(canvas).filter(({ right }) => right < left)
            .map(({ text, top, bottom }) => [text, (top + bottom) / 2]),
    }
}"""


TICKS = 57
"""The least distance of two ticks of the time axis: around midnight there is a date at both."""
DATE = re.compile(r"\d+ [A-Z][a-z]+( \d{4})?")


@dataclass(frozen=True)
class Box:
    """A text and its place on the screen."""

    text: str
    left: float
    right: float
    top: float
    bottom: float
    canvas: bool = False
    number: int | None = None
    """The same for all boxes of one text: its lines, and what is left of one that is cut off."""

    def meets(self, other: Box) -> bool:
        """Return whether two texts touch: there is not even the width of a space between them."""
        if self.number is not None and self.number == other.number:
            return False
        side_by_side = min(self.right, other.right) - max(self.left, other.left)
        above = min(self.bottom, other.bottom) - max(self.top, other.top)
        return side_by_side > -2 and above > 2


@dataclass(frozen=True)
class Line:
    """A curve as it is drawn."""

    covered: float
    """The part of the plot's columns in which it has a pixel."""
    top: float
    """Where its highest pixel is: 0 at the top of the plot, 1 at its bottom."""
    at: list[float]
    """Its pixels at one timestamp, from the top of the canvas."""
    ticks: list[tuple[str, float]]
    """The texts of the y axis, and where they stand."""

    def value_at(self, y: float) -> float:
        """Read a value off the axis, as a person does."""
        (low, below), (high, above) = [
            (float(text.removesuffix(" %").replace(",", "")), place)
            for text, place in (self.ticks[0], self.ticks[-1])
        ]
        return low + (high - low) * (y - below) / (above - below)


def record_texts(context: BrowserContext) -> None:
    """Call it before a page is opened whose texts are asked for."""
    context.add_init_script(RECORDER)


def texts(page: Page) -> list[Box]:
    """Return all texts that are seen, those on canvases among them."""
    return [Box(**one) for one in page.evaluate(_TEXTS)]


def touching(boxes: list[Box]) -> list[tuple[str, str]]:
    """Return the pairs of texts that overlap or touch."""
    ordered = sorted(boxes, key=lambda box: box.top)
    found = []
    for place, one in enumerate(ordered):
        for other in ordered[place + 1 :]:
            if other.top > one.bottom:
                break
            if one.meets(other):
                found.append((one.text, other.text))
    return found


def assert_figures_do_not_touch(page: Page, width: int) -> None:
    """Look at a page that has drawn a stream, on a screen of this width."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    boxes = texts(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    assert len(boxes) > 60
    assert any(box.canvas for box in boxes)
    found = touching(boxes)
    assert found == [], found
    dates = [box for box in boxes if box.canvas and DATE.fullmatch(box.text)]
    assert dates
    assert [box.text for box in dates if box.right - box.left > TICKS - 2] == []
    assert [box.text for box in boxes if box.left < 0 or box.right > width] == []


def heat(page: Page, labels: int) -> list[tuple[int, int, int, int]]:
    """Return the colour of each label at the last timestamp of the heat map, with its opacity."""
    return [tuple(one) for one in page.evaluate(_HEAT, labels)]


def line(page: Page, slot: int, span: tuple[int, int], t: int) -> Line:
    """Return how the curve of a colour is drawn, and where at t; `span` are the t in view."""
    drawn: dict[str, Any] = page.evaluate(_LINE, [slot, *span, t])
    return Line(**drawn)


def lightness(pixel: tuple[int, int, int, int]) -> float:
    red, green, blue, _ = pixel
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
