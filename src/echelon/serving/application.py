"""The application: from a request to its answer, with nothing of it kept but counts.

Invariant: of a request nothing is written down but its endpoint, its size, its time and its
outcome: neither a cell, nor an address, nor a header. A fault of ours is named by its type alone,
as its message may hold what a client sent.
"""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response

from echelon.serving.answers import answer_type, write_answer
from echelon.serving.arrow import ARROW, rows_of_arrow
from echelon.serving.bodies import (
    CSV,
    JSON,
    ReceivedRows,
    media_type,
    rows_of_csv,
    rows_of_json,
    shown,
)
from echelon.serving.counters import TEXT, Counters, counter, gauge
from echelon.serving.description import info_of, openapi_of
from echelon.serving.gathering import Gatherer
from echelon.serving.reasons import explain_rows
from echelon.serving.refusal import (
    BAD_REQUEST,
    BUSY,
    FAULT,
    NOT_ALLOWED,
    NOT_FOUND,
    TOO_SLOW,
    UNAUTHORIZED,
    WRONG_TYPE,
    Limits,
    Refusal,
)
from echelon.serving.served import ModelFile, Predictions, ServedModel

_READERS = {JSON: rows_of_json, CSV: rows_of_csv, ARROW: rows_of_arrow}
_OPEN = ("/health", "/ready")  # which say nothing, and are asked by who has no token
_METHODS = {
    "/predict": "POST", "/explain": "POST", "/info": "GET", "/health": "GET", "/ready": "GET",
    "/metrics": "GET", "/openapi.json": "GET",
}  # fmt: skip
_TOGETHER = 1_000  # rows of a pass
_SMALL = 1 << 15  # bytes that are read at once; more are left to a thread
_LOOKED = 1.0  # seconds between two looks at the file of the model
_EXPLAINING = 8  # requests for reasons that may wait
_ROWS, _IS_READ = "echelon.rows", "echelon.read"  # what a request's scope holds of ours

Ask = tuple[ServedModel, ReceivedRows]
Log = Callable[[str], None]


class Service:
    """What answers requests: the model, the queue before it, and the counters.

    Parameters
    ----------
    file : ModelFile
    limits : Limits
    token : bytes, optional
        What a request must bring.
    log : callable
        Called with a line about each request.
    """

    def __init__(self, file: ModelFile, limits: Limits, token: bytes | None, log: Log) -> None:
        self.file, self.limits, self.log = file, limits, log
        self._token = None if token is None else hashlib.sha256(token).digest()
        self.counters = Counters()
        self.held = 0  # bytes of bodies
        self.is_ready = False
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="echelon-body")

    @asynccontextmanager
    async def running(self, app: FastAPI) -> AsyncIterator[None]:
        """Make passes, and look at the file of the model, until the server ends."""
        self.predicting: Gatherer[Ask, Predictions] = Gatherer(
            _predict_each, together=_TOGETHER, waiting=self.limits.waiting
        )
        self.explaining: Gatherer[Ask, Mapping[str, Any]] = Gatherer(
            _explain_each, together=1, waiting=_EXPLAINING
        )
        queues = (self.predicting, self.explaining)
        tasks = [asyncio.create_task(queue.run()) for queue in queues]
        watching = asyncio.create_task(self._watch())
        self.is_ready = True
        try:
            yield
        finally:
            self.is_ready = False
            watching.cancel()
            for queue in queues:
                queue.end()
            await asyncio.gather(*tasks)
            self._readers.shutdown()

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOKED)
            await loop.run_in_executor(self._readers, self.file.look)

    def has_token(self, header: bytes) -> bool:
        """Whether a header brings the token; it takes as long for a wrong one as for the right."""
        if self._token is None:
            return True
        scheme, _, came = header.partition(b" ")
        digest = hashlib.sha256(came.strip()).digest()
        return hmac.compare_digest(digest, self._token) and scheme.lower() == b"bearer"

    @property
    def asks_for_token(self) -> bool:
        """Whether a request must bring a token."""
        return self._token is not None

    # ---- endpoints ---------------------------------------------------------------------------

    async def predict(self, request: Request) -> Response:
        """Predictions of the rows of a body."""
        async with self._timed(request) as (model, rows):
            kind = answer_type(
                request.headers.get("accept", ""), request.headers.get("content-type", "")
            )
            predictions = await self.predicting.ask((model, rows), len(rows))
            content = await self._in_thread(
                len(predictions) > 64, write_answer, model, predictions, kind
            )
        outside = int((predictions.outside != "").sum())
        self.counters.add_predictions(predictions.labels.tolist(), outside)
        request.scope[_ROWS] = len(predictions)
        return Response(content, media_type=kind)

    async def explain(self, request: Request) -> Response:
        """Reasons of the rows of a body."""
        async with self._timed(request) as (model, rows):
            self.limits.require_rows(len(rows), explained=True)
            document = await self.explaining.ask((model, rows), len(rows))
        request.scope[_ROWS] = len(rows)
        return _json(document)

    async def info(self, request: Request) -> Response:
        """What the model is."""
        return _json(info_of(self.file.current, self.limits))

    async def health(self, request: Request) -> Response:
        """That the process lives."""
        return _json({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether requests are taken: not while too many wait, and not at the end."""
        self.predicting.require_room()
        if not self.is_ready:
            raise Refusal(BUSY, "the server is about to end; ask another one", 1)
        return _json({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """Counters for Prometheus."""
        model, queue = self.file.current, self.predicting
        lines = [
            *self.counters.lines(),
            *gauge("echelon_waiting_requests", "Requests that wait.", queue.waiting),
            *gauge("echelon_held_bytes", "Bytes of bodies that are held.", self.held),
            *counter("echelon_passes_total", "Passes of the model.", queue.passes),
            *counter("echelon_pass_rows_total", "Rows of all passes.", queue.rows),
            *counter("echelon_model_reloads_total", "Models that took over.", self.file.reloads),
            *counter(
                "echelon_model_failures_total", "Files that were no whole model.",
                self.file.failures,
            ),
            *gauge("echelon_model_loaded_seconds", "When the model was read.", model.loaded),
            *gauge(
                "echelon_model_info", "The model that serves.", 1,
                kind=model.fitted.kind, hash=model.fingerprint,
            ),
        ]  # fmt: skip
        return Response("\n".join(lines) + "\n", media_type=TEXT)

    async def openapi(self, request: Request) -> Response:
        """The schema of everything here, with the columns of the model."""
        model = self.file.current
        return _json(openapi_of(model, self.limits, has_token=self.asks_for_token))

    # ---- bodies ------------------------------------------------------------------------------

    @asynccontextmanager
    async def _timed(self, request: Request) -> AsyncIterator[Ask]:
        """The model that answers a request and the rows of its body, within the limits."""
        if request.scope["query_string"]:
            raise Refusal(BAD_REQUEST, "there are no options after a ?; leave it out")
        model = self.file.current
        body = _Body(self, request)
        try:
            content = await body.read()
            rows = await self._in_thread(len(content) > _SMALL, _read, content, request, model,
                                         self.limits)  # fmt: skip
            yield model, rows
        finally:
            body.release()

    async def _in_thread(self, is_long: bool, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function, in a thread where it takes long, so that others are not kept waiting."""
        if not is_long:
            return function(*given)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, function, *given)


class _LeftError(Exception):
    """A client that closed its connection before its body was whole."""


class _Body:
    """The body of a request, whose bytes count among those that are held until it is released."""

    def __init__(self, service: Service, request: Request) -> None:
        self.service, self.request, self.size = service, request, 0

    async def read(self) -> bytes:
        """All bytes, as long as they stay within the limits."""
        headers, limits = self.request.headers, self.service.limits
        if headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
            raise Refusal(
                WRONG_TYPE, f"a body must come as it is, without a Content-Encoding; got "
                f"{shown(headers['content-encoding'])}",
            )  # fmt: skip
        _reader(headers.get("content-type", ""))
        declared = headers.get("content-length", "0")
        limits.require_body(int(declared) if declared.isascii() and declared.isdigit() else 0)
        self.service.predicting.require_room()
        parts = []
        has_more = True
        while has_more:
            message = await self.request.receive()
            if message["type"] == "http.disconnect":
                raise _LeftError
            part, has_more = message.get("body", b""), message.get("more_body", False)
            self.size += len(part)
            self.service.held += len(part)
            limits.require_body(self.size)
            if self.service.held > limits.held:
                raise Refusal(
                    BUSY, f"all bodies that are held may have {limits.held:,} bytes, and have "
                    f"more; come back in 1 s", 1,
                )  # fmt: skip
            parts.append(part)
        self.request.scope[_IS_READ] = True
        return b"".join(parts)

    def release(self) -> None:
        """Let others have the room."""
        self.service.held -= self.size
        self.size = 0


def _reader(header: str) -> Any:
    kind = media_type(header)
    if kind not in _READERS:
        raise Refusal(
            WRONG_TYPE, f"the Content-Type of a body must be {', '.join(_READERS)}; got "
            f"{shown(kind) if kind else 'none'}",
        )  # fmt: skip
    return _READERS[kind]


def _read(content: bytes, request: Request, model: ServedModel, limits: Limits) -> ReceivedRows:
    reader = _reader(request.headers.get("content-type", ""))
    rows: ReceivedRows = reader(content, model.schema, limits)
    return rows


def _predict_each(asked: Sequence[Ask]) -> list[Predictions | Exception]:
    """The predictions of several bodies: one pass for each model that they were read for."""
    given: dict[int, Predictions | Exception] = {}
    for model in {id(model): model for model, _ in asked}.values():
        places = [i for i, (other, _) in enumerate(asked) if other is model]
        said = model.predict_each([asked[i][1] for i in places])
        given.update(zip(places, said, strict=True))
    return [given[i] for i in range(len(asked))]


def _explain_each(asked: Sequence[Ask]) -> list[Mapping[str, Any] | Exception]:
    given: list[Mapping[str, Any] | Exception] = []
    for model, rows in asked:
        try:
            given.append(explain_rows(model, rows))
        except Exception as error:
            given.append(error)
    return given


# ---- answers -------------------------------------------------------------------------------------


def _json(document: Any, status: int = 200, **headers: str) -> Response:
    content = json.dumps(document, allow_nan=False).encode()
    return Response(content, status, media_type=JSON, headers=headers)


def _refused(refusal: Refusal) -> Response:
    headers = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
    if refusal.status == UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return _json({"error": refusal.sentence}, refusal.status, **headers)


class _Watched:
    """Every request: its token, its time limit, its outcome, and what is counted of it."""

    def __init__(self, app: Any, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, received, sent, status = time.perf_counter(), 0, 0, 0
        endpoint = scope["path"] if scope["path"] in _METHODS else "other"

        async def counted_receive() -> Any:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def counted_send(message: Any) -> None:
            nonlocal sent, status
            status = message.get("status", status)
            sent += len(message.get("body", b""))
            await send(message)

        fault = ""
        try:
            await self._answered(endpoint, scope, counted_receive, counted_send)
        except _LeftError:
            fault = " left"
        except Exception as error:
            fault = f" {type(error).__name__}"
            if not status:
                sentence = (
                    f"a fault of the server ({type(error).__name__}); it is not in your request "
                    f"that it must be mended"
                )
                await _json({"error": sentence}, FAULT)(scope, counted_receive, counted_send)
        seconds = time.perf_counter() - start
        self.service.counters.add_request(
            endpoint, status, received=received, sent=sent, seconds=seconds
        )
        method = scope["method"] if scope["method"] in ("GET", "POST") else "other"
        self.service.log(
            f"{method} {endpoint} {status} {scope.get(_ROWS, 0)} rows "
            f"{received} bytes {1000 * seconds:.1f} ms{fault}"
        )

    async def _answered(self, endpoint: str, scope: Any, receive: Any, send: Any) -> None:
        try:
            header = next((v for k, v in scope["headers"] if k == b"authorization"), b"")
            if endpoint not in _OPEN and not self.service.has_token(header):
                raise Refusal(
                    UNAUTHORIZED, "a request must bring the token of this server, in a header "
                    "`Authorization: Bearer TOKEN`",
                )  # fmt: skip
            await self._in_time(scope, receive, send)
        except Refusal as refusal:
            await _refused(refusal)(scope, receive, send)

    async def _in_time(self, scope: Any, receive: Any, send: Any) -> None:
        seconds = self.service.limits.seconds
        try:
            await asyncio.wait_for(self.app(scope, receive, send), seconds)
        except asyncio.TimeoutError:
            if scope.get(_IS_READ):
                raise Refusal(
                    BUSY, f"an answer may take at most {seconds:g} s, and this one took longer; "
                    f"send fewer rows, or come back in 5 s", 5,
                ) from None  # fmt: skip
            raise Refusal(
                TOO_SLOW, f"a request may take at most {seconds:g} s, and its body had not come by "
                f"then; send fewer rows at a time",
            ) from None  # fmt: skip


def make_application(service: Service) -> FastAPI:
    """The ASGI application of a service; it runs while its lifespan does."""
    # The pages of FastAPI fetch scripts from elsewhere, so there are none.
    app = FastAPI(lifespan=service.running, docs_url=None, redoc_url=None, openapi_url=None)
    endpoints: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/predict": service.predict, "/explain": service.explain, "/info": service.info,
        "/health": service.health, "/ready": service.ready, "/metrics": service.metrics,
        "/openapi.json": service.openapi,
    }  # fmt: skip
    for path, endpoint in endpoints.items():
        app.router.add_route(path, endpoint, methods=[_METHODS[path]])
    app.router.redirect_slashes = False

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return _refused(error)

    async def refuse_path(request: Request, error: Exception) -> Response:
        path = request.scope["path"]
        if path in _METHODS:
            response = _refused(Refusal(NOT_ALLOWED, f"{path} takes {_METHODS[path]} alone"))
            response.headers["Allow"] = _METHODS[path]
            return response
        known = ", ".join(_METHODS)
        return _refused(Refusal(NOT_FOUND, f"there is no such path here; there are {known}"))

    app.add_exception_handler(Refusal, refuse)
    for status in (NOT_FOUND, NOT_ALLOWED):
        app.add_exception_handler(status, refuse_path)
    app.add_middleware(_Watched, service=service)
    return app
