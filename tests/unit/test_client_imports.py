"""A program that uses the Python client loads no part of the daemon."""

from __future__ import annotations

import subprocess
import sys

from tests.support.scripted_daemon import ScriptedDaemon

PROGRAM = """
import sys
from signet_actors.client import AsyncClient, Client

with Client({url!r}) as client:
    print("asyncio" in sys.modules, client.recall("x").query)

import asyncio

async def main():
    async with AsyncClient({url!r}) as client:
        print((await client.recall("x")).query)

asyncio.run(main())
print(*sorted({{".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("signet_actors.")}}))
print(*sorted({{name.partition(".")[0] for name in sys.modules}}))
"""
TIMINGS = {"totalMs": 1.0, "stages": []}
RECALLED = {
    "results": [],
    "query": "x",
    "method": "keyword",
    "meta": {
        "totalReturned": 0,
        "hasSupplementary": False,
        "noHits": True,
        "timings": TIMINGS,
        "dedupe": {},
    },
}


def test_a_program_with_the_client_loads_only_declarations_and_httpx(daemon: ScriptedDaemon) -> None:
    daemon.on("POST", "/api/memory/recall", RECALLED)
    program = PROGRAM.format(url=daemon.url)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    blocking, awaited, ours, libraries = done.stdout.splitlines()
    assert (blocking, awaited) == ("False x", "x")
    # Of protocol, the records that declarations of features are made of.
    assert set(ours.split()) == {
        f"signet_actors.{name}"
        for name in ("client", "config", "domain", "errors", "features", "operations", "protocol")
    }
    daemon_only = {"zmq", "apsw", "sqlite3", "sqlite_vec", "numpy", "onnxruntime", "starlette", "uvicorn", "uvloop"}
    assert not set(libraries.split()) & {*daemon_only, "structlog", "yaml", "prometheus_client"}
    assert "httpx" in libraries.split()
