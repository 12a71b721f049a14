"""Plug-ins: a user's Python files that register mechanisms, here and in worker processes."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ldpstream.arguments import checked
from ldpstream.errors import Mistake, Problem

_loaded: dict[Path, str] = {}


@checked
def load_plugins(paths: Iterable[Path | str]) -> None:
    """Import each file once, under a name that is the same in every process.

    A plug-in can import the files beside it, as a script can.

    Args:
        paths: Python files that call `ldpstream.register`.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".py") as empty:
    ...     load_plugins([empty.name])
    """
    for path in paths:
        file = Path(path).resolve()
        if file not in _loaded:
            _loaded[file] = _load(file)


def plugins_of(classes: Iterable[type]) -> tuple[Path, ...]:
    """Return the plug-ins that these classes and their bases come from: a worker must load them."""
    modules = {base.__module__ for kind in classes for base in kind.__mro__}
    return tuple(file for file, module in _loaded.items() if module in modules)


def _load(file: Path) -> str:
    name = f"{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    spec = spec_from_file_location(name, file) if file.suffix == ".py" else None
    if spec is None or spec.loader is None or not file.is_file():
        raise Mistake(Problem.PLUGIN_FILE, file=file, what="there is no such Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # at the end: it must not hide what is installed
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        what = f"{type(error).__name__}: {error}"
        raise Mistake(Problem.PLUGIN_FILE, file=file, what=what) from error
    return name
