"""The page of the Python API: every public name, for autodoc to fill in from its docstring."""

from __future__ import annotations

import inspect
from types import ModuleType

import ldpstream
import ldpstream.device

INTRODUCTION = """# Python API

Every public name, with its docstring. All examples are run by the tests.

"""
ABOUT = {
    ldpstream: "The laboratory. Names are imported when they are first used, each with its extra.",
    ldpstream.device: "What runs on a device: it needs the standard library only"
    " ([the device](../device.md)).",
}


def page() -> str:
    """Return the page."""
    parts, shown = [INTRODUCTION], set()
    for module, about in ABOUT.items():
        parts.append(f"## `{module.__name__}`\n\n{about}\n")
        for name in module.__all__:
            if name in shown:
                parts.append(f"### `{name}`\n\nThe same as `ldpstream.{name}`.\n")
            else:
                parts.append(f"### `{name}`\n\n{_directive(module, name)}")
            shown.add(name)
    return "\n".join(parts)


def _directive(module: ModuleType, name: str) -> str:
    found = getattr(module, name)
    if not inspect.isclass(found):
        return f"```{{eval-rst}}\n.. autofunction:: {module.__name__}.{name}\n```\n"
    kind = "autoexception" if issubclass(found, Exception) else "autoclass"
    return f"```{{eval-rst}}\n.. {kind}:: {module.__name__}.{name}\n   :members:\n```\n"
