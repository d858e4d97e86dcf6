"""The real supervisor with echo actors, as a program: ``python -m tests.support.echo_tree <workspace>``.

``SIGNET_TEST_CONFIG`` contains the configuration as JSON, or the path of a file with it (SIGHUP then reads it again).
``SIGNET_TEST_RETRY_FAILED_MS`` replaces the ten minutes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from signet_actors.config.load import LoadedConfig
from signet_actors.config.schema import Config
from signet_actors.errors import ConfigError
from signet_actors.runtime.supervision.children import ChildSpec
from signet_actors.runtime.supervision.daemon import run_supervisor

ECHO = "tests.support.echo_actor"


def searchers(config: Config) -> int:
    return config.searcher.processes


TREE = (
    ChildSpec("writer", ECHO, core=True),
    ChildSpec("searcher", ECHO, core=True, count=searchers, pool=True, reads=True),
    ChildSpec("retention", ECHO, core=False),
    ChildSpec("gateway", ECHO, core=True, listens=True),
)


def load() -> LoadedConfig:
    text = os.environ.get("SIGNET_TEST_CONFIG", "{}")
    if not text.startswith("{"):
        text = Path(text).read_text(encoding="utf-8")
    try:
        return LoadedConfig(msgspec.json.decode(text, type=Config), [], None)
    except msgspec.DecodeError as error:
        raise ConfigError(f"agent.yaml: {error}") from error


if __name__ == "__main__":
    sys.exit(
        run_supervisor(
            TREE,
            Path(sys.argv[1]),
            load,
            port=int(os.environ.get("SIGNET_TEST_PORT", "0")),
            retry_failed_ms=int(os.environ.get("SIGNET_TEST_RETRY_FAILED_MS", "600000")),
        )
    )
