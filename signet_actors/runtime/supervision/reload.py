"""Load the configuration again, at SIGHUP.

Source: docs/configuration.md; docs/reliability.md "Supervision policy".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from signet_actors.config.load import LoadedConfig
from signet_actors.config.schema import Config
from signet_actors.errors import ConfigError
from signet_actors.runtime.supervision.listener import with_address

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


def load_again(
    load: Callable[[], Config], current: Config, *, requested: Config, log: FilteringBoundLogger
) -> Config | None:
    """Return the new configuration with the address that is listened on; None, with a log line, if it is not valid.

    ``requested`` is the configuration at the start. Changes that need a restart are logged.
    """
    try:
        loaded = load()
    except ConfigError as error:
        for problem in error.detail.splitlines():
            log.error("configuration_refused", problem=problem)  # noqa: TRY400 - the user's mistake, not ours
        return None
    if (loaded.gateway.host, loaded.gateway.port) != (requested.gateway.host, requested.gateway.port):
        log.warning("listen_address_change_needs_restart")
    if loaded.searcher.processes != current.searcher.processes:
        log.warning("searcher_count_change_needs_restart")
    return with_address(loaded, current.gateway.host, current.gateway.port)


def loader_that_logs(
    load: Callable[[], LoadedConfig], first: LoadedConfig, log: FilteringBoundLogger
) -> Callable[[], Config]:
    """Log the warnings of the ``first`` configuration, such as unknown keys, and return the loader of further ones.

    A warning is logged again only if it was gone in between.
    """
    logged: list[str] = []

    def log_new(loaded: LoadedConfig) -> Config:
        for warning in loaded.warnings:
            if warning not in logged:
                log.warning("configuration_warning", detail=warning)
        logged[:] = loaded.warnings
        return loaded.config

    log_new(first)
    return lambda: log_new(load())
