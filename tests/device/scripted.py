"""A server on the loopback that says, byte by byte, what a script tells it to."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

JOIN_SECONDS = 60.0
PEM = Path(__file__).with_name("loopback.pem")


@dataclass
class Talk:
    """One connection, as the script sees it."""

    line: socket.socket
    over: threading.Event
    number: int
    """0 for the first connection to this server."""

    def hear(self) -> bytes:
        """Read one request; empty if the client has hung up."""
        heard = b""
        while b"\r\n\r\n" not in heard:
            if not (data := self.line.recv(1 << 16)):
                return b""
            heard += data
        return heard

    def say(self, data: bytes) -> None:
        self.line.sendall(data)

    def drip(self, data: bytes, seconds: float = 0.02) -> None:
        """Say it again and again, for ever, with pauses."""
        while not self.over.wait(seconds):
            self.say(data)

    def flood(self, data: bytes) -> None:
        """Say it again and again, for ever, without pauses."""
        while not self.over.is_set():
            self.say(data)


Script = Callable[[Talk], None]


@dataclass
class ScriptedServer:
    """Runs the script on each connection, in a thread of its own."""

    script: Script
    secure: bool = False
    connections: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    _lines: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> ScriptedServer:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._start(self._accept)
        return self

    def __exit__(self, *arguments: object) -> None:
        self.over.set()
        for line in (self._listening, *self._lines):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
            assert not thread.is_alive()
        for line in (self._listening, *self._lines):
            line.close()

    @property
    def url(self) -> str:
        scheme = "https" if self.secure else "http"
        return f"{scheme}://127.0.0.1:{self._listening.getsockname()[1]}"

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self._listening.accept()
                self._lines.append(line)
                self.connections += 1  # before it can be answered
                self._start(self._talk, line, self.connections - 1)

    def _talk(self, line: socket.socket, number: int) -> None:
        with suppress(OSError):  # a client that hangs up is what most scripts are about
            if self.secure:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(PEM)
                line = context.wrap_socket(line, server_side=True)
                self._lines.append(line)
            self.script(Talk(line, self.over, number))
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
