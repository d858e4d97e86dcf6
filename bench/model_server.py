"""A model server in a separate process that answers at once or hangs on each call, in Ollama's wire format.

It answers our prompts as far as a benchmark needs: a note becomes two facts, its beginning and its end, and every fact
is new. The process exits when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import uvloop

from bench.daemon import REPOSITORY

MODEL: Final = "qwen3:4b"
_NOTE: Final = re.compile(r"^<data ([0-9a-z]+)>\n(.*?)\n</data \1>$", re.DOTALL | re.MULTILINE)
_ADD: Final = {"action": "add", "targetId": None, "confidence": 0.9, "reason": "not stored yet"}
_TAGS: Final = msgspec.json.encode({"models": [{"name": MODEL, "model": MODEL}]})


@contextmanager
def model_server(hang_s: float = 0.0) -> Iterator[str]:
    """Yield the address of a server that hangs for ``hang_s`` seconds on each prompt; it is stopped afterwards."""
    command = [sys.executable, "-P", "-m", "bench.model_server", str(hang_s)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.communicate(timeout=10)


def answer_to(prompt: str) -> str:
    """Return the model's answer to the prompt."""
    if not prompt.startswith("You turn a note"):
        return msgspec.json.encode(_ADD).decode()
    notes = _NOTE.findall(prompt)
    words = notes[-1][1].split() if notes else []
    halves = (words[: len(words) // 2][:20], words[len(words) // 2 :][-20:])
    facts = [{"content": " ".join(half), "type": "fact", "confidence": 0.9} for half in halves]
    return msgspec.json.encode({"facts": facts, "entities": []}).decode()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hang_s: float) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            found = re.search(rb"content-length: *(\d+)", head)
            body = await reader.readexactly(int(found[1])) if found else b""
            said = _TAGS
            if body:
                asked: Any = msgspec.json.decode(body)
                await asyncio.sleep(hang_s)
                said = msgspec.json.encode(
                    {"response": answer_to(asked["prompt"]), "done": True, "prompt_eval_count": 300, "eval_count": 60}
                )
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(said) + said
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _life(hang_s: float) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def until_input_ends() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(ended.set)

    tasks: set[asyncio.Task[None]] = set()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = loop.create_task(_serve(reader, writer, hang_s))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    threading.Thread(target=until_input_ends, daemon=True).start()
    await ended.wait()
    server.close()
    for task in list(tasks):
        task.cancel()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_life(float(sys.argv[1])))
