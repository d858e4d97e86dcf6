"""The modules that the gateway loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def loaded(module: str) -> set[str]:
    """The top-level packages in a fresh interpreter that has imported ``module``."""
    script = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    said = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(said.stdout.split())


def test_the_gateway_loads_no_http_client_and_no_rarely_used_modules() -> None:
    packages = loaded("signet_actors.gateway.__main__")
    assert "uvicorn" in packages
    assert not packages & {"requests", "urllib3", "httpx", "prometheus_client", "apsw", "sqlite3"}
