"""The imports of a process take most of the time of its restart."""

from __future__ import annotations

import subprocess
import sys

import pytest


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


def test_a_logger_without_asyncio_can_be_awaited() -> None:
    logged = (
        "import sys; from signet_actors.runtime.logging import configuration; print('asyncio' in sys.modules)\n"
        "import asyncio; asyncio.run(configuration.structlog.get_logger().ainfo('awaited'))"
    )
    said = subprocess.run([sys.executable, "-c", logged], capture_output=True, text=True, timeout=60, check=True)
    first, _, rest = said.stdout.partition("\n")
    assert first == "False"
    assert "awaited" in rest
