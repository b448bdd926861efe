"""Small requests gathered into one pass: what waits while a pass is made goes into the next.

Nothing waits for company: a request that comes alone is predicted at once. A request that gave up
before its turn takes no time of the model.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from echelon.serving.refusal import BUSY, Refusal

_Asked = TypeVar("_Asked")
_Given = TypeVar("_Given")
_LONGEST_WAIT = 600  # seconds that a full queue tells anyone to stay away


@dataclass
class _Waiting(Generic[_Asked, _Given]):
    asked: _Asked
    rows: int
    answer: "asyncio.Future[_Given]" = field(default_factory=asyncio.Future)


class Gatherer(Generic[_Asked, _Given]):
    """A queue before one thread.

    Parameters
    ----------
    work : callable
        From what was asked, a list, to what is given for each, or the error that it gets.
    together : int
        How many rows one pass may have; a request with more has a pass of its own.
    waiting : int
        How many requests may wait before others are refused.
    """

    def __init__(
        self,
        work: Callable[[Sequence[_Asked]], Sequence[_Given | Exception]],
        *,
        together: int,
        waiting: int,
    ) -> None:
        self._work, self._together, self._most = work, together, waiting
        self._queue: deque[_Waiting[_Asked, _Given]] = deque()
        self._filled = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="echelon-pass")
        self._is_ending = False
        self._seconds_a_row = 0.001
        self.passes = self.rows = 0

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    def require_room(self) -> None:
        """Refuse where too many wait, and say when there will be room."""
        if len(self._queue) >= self._most:
            rows = sum(waiting.rows for waiting in self._queue)
            seconds = min(_LONGEST_WAIT, max(1, math.ceil(rows * self._seconds_a_row)))
            raise Refusal(
                BUSY, f"at most {self._most:,} requests may wait, and so many do; come back in "
                f"{seconds} s", seconds,
            )  # fmt: skip

    async def ask(self, asked: _Asked, rows: int) -> _Given:
        """What is given for one request, in its turn."""
        self.require_room()
        waiting: _Waiting[_Asked, _Given] = _Waiting(asked, rows)
        self._queue.append(waiting)
        self._filled.set()
        return await waiting.answer

    async def run(self) -> None:
        """Make one pass after the other, until :meth:`end` was called and nobody waits."""
        loop = asyncio.get_running_loop()
        while self._queue or not self._is_ending:
            if not self._queue:
                self._filled.clear()
                await self._filled.wait()
                continue
            batch = self._next_batch()
            if not batch:
                continue
            start = time.perf_counter()
            given: Sequence[_Given | Exception]
            try:
                given = await loop.run_in_executor(
                    self._thread, self._work, [waiting.asked for waiting in batch]
                )
            except Exception as error:  # a fault, which must not be the end of all passes
                given = [error] * len(batch)
            rows = sum(waiting.rows for waiting in batch)
            spent = (time.perf_counter() - start) / max(1, rows)
            self._seconds_a_row += 0.1 * (spent - self._seconds_a_row)
            self.passes += 1
            self.rows += rows
            for waiting, answer in zip(batch, given, strict=True):
                if waiting.answer.done():  # its client gave up meanwhile
                    continue
                if isinstance(answer, Exception):
                    waiting.answer.set_exception(answer)
                else:
                    waiting.answer.set_result(answer)
        self._thread.shutdown()

    def end(self) -> None:
        """Let :meth:`run` end when nobody waits any more."""
        self._is_ending = True
        self._filled.set()

    def _next_batch(self) -> list[_Waiting[_Asked, _Given]]:
        batch: list[_Waiting[_Asked, _Given]] = []
        rows = 0
        while self._queue:
            if self._queue[0].answer.done():
                self._queue.popleft()
                continue
            if batch and rows + self._queue[0].rows > self._together:
                break
            batch.append(self._queue.popleft())
            rows += batch[-1].rows
        return batch
