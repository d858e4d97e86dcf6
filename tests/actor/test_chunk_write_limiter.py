"""The limit on chunks that are on their way to the writer: first come, first served, also after cancellations."""

from __future__ import annotations

import asyncio

import pytest

from signet_actors.errors import Busy
from signet_actors.gateway.limits import ChunkWriteLimiter


async def pass_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_chunk_writes_beyond_the_limit_wait_and_are_refused_after_a_time() -> None:
    async def scene() -> None:
        writes = ChunkWriteLimiter(at_once=10, waiting=10)
        order: list[str] = []
        gates = {name: asyncio.Event() for name in "abcd"}

        async def write(name: str, chunks: int) -> None:
            async with writes.slot(chunks):
                order.append(name)
                await gates[name].wait()

        tasks = {
            name: asyncio.create_task(write(name, chunks)) for name, chunks in zip("abcd", (6, 4, 9, 1), strict=True)
        }
        await pass_turns()
        assert order == ["a", "b"]
        with pytest.raises(Busy):
            await write("a", 1)
        gates["a"].set()
        await pass_turns()
        assert order == ["a", "b"], "nobody overtakes the one that waits longest"
        gates["b"].set()
        await pass_turns()
        assert order == ["a", "b", "c", "d"]
        gates["c"].set()
        gates["d"].set()
        await asyncio.gather(*tasks.values())
        async with writes.slot(10):
            pass

    asyncio.run(asyncio.wait_for(scene(), 30))


def test_a_text_with_more_chunks_than_the_limit_is_written_alone() -> None:
    async def scene() -> None:
        writes = ChunkWriteLimiter(at_once=10, waiting=10)
        async with writes.slot(50):
            waiting = asyncio.create_task(writes.slot(1).__aenter__())
            await pass_turns()
            assert not waiting.done()
        await waiting

    asyncio.run(asyncio.wait_for(scene(), 30))


@pytest.mark.parametrize("its_turn_has_come", [True, False])
def test_a_cancelled_chunk_write_does_not_block_the_others(its_turn_has_come: bool) -> None:
    async def scene() -> None:
        writes = ChunkWriteLimiter(at_once=10, waiting=100)

        async def write() -> None:
            async with writes.slot(10):
                pass

        async with writes.slot(10):
            gone, next_one = asyncio.create_task(write()), asyncio.create_task(write())
            await pass_turns()
            if not its_turn_has_come:
                gone.cancel()
                await pass_turns()
        gone.cancel()  # between its turn and its waking, in the first case
        await asyncio.gather(gone, next_one, return_exceptions=True)
        assert gone.cancelled()
        await asyncio.wait_for(write(), 10)

    asyncio.run(asyncio.wait_for(scene(), 30))
