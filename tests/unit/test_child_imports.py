"""The imports of a process take most of the time of its restart."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from signet_actors.runtime.supervision.fork_server import CHILD_ENVIRON


def modules_of(role: str) -> set[str]:
    """Return the packages that the entry point of ``role`` loads before it receives its context."""
    told = f"import sys, signet_actors.{role}.__main__; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("role", "needless"),
    [
        ("writer", {"numpy", "yaml", "sqlite_vec", "tokenizers", "uvicorn", "asyncio", "rich"}),
        ("searcher", {"yaml", "sqlite_vec", "tokenizers", "uvicorn", "asyncio", "rich"}),
        ("retention", {"numpy", "apsw", "tokenizers", "uvicorn", "asyncio", "rich"}),
        ("gateway", {"yaml", "apsw", "prometheus_client", "tokenizers", "rich", "mcp", "mcp_types", "pydantic"}),
        ("decider", {"httpx", "numpy", "apsw", "yaml", "tokenizers", "uvicorn", "rich", "click"}),
        ("extractor", {"httpx", "numpy", "apsw", "yaml", "tokenizers", "uvicorn", "rich", "click"}),
    ],
)
def test_a_process_does_not_import_modules_that_it_does_not_need(role: str, needless: set[str]) -> None:
    loaded = modules_of(role)
    assert "signet_actors" in loaded
    assert not loaded & needless


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells the threads and files of a process")
def test_the_process_that_children_are_forked_from_has_one_thread_no_file_and_no_model() -> None:
    told = (
        "import os, sys, zmq; from signet_actors.runtime.processes.fork_server import _import_program as program\n"
        "from signet_actors.supervisor import TREE\n"
        "assert all(program(spec.module) for spec in TREE)\n"
        "opened = [fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}')]\n"
        "print(len(os.listdir('/proc/self/task')), opened, zmq.Context._instance, 'onnxruntime' in sys.modules)"
    )
    environ = {**os.environ, **CHILD_ENVIRON}
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, timeout=60, check=True, env=environ
    )
    assert done.stdout.strip() == "1 [] None False"


def test_a_logger_without_asyncio_can_be_awaited() -> None:
    logged = (
        "import sys; from signet_actors.runtime.logging import configuration; print('asyncio' in sys.modules)\n"
        "import asyncio; asyncio.run(configuration.structlog.get_logger().ainfo('awaited'))"
    )
    said = subprocess.run([sys.executable, "-c", logged], capture_output=True, text=True, timeout=60, check=True)
    first, _, rest = said.stdout.partition("\n")
    assert first == "False"
    assert "awaited" in rest
