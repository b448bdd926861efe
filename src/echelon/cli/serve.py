"""The command ``serve``: a model behind an address."""

import gc
import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from echelon.cli.options import AsJson, Model, existing_file
from echelon.extras import require

_MEBIBYTE = 1 << 20


def serve(
    model: Model,
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on. Without it, only this machine can reach the server."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port to listen on; 0 takes any that is free.")
    ] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            callback=existing_file,
            help="A file with the token that a request must bring, in a header `Authorization: "
            "Bearer TOKEN`.",
        ),
    ] = None,
    max_body: Annotated[
        float, typer.Option(help="The mebibytes that a body may have at most.")
    ] = 16.0,
    max_rows: Annotated[int, typer.Option(help="The rows that a body may have at most.")] = 10_000,
    max_seconds: Annotated[
        float, typer.Option(help="The seconds that a request may take at most.")
    ] = 30.0,
    max_waiting: Annotated[
        int,
        typer.Option(help="The requests that may wait; those beyond are told when to come back."),
    ] = 256,
    coverage: Annotated[
        float,
        typer.Option(
            help="The coverage of the intervals of a model that was fitted with --conformal."
        ),
    ] = 0.9,
    threads: Annotated[
        int, typer.Option(help="The threads that one prediction may use; small ones need one.")
    ] = 1,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no line about each request.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Answer requests for predictions over HTTP until it is stopped.

    The endpoints are /predict and /explain, which take rows as JSON, CSV or Arrow, and /info,
    /health, /ready, /metrics and /openapi.json. A model file that is replaced is picked up within a
    second or two, whole or not at all. Of a request nothing is printed but its size, its time and
    its outcome. SIGTERM lets it answer what it has taken, and end.

    Example: echelon serve wine.echelon --port 8000

    Example: echelon serve wine.echelon --host 0.0.0.0 --token-file token.txt
    """
    for package in ("fastapi", "pydantic_core", "uvicorn"):
        require(package, "servers")
    if not 0 <= port <= 65_535:
        raise ValueError(f"--port must be from 0 to 65,535; got {port}")
    if not 1 <= threads <= 1024:
        raise ValueError(f"--threads must be from 1 to 1,024; got {threads}")
    if not 0 < max_body <= 1024:
        raise ValueError(f"--max-body must lie above 0 and be at most 1,024; got {max_body:g}")
    from echelon.evaluation.conformal import require_coverage
    from echelon.serving.refusal import Limits
    from echelon.serving.server import Server, address_of, is_loopback, listening_socket, read_token

    require_coverage(coverage)
    limits = Limits(
        body=round(max_body * _MEBIBYTE), rows=max_rows, seconds=max_seconds, waiting=max_waiting
    )
    token = None if token_file is None else read_token(token_file)
    import torch

    from echelon.serving.application import Service
    from echelon.serving.served import ModelFile

    torch.set_num_threads(threads)
    file = ModelFile(model, coverage, say)
    listener = listening_socket(host, port)
    address = address_of(listener)
    if token is None and not is_loopback(listener):
        say(f"{address} can be reached by others, and there is no --token-file: anyone may ask")
    service = Service(file, limits, token, _silent if quiet else say)

    def started() -> None:
        # what is there by now stays, and need not be looked through for garbage with every body
        gc.collect()
        gc.freeze()
        if as_json:
            said = {"address": address, "model": str(model), "hash": file.current.fingerprint}
            print(json.dumps(said), flush=True)
        else:
            print(f"serving {model} on {address}; Ctrl-C ends it", flush=True)

    Server(service, listener, limits).run(started)


def say(line: str) -> None:
    """Print a line, with the time, on standard error."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f"{moment} {line}", file=sys.stderr, flush=True)


def _silent(line: str) -> None:
    pass
