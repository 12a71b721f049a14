"""The code that a module of a user's imports: its own files by content, packages by version."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec, resolve_name
from pathlib import Path

OURS = __name__.partition(".")[0]
_INSTALLED = tuple(Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib"))


def imported_code(source: str, package: str | None) -> dict[str, str]:
    """Return, by the name of each module that `source` imports, directly or not, what it is.

    That is its text, if it is the user's own file; the version of an installed package; nothing
    for the standard library and this package. Imports inside functions count, too. What a program
    imports by a name that it computes, and data that it reads, cannot be seen.
    """
    found: dict[str, str] = {}
    waiting = [(source, package)]
    while waiting:
        text, parent = waiting.pop()
        for name in _imports(text, parent):
            top = name.partition(".")[0]
            if name in found or top in sys.stdlib_module_names or top == OURS:
                continue
            file = _file(name)
            if file is None:
                continue
            if any(file.is_relative_to(place) for place in _INSTALLED):
                found[top] = _version(top)
                continue
            found[name] = file.read_text(encoding="utf-8")
            is_package = file.name == "__init__.py"
            waiting.append((found[name], name if is_package else name.rpartition(".")[0]))
    return found


def _imports(source: str, package: str | None) -> Iterator[str]:
    """Yield the names of all modules that a source may import, those above them included."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell of a notebook, with its own commands
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            written = "." * node.level + (node.module or "")
            try:
                name = resolve_name(written, package)
            except ImportError:
                continue
            yield from _with_parents(name)
            yield from (f"{name}.{alias.name}" for alias in node.names)


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[: place + 1]) for place in range(len(parts)))


def _file(name: str) -> Path | None:
    """Return the Python file of a module; None if it has none, or is no module at all."""
    module = sys.modules.get(name)
    try:
        spec = module.__spec__ if module is not None else find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None
    origin = spec.origin if spec is not None else getattr(module, "__file__", None)
    path = Path(origin) if origin else None
    return path if path is not None and path.suffix == ".py" and path.is_file() else None


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(package), "__version__", ""))
