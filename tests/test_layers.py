"""Imports point downward, and what runs on a device needs the standard library only.

The rooms of the package (its top-level modules and folders) stand in layers, and so do the
sub-rooms of the collector. A room imports from lower layers and from itself; `sideways` lists the
few imports between rooms of one layer. No sub-rooms anywhere import each other in a cycle. All of
it is read from the source, so that imports inside functions, under TYPE_CHECKING and by
`import_module` count too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "ldpstream"
SOURCE = Path(__file__).parents[1] / "src"


@dataclass(frozen=True)
class House:
    """A package, its layers of rooms from the top, and what may be imported within a layer."""

    package: str
    layers: tuple[set[str], ...]
    sideways: frozenset[tuple[str, str]] = frozenset()

    def room(self, module: str) -> str | None:
        """Return the part of the package that a module belongs to; "" for the package itself."""
        if module != self.package and not module.startswith(f"{self.package}."):
            return None
        return module.removeprefix(self.package).lstrip(".").split(".")[0]

    @property
    def height(self) -> dict[str, int]:
        return {room: n for n, rooms in enumerate(reversed(self.layers)) for room in rooms}


LAYERS = (  # from the top
    {"cli", "__main__"},
    {"audit"},
    {"fleet", "bridges"},
    {"collector", "device", "lab", "engines"},
    {"mechanisms", "refine", "streams", "protocol"},
    {"oracles", "numeric", "privacy", "vocabulary"},
    {
        "arguments",
        "arrays",
        "build",
        "domain",
        "compiled",
        "durations",
        "errors",
        "extras",
        "machine_clock",
        "open_files",
        "sqlite_files",
        "whole_files",
    },
)
SIDEWAYS = frozenset(
    {
        ("engines", "collector"),
        ("mechanisms", "protocol"),
        ("mechanisms", "refine"),
        ("numeric", "oracles"),
        ("numeric", "privacy"),
        ("oracles", "privacy"),
        ("arguments", "errors"),
        ("vocabulary", "oracles"),
        ("vocabulary", "privacy"),
        ("domain", "errors"),
        ("extras", "errors"),
        ("__main__", "cli"),
    }
)
WHOLE = House(PACKAGE, LAYERS, SIDEWAYS)
COLLECTOR = House(
    f"{PACKAGE}.collector",
    (  # from the top
        {"api"},
        {"service"},
        {"intake", "leadership"},
        {"rounds"},
        {"config"},
        {"alerts", "releases", "report_log"},
        {"store"},
        {"credentials", "reports"},
        {"clock", "json_logging", "kernels", "periodic"},
    ),
)

ON_THE_DEVICE = (
    "device*",
    "protocol*",
    "oracles.*device*",
    "oracles.hashing",
    "numeric.*device*",
    "numeric.range",
    "vocabulary.device",
    "privacy.epsilon",
    "privacy.ledger",
    "privacy.randomness",
    "privacy.enumeration",
)
ON_A_DEVICE_WITH_MQTT = {"paho"}


class Moment(Enum):
    """When an import takes place."""

    LOADING = auto()
    CALLING = auto()
    TYPING = auto()


@dataclass(frozen=True)
class Import:
    """`module` imports `target`: a module of this package, or the name of a foreign package."""

    module: str
    target: str
    line: int
    moment: Moment


class Tree:
    """The modules below a source folder, and what each of them imports."""

    def __init__(self, source: Path) -> None:
        files = sorted((source / PACKAGE).rglob("*.py"))
        self.folders = {_name(path.parent, source) for path in files if path.stem == "__init__"}
        self.texts = {
            _name(path.parent if path.stem == "__init__" else path, source): path.read_text()
            for path in files
        }
        self.imports = {
            module: list(self._visit(module, ast.parse(text), Moment.LOADING))
            for module, text in self.texts.items()
        }

    def _visit(self, module: str, node: ast.AST, moment: Moment) -> Iterator[Import]:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Call():
                for target in self._targets(module, node):
                    yield Import(module, target, node.lineno, moment)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                moment = Moment.CALLING
            case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                for child in node.body:
                    yield from self._visit(module, child, Moment.TYPING)
                for child in node.orelse:
                    yield from self._visit(module, child, moment)
                return
        for part in ast.iter_child_nodes(node):
            yield from self._visit(module, part, moment)

    def _targets(self, module: str, node: ast.Import | ast.ImportFrom | ast.Call) -> Iterator[str]:
        match node:
            case ast.Import():
                yield from (_whole_or_foreign(alias.name) for alias in node.names)
            case ast.ImportFrom():
                origin = self._origin(module, node)
                for alias in node.names:
                    inner = (
                        f"{origin}.{alias.name}"  # itself a module in: from ldpstream import lab
                    )
                    if inner != f"{PACKAGE}.__version__":
                        yield inner if inner in self.texts else _whole_or_foreign(origin)
            case ast.Call(
                func=ast.Name("import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(str(name)) | ast.JoinedStr([ast.Constant(str(name)), *_]), *_],
            ):
                yield _whole_or_foreign(name.rstrip("."))

    def _origin(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        base = parts[: len(parts) - node.level + (module in self.folders)]
        return ".".join([*base, node.module] if node.module else base)

    def on_the_device(self, pattern: str) -> list[str]:
        return [module for module in self.texts if fnmatch(module, f"{PACKAGE}.{pattern}")]

    def loaded_by(self, module: str) -> set[str]:
        """What importing `module` loads next: its imports, and the folders it lies in."""
        folders = {parent for parent in _parents(module) if parent in self.folders}
        at_once = (one for one in self.imports.get(module, ()) if one.moment is Moment.LOADING)
        return folders | {one.target for one in at_once}


def _name(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts)


def _parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _whole_or_foreign(name: str) -> str:
    top = name.split(".")[0]
    return name if top == PACKAGE else top


def upward_imports(tree: Tree, house: House = WHOLE) -> list[str]:
    """A line for each import that does not point downward, and for each room without a layer."""
    rooms = {room for module in tree.texts if (room := house.room(module))}
    complaints = [f"{room} has no layer; give it one in LAYERS" for room in rooms - {*house.height}]
    return complaints + [
        f"{one.module}, line {one.line}, imports {one.target}: {fault}"
        for found in tree.imports.values()
        for one in found
        if (fault := _fault(house, house.room(one.module), house.room(one.target)))
    ]


def _fault(house: House, importer: str | None, imported: str | None) -> str | None:
    """Return what is wrong with an import from one room to another, if anything."""
    height = house.height
    if importer is None or imported is None or importer in (imported, ""):
        return None
    if not {importer, imported} <= {*height, ""}:
        return None
    if imported == "":
        return None if importer == "cli" else f"take names from where they are made, not {PACKAGE}"
    if height[importer] < height[imported]:
        return f"{importer} lies below {imported}"
    if height[importer] == height[imported] and (importer, imported) not in house.sideways:
        return f"{importer} and {imported} share a layer, and SIDEWAYS does not allow it"
    return None


def cycles(tree: Tree) -> list[str]:
    """A line for each room in which a folder imports what imports it in turn."""
    complaints = []
    for room in sorted(tree.folders - {PACKAGE}):
        house = House(room, ())
        imports: dict[str, set[str]] = {}
        for one in (one for found in tree.imports.values() for one in found):
            importer, imported = house.room(one.module), house.room(one.target)
            if importer and imported and importer != imported:
                imports.setdefault(importer, set()).add(imported)
        try:
            TopologicalSorter(imports).prepare()
        except CycleError as error:
            ring = error.args[1]
            if any(f"{room}.{name}" in tree.folders for name in ring):
                complaints.append(f"{room}: {' <- '.join(ring)}")
    return complaints


def _ours(target: str) -> bool:
    return target.split(".")[0] == PACKAGE


def heavy_imports(tree: Tree, modules: Iterable[str]) -> list[str]:
    """A line for each way in which one of `modules` comes to import what no device has.

    What these modules import themselves counts whenever it happens; what those import in turn
    counts if it happens at once.
    """
    complaints = []
    for module in modules:
        own = {one.target for one in tree.imports[module] if one.moment is not Moment.TYPING}
        routes = {target: [module, target] for target in sorted(own | tree.loaded_by(module))}
        unexplored = list(routes)
        while unexplored:
            here = unexplored.pop()
            if _is_heavy(here):
                complaints.append(" -> ".join(routes[here]))
                continue
            for target in sorted(tree.loaded_by(here) - routes.keys()):
                routes[target] = [*routes[here], target]
                unexplored.append(target)
    return complaints


def _is_heavy(target: str) -> bool:
    if _ours(target):
        return WHOLE.room(target) == "collector"
    return target not in sys.stdlib_module_names | ON_A_DEVICE_WITH_MQTT


@pytest.fixture(scope="module")
def package() -> Tree:
    return Tree(SOURCE)


@pytest.mark.parametrize("house", [WHOLE, COLLECTOR], ids=lambda house: house.package)
def test_imports_point_downward(package: Tree, house: House) -> None:
    assert upward_imports(package, house) == []


def test_no_sub_rooms_import_each_other(package: Tree) -> None:
    assert cycles(package) == []


@pytest.mark.parametrize("pattern", ON_THE_DEVICE)
def test_device_code_is_light(package: Tree, pattern: str) -> None:
    modules = package.on_the_device(pattern)
    assert modules, "no module has such a name: was one renamed?"
    assert heavy_imports(package, modules) == []


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    return Plant(tmp_path)


@dataclass(frozen=True)
class Plant:
    """Grows a small package: file -> text; folders get an empty __init__.py."""

    folder: Path

    def __call__(self, files: dict[str, str]) -> Tree:
        for name, text in files.items():
            path = self.folder / PACKAGE / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for folder in {path.parent for path in self.folder.rglob("*.py")}:
            (folder / "__init__.py").touch()
        return Tree(self.folder)


@pytest.mark.parametrize(
    "text",
    [
        "import ldpstream.lab.roster",
        "import ldpstream.lab.roster as people",
        "from ldpstream.lab import roster",
        "from ldpstream.lab.roster import Roster",
        "from ldpstream import lab",
        "from ..lab.roster import Roster",
        "from .. import lab",
        "def late():\n    from ldpstream.lab import roster",
        "class Late:\n    async def late(self):\n        import ldpstream.lab",
        "if TYPE_CHECKING:\n    from ldpstream.lab.roster import Roster",
        "import typing\nif typing.TYPE_CHECKING:\n    import ldpstream.lab",
        "try:\n    import ldpstream.lab\nexcept ImportError:\n    pass",
        "import_module('ldpstream.lab.roster')",
        "def late(name):\n    return importlib.import_module(f'ldpstream.lab.{name}')",
    ],
)
def test_an_upward_import_is_caught(plant: Plant, text: str) -> None:
    tree = plant({"privacy/ledger.py": text, "lab/roster.py": ""})
    (complaint,) = upward_imports(tree)
    assert complaint.startswith("ldpstream.privacy.ledger, line ")
    assert complaint.endswith("privacy lies below lab")


@pytest.mark.parametrize(
    ("importer", "text", "fault"),
    [
        ("lab/a.py", "import ldpstream.collector.b", "share a layer"),
        ("device/a.py", "from ldpstream.collector import b", "share a layer"),
        ("privacy/a.py", "import ldpstream.oracles", "share a layer"),
        ("refine/a.py", "from ldpstream import simulate", "take names from where they are made"),
        ("gadgets/a.py", "", "gadgets has no layer"),
    ],
)
def test_other_faults_are_caught(plant: Plant, importer: str, text: str, fault: str) -> None:
    (complaint,) = upward_imports(plant({importer: text, "collector/b.py": "", "oracles/b.py": ""}))
    assert fault in complaint


def test_faults_within_the_collector_are_caught(plant: Plant) -> None:
    tree = plant(
        {
            "collector/store/contract.py": "from ldpstream.collector.config import load",
            "collector/config/file.py": "from ..intake.queue import IntakeQueue",
            "collector/intake/queue.py": "from ldpstream.collector.leadership import scheduler",
            "collector/leadership/scheduler.py": "",
            "collector/gadgets.py": "",
        }
    )
    assert [complaint.partition(": ")[2] for complaint in upward_imports(tree, COLLECTOR)[1:]] == [
        "config lies below intake",
        "intake and leadership share a layer, and SIDEWAYS does not allow it",
        "store lies below config",
    ]
    assert "gadgets has no layer" in upward_imports(tree, COLLECTOR)[0]


def test_a_ring_of_sub_rooms_is_caught(plant: Plant) -> None:
    tree = plant(
        {
            "lab/figures/a.py": "if TYPE_CHECKING:\n    from ldpstream.lab.judges.b import B",
            "lab/judges/b.py": "from ldpstream.lab import results",
            "lab/results.py": "import ldpstream.lab.figures.a",
            "lab/c.py": "import ldpstream.lab.d",
            "oracles/c.py": "import ldpstream.oracles.d",
            "oracles/d.py": "def late():\n    import ldpstream.oracles.c",
        }
    )
    (complaint,) = cycles(tree)
    assert complaint.startswith("ldpstream.lab: ")


def test_proper_imports_pass(plant: Plant) -> None:
    tree = plant(
        {
            "__init__.py": "def __getattr__(name):\n    from ldpstream.lab.roster import Roster",
            "cli.py": "import numpy\nfrom ldpstream import simulate, __version__",
            "lab/roster.py": "from . import metrics\nfrom ldpstream.streams import sin",
            "lab/metrics.py": "from ldpstream import __version__",
            "streams/sin.py": "from ..oracles.grr import device",
            "oracles/grr/device.py": "from ldpstream.privacy import epsilon\nimport lab",
            "privacy/epsilon.py": "from ldpstream.errors import Mistake",
            "errors.py": "",
        }
    )
    assert upward_imports(tree) == []


@pytest.mark.parametrize(
    ("files", "route"),
    [
        ({"device/a.py": "import numpy.typing"}, "device.a -> numpy"),
        ({"device/a.py": "def late():\n    import numba"}, "device.a -> numba"),
        ({"device/a.py": "import requests"}, "device.a -> requests"),
        ({"device/a.py": "import ldpstream.collector.b"}, "device.a -> ldpstream.collector.b"),
        (
            {"device/a.py": "from ldpstream.domain import Domain", "domain.py": "import numpy"},
            "device.a -> ldpstream.domain -> numpy",
        ),
        (
            {
                "device/a.py": "import ldpstream.privacy.epsilon",
                "privacy/epsilon.py": "",
                "privacy/__init__.py": "try:\n    import numba\nexcept ImportError: ...",
            },
            "device.a -> ldpstream.privacy.epsilon -> ldpstream.privacy -> numba",
        ),
        ({"device/a.py": "", "__init__.py": "import numpy"}, "device.a -> ldpstream -> numpy"),
    ],
)
def test_heavy_device_code_is_caught(plant: Plant, files: dict[str, str], route: str) -> None:
    tree = plant({"collector/b.py": "", **files})
    assert f"{PACKAGE}.{route}" in heavy_imports(tree, ["ldpstream.device.a"])


def test_light_device_code_passes(plant: Plant) -> None:
    tree = plant(
        {
            "device/a.py": "import json\nfrom ldpstream import oracles",
            "oracles/__init__.py": "def collector():\n    import numpy",
            "lab/b.py": "import numpy",
        }
    )
    assert heavy_imports(tree, tree.on_the_device("device*")) == []


def array_types(tree: Tree) -> dict[str, list[str]]:
    """Return the modules that define each name of an array type."""
    found: dict[str, list[str]] = {}
    for module, text in tree.texts.items():
        for node in ast.parse(text).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            if targets and ast.unparse(node).partition(" = ")[2].startswith("NDArray["):
                for name in map(ast.unparse, targets):
                    found.setdefault(name, []).append(module)
    return found


def test_array_types_have_one_home(package: Tree) -> None:
    """Two homes of one name drift apart; `arrays` has those that more than one room uses."""
    found = array_types(package)
    assert len(found) > 10
    assert {name: homes for name, homes in found.items() if len(homes) > 1} == {}


def test_an_array_type_that_is_defined_twice_is_caught(plant: Plant) -> None:
    tree = plant(
        {
            "lab/a.py": "Rows = NDArray[np.int64]\nOther = NDArray[np.int64]",
            "lab/b.py": "Rows: TypeAlias = NDArray[np.uint32]",
        }
    )
    homes = array_types(tree)
    assert homes == {"Rows": ["ldpstream.lab.a", "ldpstream.lab.b"], "Other": ["ldpstream.lab.a"]}
