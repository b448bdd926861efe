"""The process that listens: its socket, its token, its signals, and its end.

It listens on the loopback address unless another is named. SIGTERM and SIGINT let it answer what it
has taken and then end; a second one ends it at once.
"""

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

from echelon.extras import require
from echelon.serving.refusal import Limits
from echelon.storage.regular import NotRegularError, open_regular

LOOPBACK = "127.0.0.1"
_SHORTEST_TOKEN = 16  # characters
_LONGEST_TOKEN = 4096
_KEPT_ALIVE = 65  # seconds that a connection may be idle: longer than most proxies keep theirs
_PENDING = 512  # connections that the system holds until they are taken


def read_token(path: Path) -> bytes:
    """The token that a file holds, without the spaces around it."""
    try:
        with open_regular(path) as stream:
            content = stream.read(_LONGEST_TOKEN + 1)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path} with a token") from None
    except NotRegularError as error:
        raise ValueError(f"{error}; name a file with a token") from None
    except OSError as error:
        raise ValueError(f"the token cannot be read: {error}") from None
    token = content.strip()
    is_plain = token.isascii() and all(33 <= sign <= 126 for sign in token)
    if not _SHORTEST_TOKEN <= len(token) <= _LONGEST_TOKEN or not is_plain:
        raise ValueError(
            f"a token must be {_SHORTEST_TOKEN} to {_LONGEST_TOKEN:,} letters, digits and signs "
            f'without spaces, and that of {path} is not; make one with `python -c "import '
            f'secrets; print(secrets.token_urlsafe(32))"`'
        )
    return token


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens on an address; an error where it is taken or not of this machine."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"--host and --port must be an address: {host} port {port}: {error}"
        ) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_PENDING)
    except OSError as error:
        listener.close()
        raise ValueError(
            f"{host} port {port} cannot be listened on: {error.strerror or error}; take another "
            f"with --port, or --port 0 for any that is free"
        ) from None
    return listener


def address_of(listener: socket.socket) -> str:
    """The address of a listening socket as a browser would name it."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(listener: socket.socket) -> bool:
    """Whether nobody but this machine reaches a listening socket."""
    host = str(listener.getsockname()[0])
    return host.startswith("127.") or host == "::1"


class Server:
    """A server of one model, on a socket that listens.

    Parameters
    ----------
    service : Service
        Of :mod:`echelon.serving.application`.
    listener : socket
    limits : Limits
    """

    def __init__(self, service: Any, listener: socket.socket, limits: Limits) -> None:
        uvicorn = require("uvicorn", "servers")
        from echelon.serving.application import make_application

        config = uvicorn.Config(
            make_application(service), log_level="critical", access_log=False, lifespan="on",
            ws="none", server_header=False, timeout_keep_alive=_KEPT_ALIVE,
            timeout_graceful_shutdown=max(1, round(limits.seconds)), proxy_headers=False,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._server.capture_signals = nullcontext  # they are ours
        self._listener = listener

    def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Serve until :meth:`stop`, or until a signal asks for it; then answer what was taken."""
        begun = threading.Thread(target=self._tell, args=(started,), daemon=True)
        begun.start()
        with self._listener, self._signals():
            self._server.run(sockets=[self._listener])

    def stop(self, *, at_once: bool = False) -> None:
        """Take no more requests, answer those that were taken, and end."""
        self._server.force_exit = at_once
        self._server.should_exit = True

    def _tell(self, started: Callable[[], None]) -> None:
        pause = threading.Event()
        while not self._server.started and not self._server.should_exit:
            pause.wait(0.01)
        started()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def end(number: int, frame: FrameType | None) -> None:
            self.stop(at_once=self._server.should_exit)

        before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
