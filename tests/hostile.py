"""A process that opens model files while everything it does beside that is watched.

``python -m tests.hostile FILE ...`` prints one JSON document: for each file the error or "loaded",
and whatever was done that opening a model must never do: a connection, a program, a file that was
not named.
"""

import json
import os
import sys
import sysconfig
from typing import Any

WATCHED = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec",
           "os.posix_spawn", "os.fork", "webbrowser.open")  # fmt: skip


def main(paths: list[str]) -> None:
    import echelon
    from echelon.extras import require

    for package in ("timm", "transformers", "tokenizers", "PIL"):
        require(package, "these tests")
    deeds: list[str] = []
    allowed: list[str] = []
    # Modules are still imported from where packages are installed, and from our own sources.
    places = [*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, "/proc", "/sys",
              "/usr/share/zoneinfo"]  # fmt: skip
    places += [os.path.dirname(os.path.dirname(os.path.abspath(echelon.__file__)))]

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in WATCHED:
            deeds.append(f"{event} {arguments!r:.200}")
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            path = os.path.abspath(os.fsdecode(arguments[0]))
            if path not in allowed and not any(path.startswith(place) for place in places):
                deeds.append(f"open {path}")

    sys.addaudithook(watch)
    outcomes = {}
    for path in paths:
        allowed[:] = [os.path.abspath(path)]
        del deeds[:]
        try:
            echelon.load(path)
            outcome = "loaded"
        except ValueError as error:
            outcome = str(error)
        outcomes[os.path.basename(path)] = {"outcome": outcome, "deeds": list(deeds)}
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1:])
