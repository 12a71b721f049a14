"""The look of each mechanism: a marker and a colour, for the paper's from Okabe and Ito."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

INK = "#1a1a1b"
"""Text, axes and one mechanism. The report turns it into the colour of its own text."""
GREY = "#8a8a8a"


@dataclass(frozen=True)
class LineStyle:
    """The style of one mechanism's line."""

    label: str
    colour: str
    marker: str
    filled: bool = True
    dashes: Any = "-"

    def line(self) -> dict[str, Any]:
        """Return the options of Matplotlib's `plot`."""
        return {
            "label": self.label,
            "color": self.colour,
            "ls": self.dashes,
            "lw": 1.0 if self.trusted else 1.4,
            "marker": self.marker,
            "ms": 6.5 if self.marker == "*" else 4.5,
            "mfc": self.colour if self.filled else "none",
            "mew": 1.0,
        }

    @property
    def trusted(self) -> bool:
        return bool(self.dashes != "-")


# Budget division is hollow, population division is filled.
LOOKS = {
    "lbu": LineStyle("LBU", "#E69F00", "o", filled=False),
    "lbd": LineStyle("LBD", "#56B4E9", "s", filled=False),
    "lba": LineStyle("LBA", "#009E73", "^", filled=False),
    "lsp": LineStyle("LSP", "#CC79A7", "D"),
    "lpu": LineStyle("LPU", INK, "v"),
    "lpd": LineStyle("LPD", "#0072B2", "P"),
    "lpa": LineStyle("LPA", "#D55E00", "*"),
    "lpf": LineStyle("LPF", "#B8A500", "X"),
    "lpdf": LineStyle("LPDF", "#AA4499", "h"),
    "lpaf": LineStyle("LPAF", "#6A5ACD", "p"),
    "fast": LineStyle("FAST", "#882255", "<"),
    "pegasus": LineStyle("PeGaSus", "#117733", ">"),
    "rescuedp": LineStyle("RescueDP", "#332288", "d"),
    "spas": LineStyle("SPAS", "#A0703A", "8"),
    "fast-budget": LineStyle("FAST, budget", "#882255", "<", filled=False),
    "pegasus-budget": LineStyle("PeGaSus, budget", "#117733", ">", filled=False),
    "rescuedp-budget": LineStyle("RescueDP, budget", "#332288", "d", filled=False),
    "spas-budget": LineStyle("SPAS, budget", "#A0703A", "8", filled=False),
    "central-uniform": LineStyle("uniform", GREY, "", dashes=(0, (1, 1))),
    "central-sampling": LineStyle("sampling", GREY, "", dashes=(0, (5, 1.5))),
    "central-bd": LineStyle("BD", GREY, "", dashes=(0, (4, 1.5, 1, 1.5))),
    "central-ba": LineStyle("BA", GREY, "", dashes=(0, (4, 1.5, 1, 1.5, 1, 1.5))),
}
_OTHERS = (("#A0703A", ">"), ("#4477AA", "<"), ("#999933", "8"), ("#DD3377", "d"))


def line_styles(mechanisms: list[str]) -> dict[str, LineStyle]:
    """Return a look for each mechanism, in drawing order; plug-ins get the colours left over.

    >>> [line_style.marker for line_style in line_styles(["mine", "lpa"]).values()]
    ['*', '>']
    """
    known = {name: LOOKS[name] for name in LOOKS if name in mechanisms}
    others = [name for name in mechanisms if name not in LOOKS]
    for place, name in enumerate(others):
        colour, marker = _OTHERS[place % len(_OTHERS)]
        known[name] = LineStyle(name, colour, marker)
    return known


def display_name(mechanism: str) -> str:
    """Return the name that readers know a mechanism by.

    >>> display_name("lpa"), display_name("mine")
    ('LPA', 'mine')
    """
    return LOOKS[mechanism].label if mechanism in LOOKS else mechanism


@contextmanager
def paper_style() -> Iterator[None]:
    """Set plain axes, and make equal data give equal bytes, wherever and whenever it is drawn."""
    import matplotlib as mpl

    quiet: Any = {
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 10,
        "axes.linewidth": 0.8,
        "figure.facecolor": "white",
        "font.size": 9,
        "grid.alpha": 0.3,
        "grid.linewidth": 0.5,
        "legend.frameon": False,
        "svg.hashsalt": "ldpstream",
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }
    with mpl.rc_context(quiet):
        yield
