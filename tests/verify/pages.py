"""The blocks of a page of docs/, run as its reader would run them."""

from __future__ import annotations

import doctest
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 300
"""Deadline of one command; the machine may be busy."""
_BLOCK = re.compile(
    r"^```(?:\{code-block\} )?(?P<language>[^\n]*)\n"
    r"(?::caption: (?P<caption>[^\n]+)\n\n)?(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_COMMAND = re.compile(r"^\$ (.+)\n", re.MULTILINE)
_MATCHER = doctest.OutputChecker()


@dataclass(frozen=True)
class Block:
    """A block of code, with its caption if it has one."""

    language: str
    caption: str
    text: str

    @property
    def commands(self) -> Iterator[tuple[str, str]]:
        """Yield each command with the output that the page shows."""
        _, *parts = _COMMAND.split(self.text)
        return zip(parts[::2], parts[1::2], strict=True)


def read_blocks(page: Path) -> list[Block]:
    return [
        Block(one["language"], one["caption"] or "", one["text"])
        for one in _BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]


def matches(shown: str, printed: str) -> bool:
    """Return whether a program printed what a page shows; "..." is anything, as in doctests."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return _MATCHER.check_output(shown, printed, flags)


@dataclass
class Reader:
    """Somebody with a folder and two terminals, in the first of which a collector runs."""

    folder: Path
    port: int
    """Of the collector, in place of 8080."""
    environment: dict[str, str] = field(default_factory=dict)
    serving: subprocess.Popen[str] | None = None

    def __post_init__(self) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = os.environ | {"PATH": path, "COLUMNS": "140"} | self.environment

    def follow(self, block: Block) -> None:
        """Do what a block says, and compare what comes of it."""
        if block.language == "console":
            act = self._serve if block.caption == "First terminal" else self._run
            for command, shown in block.commands:
                act(self._here(command), self._here(shown))
        elif block.caption:
            name, _, at_end = block.caption.partition(", ")
            with (self.folder / name).open("a" if at_end else "w") as file:
                file.write(self._here(block.text))

    def _here(self, text: str) -> str:
        return text.replace(":8080", f":{self.port}")

    def _run(self, command: str, shown: str) -> None:
        """Run a command in the second terminal, whose variables are kept."""
        kept = self.folder / ".variables"
        script = f"{command}\nstatus=$?\nexport -p > {kept}\nexit $status"
        done = subprocess.run(
            ["bash", "-c", f"[ -e {kept} ] && . {kept}\n{script}"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        for made in self.folder.glob("*.toml"):  # programs write the usual port, too
            made.write_text(self._here(made.read_text()))
        printed = done.stdout + done.stderr
        assert done.returncode == 0, f"{command}\n{printed}"
        assert matches(shown, printed), f"{command}\nprinted:\n{printed}\nthe page shows:\n{shown}"

    def _serve(self, command: str, shown: str) -> None:
        """Start a program in the first terminal, in place of the one before; wait for its words."""
        self.stop()
        self.serving = subprocess.Popen(
            command.split(),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        watchdog = threading.Timer(SECONDS, self.serving.kill)
        watchdog.start()
        assert self.serving.stdout is not None
        printed = ""
        for line in self.serving.stdout:
            printed += line
            if matches(shown, printed):
                break
        watchdog.cancel()
        assert matches(shown, printed), f"{command}\nprinted:\n{printed}\nthe page shows:\n{shown}"

    def stop(self) -> None:
        """Press Ctrl-C in the first terminal."""
        if self.serving is not None:
            self.serving.send_signal(signal.SIGINT)
            self.serving.communicate(timeout=SECONDS)
            self.serving = None


@contextmanager
def reading(folder: Path, port: int) -> Iterator[Reader]:
    """Let somebody read; what runs at the end is stopped."""
    reader = Reader(folder, port)
    try:
        yield reader
    finally:
        reader.stop()
