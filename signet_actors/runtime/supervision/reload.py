"""Load the configuration again, when its file has changed and at SIGHUP.

Source: docs/configuration.md; docs/decisions.md 64; docs/reliability.md "Supervision policy".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from signet_actors.config.load import LoadedConfig
from signet_actors.config.schema import Config
from signet_actors.config.workspace import CONFIG_FILE_NAME
from signet_actors.errors import ConfigError
from signet_actors.runtime.supervision.children import Children
from signet_actors.runtime.supervision.listener import with_address

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


SETTLE_MS: Final = 500
"""A change is read when the file has stayed the same for this long, so that no half-written file is."""
_POLL_MS: Final = 250
_MS: Final = 1_000_000


class Reloader:
    """Loads the configuration again when its file changes; ``requested`` is the one at the start."""

    def __init__(
        self,
        load: Callable[[], Config],
        requested: Config,
        workspace: Path,
        children: Children,
        log: FilteringBoundLogger,
    ) -> None:
        self._load = load
        self._requested = requested
        self._path = workspace / CONFIG_FILE_NAME
        self._children = children
        self._log = log
        self._known = self._seen = self._file_state()
        self._next_ns = self._since_ns = 0

    def file_changed(self, now_ns: int) -> bool:
        """Return True once for each new state of the file, after it has lasted ``SETTLE_MS``."""
        if now_ns < self._next_ns:
            return False
        self._next_ns = now_ns + _POLL_MS * _MS
        state = self._file_state()
        if state != self._seen:
            self._seen, self._since_ns = state, now_ns
        if state == self._known or now_ns - self._since_ns < SETTLE_MS * _MS:
            return False
        self._known = state
        return True

    def load_again(self, current: Config) -> Config | None:
        """Return the new configuration with the present address; None, with a warning, if it is not valid."""
        try:
            loaded = self._load()
        except ConfigError as error:
            problems = error.detail.splitlines()
            for problem in problems:
                self._log.error("configuration_refused", problem=problem)
            self._children.configuration_warning = f"the former configuration stays in effect: {problems[0]}"
            return None
        self._children.configuration_warning = ""
        address = loaded.gateway.host, loaded.gateway.port
        if address != (self._requested.gateway.host, self._requested.gateway.port):
            self._log.warning("listen_address_change_needs_restart")
        if loaded.searcher.processes != current.searcher.processes:
            self._log.warning("searcher_count_change_needs_restart")
        return with_address(loaded, current.gateway.host, current.gateway.port)

    def _file_state(self) -> tuple[int, ...] | None:
        """Return what differs after any change, also where an editor replaces the file."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def loader_that_logs(
    load: Callable[[], LoadedConfig], first: LoadedConfig, log: FilteringBoundLogger
) -> Callable[[], Config]:
    """Log the warnings of the ``first`` configuration, such as unknown keys, and return the loader of further ones.

    A warning is logged again only if it was gone in between. The loader raises ConfigError for a file that was removed
    or emptied, perhaps by mistake, and for a value that a start replaces by its default: the default may delete or
    permit more than the value in effect.
    """
    logged: list[str] = []
    had_values = not first.is_empty

    def log_new(loaded: LoadedConfig) -> Config:
        for warning in loaded.warnings:
            if warning not in logged:
                log.warning("configuration_warning", detail=warning)
        logged[:] = loaded.warnings
        return loaded.config

    def load_again() -> Config:
        nonlocal had_values
        loaded = load()
        if loaded.is_empty and had_values:
            lost = "is missing" if loaded.source is None else "has no values any more"
            raise ConfigError(f"{CONFIG_FILE_NAME}: {lost}; a restart uses the defaults")
        if loaded.fallbacks:
            raise ConfigError("\n".join(loaded.fallbacks))
        had_values = not loaded.is_empty
        return log_new(loaded)

    log_new(first)
    return load_again
