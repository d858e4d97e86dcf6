"""The tree of processes that make up the Signet daemon, and the program that runs it.

Children start from top to bottom, each group when the one above it is ready, and stop from bottom to top. A child that
crashes is restarted alone (one_for_one), within the budget of its role in ``supervision.budgets``. When a core child
exceeds it, the daemon exits with code 75, for searchers only when none is up; an optional child becomes ``failed`` and
is tried again later.

Source: docs/reliability.md "Supervision policy"; architecture.txt "Daemon".
"""

from __future__ import annotations

import os
import signal
import sys

if __name__ == "__main__":  # before anything is imported that a file of the working directory could replace
    from signet_actors.runtime.processes.import_path import leave_working_directory

    leave_working_directory(program=True)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until the supervisor handles it, Ctrl-C ends the process: an exception may be lost within an import.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

from signet_actors.config.load import LoadedConfig, load_config
from signet_actors.config.schema import Config
from signet_actors.config.workspace import workspace_from
from signet_actors.errors import ConfigError, ExitCode
from signet_actors.runtime.processes.terminal import write_line
from signet_actors.runtime.supervision.children import ChildSpec
from signet_actors.runtime.supervision.daemon import run_supervisor


def searcher_count(config: Config) -> int:
    """Return the configured number of searchers; by default one less than the CPU cores, at least one."""
    return config.searcher.processes or max(1, (os.cpu_count() or 1) - 1)


def decider_count(config: Config) -> int:
    """Return 1, or 0 when the pipeline is switched off."""
    return int(config.memory.pipeline_v2.enabled)


def extractor_count(config: Config) -> int:
    """Return 1, or 0 when the pipeline, the embedding refresh and recall summaries are all switched off."""
    pipeline = config.memory.pipeline_v2
    return int(pipeline.enabled or pipeline.embedding_tracker.enabled or pipeline.reranker.use_extraction_model)


TREE = (
    ChildSpec("writer", "signet_actors.writer", core=True),
    ChildSpec("searcher", "signet_actors.searcher", core=True, count=searcher_count, pool=True, reads=True),
    ChildSpec("retention", "signet_actors.retention", core=False),
    ChildSpec("gateway", "signet_actors.gateway", core=True, listens=True),
    ChildSpec("decider", "signet_actors.decider", core=False, count=decider_count),
    ChildSpec("extractor", "signet_actors.extractor", core=False, count=extractor_count),
    ChildSpec("quarantine", "signet_actors.extractor", core=False, count=extractor_count, after_crash_of="extractor"),
)


def main(arguments: list[str] | None = None) -> int:
    """Run the daemon in the foreground until it is asked to stop; ``--console`` mirrors the log to the terminal."""
    options = sys.argv[1:] if arguments is None else arguments
    if [argument for argument in options if argument != "--console"]:
        write_line("usage: python -m signet_actors.supervisor [--console]")
        return 64
    environ = dict(os.environ)
    any_port = environ.get("SIGNET_PORT") == "0"
    if any_port:
        del environ["SIGNET_PORT"]
    try:
        workspace = workspace_from(environ)
    except ConfigError as error:
        write_line(error.detail)
        return ExitCode.CONFIG

    def load() -> LoadedConfig:
        return load_config(workspace, environ)

    return run_supervisor(TREE, workspace, load, port=0 if any_port else None, console="--console" in options)


if __name__ == "__main__":
    sys.exit(main())
