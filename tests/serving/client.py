"""A server in a thread of the test, or in a process of its own, and a client that asks it."""

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from echelon.serving.application import Service
from echelon.serving.refusal import Limits
from echelon.serving.served import ModelFile
from echelon.serving.server import LOOPBACK, Server, listening_socket


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Asks a server on the loopback address, over one connection as long as it stays open."""

    port: int
    service: Any = None
    server: Any = None
    lines: list[str] = field(default_factory=list)
    connection: http.client.HTTPConnection | None = None

    def ask(
        self, path: str, body: Any = None, *, method: str | None = None, **headers: str
    ) -> Answer:
        """Send a request; underscores in the names of headers are hyphens."""
        if not isinstance(body, (bytes, str, type(None))):
            body, headers = json.dumps(body), {"content_type": "application/json", **headers}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        verb = method or ("GET" if body is None else "POST")
        for fresh in (False, True):
            if self.connection is None or fresh:
                self.close()
                self.connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=30)
            try:
                self.connection.request(verb, path, body, named)
                response = self.connection.getresponse()
                content = response.read()
                break
            except (http.client.HTTPException, OSError):
                if fresh:
                    raise
        return Answer(response.status, dict(response.headers), content)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


@contextmanager
def serving(
    path: Path, limits: Limits | None = None, token: bytes | None = None, coverage: float = 0.9
) -> Iterator[Client]:
    """A server in a thread, until the block ends."""
    lines: list[str] = []
    service = Service(
        ModelFile(path, coverage, lines.append), limits or Limits(), token, lines.append
    )
    listener = listening_socket(LOOPBACK, 0)
    client = Client(listener.getsockname()[1], service, lines=lines)
    client.server = Server(service, listener, service.limits)
    started = threading.Event()
    thread = threading.Thread(target=client.server.run, args=(started.set,), daemon=True)
    thread.start()
    try:
        assert started.wait(20)
        yield client
    finally:
        client.close()
        client.server.stop()
        thread.join(20)
        assert not thread.is_alive()


@contextmanager
def serving_process(path: Path, *options: str) -> Iterator[tuple[Client, "subprocess.Popen[str]"]]:
    """A server as a person starts it, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "echelon.cli.main",
        "serve",
        str(path),
        "--port",
        "0",
        "--json",
    ]
    process = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        said = process.stdout.readline()
        assert said, process.stderr.read()
        client = Client(int(json.loads(said)["address"].rpartition(":")[2]))
        yield client, process
        client.close()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
