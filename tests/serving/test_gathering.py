"""The queue: what waits goes together, in order, and what fails fails alone."""

import asyncio
import threading

import pytest

from echelon.serving.gathering import Gatherer
from echelon.serving.refusal import Refusal


def run(scenario) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_what_waits_while_a_pass_is_made_goes_into_the_next() -> None:
    batches, go_on = [], threading.Event()

    def work(asked):
        batches.append(list(asked))
        go_on.wait(10)
        return [number * 2 for number in asked]

    async def scenario() -> None:
        queue = Gatherer(work, together=3, waiting=10)
        running = asyncio.create_task(queue.run())
        asking = [asyncio.create_task(queue.ask(number, 1)) for number in range(6)]
        big = asyncio.create_task(queue.ask(6, 100))
        await asyncio.sleep(0.05)
        asking[4].cancel()  # a client that gave up
        await asyncio.sleep(0)
        go_on.set()
        queue.end()
        assert await asyncio.gather(*asking[:4], asking[5], big) == [0, 2, 4, 6, 10, 12]
        await running

    run(scenario)
    assert batches == [[0, 1, 2], [3, 5], [6]]


def test_a_fault_of_one_pass_is_not_the_end_of_all() -> None:
    def work(asked):
        if "bad" in asked:
            raise MemoryError("too much")
        return list(asked)

    async def scenario() -> None:
        queue = Gatherer(work, together=1, waiting=10)
        running = asyncio.create_task(queue.run())
        with pytest.raises(MemoryError):
            await queue.ask("bad", 1)
        assert await queue.ask("good", 1) == "good"
        queue.end()
        await running

    run(scenario)


def test_a_full_queue_refuses_with_the_seconds_to_wait() -> None:
    async def scenario() -> None:
        queue = Gatherer(lambda asked: list(asked), together=10, waiting=2)
        asking = [asyncio.create_task(queue.ask(number, 5_000)) for number in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="at most 2 requests may wait") as refused:
            await queue.ask(2, 1)
        assert refused.value.status == 503
        assert refused.value.retry_after == 10  # 10,000 rows of a millisecond each
        queue.end()
        await queue.run()
        assert await asyncio.gather(*asking) == [0, 1]

    run(scenario)
