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
class Look:
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
    "lbu": Look("LBU", "#E69F00", "o", filled=False),
    "lbd": Look("LBD", "#56B4E9", "s", filled=False),
    "lba": Look("LBA", "#009E73", "^", filled=False),
    "lsp": Look("LSP", "#CC79A7", "D"),
    "lpu": Look("LPU", INK, "v"),
    "lpd": Look("LPD", "#0072B2", "P"),
    "lpa": Look("LPA", "#D55E00", "*"),
    "lpf": Look("LPF", "#B8A500", "X"),
    "lpdf": Look("LPDF", "#AA4499", "h"),
    "lpaf": Look("LPAF", "#6A5ACD", "p"),
    "fast": Look("FAST", "#882255", "<"),
    "pegasus": Look("PeGaSus", "#117733", ">"),
    "rescuedp": Look("RescueDP", "#332288", "d"),
    "spas": Look("SPAS", "#A0703A", "8"),
    "fast-budget": Look("FAST, budget", "#882255", "<", filled=False),
    "pegasus-budget": Look("PeGaSus, budget", "#117733", ">", filled=False),
    "rescuedp-budget": Look("RescueDP, budget", "#332288", "d", filled=False),
    "spas-budget": Look("SPAS, budget", "#A0703A", "8", filled=False),
    "central-uniform": Look("uniform", GREY, "", dashes=(0, (1, 1))),
    "central-sampling": Look("sampling", GREY, "", dashes=(0, (5, 1.5))),
    "central-bd": Look("BD", GREY, "", dashes=(0, (4, 1.5, 1, 1.5))),
    "central-ba": Look("BA", GREY, "", dashes=(0, (4, 1.5, 1, 1.5, 1, 1.5))),
}
_OTHERS = (("#A0703A", ">"), ("#4477AA", "<"), ("#999933", "8"), ("#DD3377", "d"))


def looks(mechanisms: list[str]) -> dict[str, Look]:
    """Return a look for each mechanism, in drawing order; plug-ins get the colours left over.

    >>> [look.marker for look in looks(["mine", "lpa"]).values()]
    ['*', '>']
    """
    known = {name: LOOKS[name] for name in LOOKS if name in mechanisms}
    others = [name for name in mechanisms if name not in LOOKS]
    for place, name in enumerate(others):
        colour, marker = _OTHERS[place % len(_OTHERS)]
        known[name] = Look(name, colour, marker)
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
