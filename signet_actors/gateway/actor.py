"""The gateway process: it starts and stops the bus, the shared state and the HTTP server in order.

It accepts connections before it reports Ready, and sends heartbeats from the loop that serves requests. On Drain it
stops accepting, finishes the requests in flight within the grace, and exits with 0. The supervisor owns the listening
socket: while this process is down, new connections wait in its backlog.

Source: docs/reliability.md "Supervision policy", R19, R21; docs/architecture.md "The path of a remember", "The path of
a recall".
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import secrets
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from signet_actors.config.embedding_models import configured_space
from signet_actors.config.keys import changed_keys
from signet_actors.config.schema import Config, EmbeddingConfig, GatewayConfig
from signet_actors.config.workspace import Workspace
from signet_actors.domain.redaction.scan import Redactor
from signet_actors.errors import ConfigError, ExitCode, MissingKey, SignetError
from signet_actors.features.audit.api import CONFIGURATION
from signet_actors.gateway.app import Application
from signet_actors.gateway.auth.signing_key import KEY_BYTES, owner_token, signing_key
from signet_actors.gateway.common_words import CommonWordsCache
from signet_actors.gateway.routes import ROUTES
from signet_actors.gateway.server.connection_limits import ConnectionLimits
from signet_actors.gateway.server.load_shedding import ServerContext
from signet_actors.gateway.server.uvicorn_server import ACCEPTS_PER_ITERATION, InProcessServer, Tls, load_certificate
from signet_actors.gateway.state import GatewayState
from signet_actors.providers.embedded import EmbeddedEmbedder
from signet_actors.providers.embedding import Embedder
from signet_actors.providers.minilm.encoder import AbsentEncoder
from signet_actors.providers.select import make_embedder
from signet_actors.runtime.clock import Clock, new_id
from signet_actors.runtime.logging.configuration import first_line
from signet_actors.runtime.messaging.bus_client import BusClient
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.runtime.processes.descriptor_limit import available
from signet_actors.runtime.processes.idle_trimmer import trim_heap

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

DRAIN_RESERVE_MS = 500
"""The part of the drain grace that is reserved for closing the bus after the last request."""
LAST_FLUSH_S = 0.3
"""The part of it in which what sessions received last, and what they did, is stored."""
TOKEN_READ_S = 2
"""How long the owner's token is waited for before a configuration that needs it takes effect without it."""


def load_embedder(config: EmbeddingConfig) -> Embedder | None:
    """Load the embedder and give the memory that loading used back to the system. Raises ConfigError."""
    embedder = make_embedder(config)
    trim_heap()
    return embedder


def tls_of(gateway: GatewayConfig) -> Tls | None:
    """Return the files with which the daemon ends TLS, None without any. Raises ConfigError if they cannot be used."""
    if not gateway.tls_certificate:
        return None
    tls = Tls(gateway.tls_certificate, gateway.tls_key)
    try:
        load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), tls)
    except OSError as error:  # also SSLError
        raise ConfigError(f"gateway.tlsCertificate and tlsKey cannot be used: {error}") from error
    return tls


def _close(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        each.close()


def connection_limits(gateway: GatewayConfig, max_connections: int) -> ConnectionLimits:
    """Return the configured limits, with at most ``max_connections`` connections."""
    return ConnectionLimits(
        header_bytes=gateway.max_header_bytes,
        header_ms=gateway.header_timeout_ms,
        body_bytes=gateway.max_body_bytes,
        body_ms=gateway.body_timeout_ms,
        write_ms=max(gateway.body_timeout_ms, gateway.request_timeout_ms),
        keep_alive_ms=gateway.keep_alive_ms,
        connections=min(gateway.max_connections, max_connections),
    )


def _needs_owner_token(config: Config) -> bool:
    return config.gateway.require_owner or config.auth.mode != "local"


class Gateway:
    def __init__(
        self,
        boot: ChildContext,
        clock: Clock,
        log: FilteringBoundLogger,
        rng: random.Random,
    ) -> None:
        self.boot = boot
        self.clock = clock
        self.log = log
        self.rng = rng
        self.bus = BusClient(boot, clock, log, rng)
        self.state: GatewayState | None = None
        self.server: InProcessServer | None = None
        self._embedder_task: asyncio.Task[None] | None = None
        self._token_task: asyncio.Task[None] | None = None
        self._stopped_before_ready = False
        self._recorded = boot.config
        self._descriptors = 0
        self._workspace = Workspace(Path(boot.workspace))

    async def run(self) -> int:
        """Serve until a drain, and return the exit code."""
        asyncio.get_running_loop().set_exception_handler(self._on_unhandled_error)
        await self.bus.start()
        try:
            return await self._serve()
        except ConfigError as error:
            return self._exit(ExitCode.CONFIG, error.detail)
        finally:
            await self.bus.close()

    async def _serve(self) -> int:
        self.bus.on_drain = self._drain
        listener, *others = sockets = [socket.socket(fileno=number) for number in self.boot.listen_fds]
        embedding = self.boot.config.embedding
        try:
            embedder = await self._first_embedder(embedding)
        except ConfigError as error:
            _close(sockets)
            return self._exit(ExitCode.PROVIDER_CONFIG, error.detail)
        key = await asyncio.to_thread(self._load_signing_key)  # a sync may take many seconds
        token_secret = await asyncio.to_thread(self._token_secret)
        token = await asyncio.to_thread(self._owner_token, self.bus.config)
        if self._stopped_before_ready:
            _close(sockets)
            return ExitCode.OK
        self._descriptors = available() - ACCEPTS_PER_ITERATION
        # The configuration may have changed since the process started. Nothing is awaited from here to on_reload.
        config = msgspec.structs.replace(self.bus.config, embedding=embedding)
        state = self.state = self._new_state(config, listener.getsockname()[1], embedder, key)
        application = Application(state, ROUTES)
        server_context = state.server_context = ServerContext(
            self._limits(config.gateway), lambda: new_id(self.clock, self.rng), application.has_effect
        )
        server = self.server = InProcessServer(
            application,
            server_context,
            backlog=self.boot.config.gateway.listen_backlog,
            tls=tls_of(self.boot.config.gateway),
            local=others[0] if others else None,
        )
        self.bus.on_reload = self._reload
        self.bus.extra_counters = self._counter_values
        self.bus.idle_trimmer.before_trim = lambda: self._release_idle_memory(state)
        state.owner_token, state.authenticator.secret = token, token_secret
        self._apply_embedding_config(state)
        for session in state.sessions.bypassed():  # before the first hook; the writer may not have had it
            state.ledger.switch_off(session.key, session.agent_id, session.first_ms)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        accepting = asyncio.create_task(server.accepting.wait())
        await asyncio.wait((serving, accepting), return_when=asyncio.FIRST_COMPLETED)
        if accepting.done():
            gc.collect()
            gc.freeze()  # imported objects live as long as the process; the collector need not scan them
            state.synthesis.begin()
            self.bus.ready(f"port {state.port}")
            self.log.info("ready", port=state.port)
        else:
            accepting.cancel()
        await serving
        await state.synthesis.stop()
        state.access_counts.stop()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(
                asyncio.gather(
                    *(state.ledger.stop(), state.searches.stop(), state.checkpoints.stop(), state.audit.stop()),
                    state.usage.stop(),
                    state.telemetry.stop(),
                ),
                LAST_FLUSH_S,
            )
        self.log.info("drained")
        return ExitCode.OK

    async def _first_embedder(self, wanted: EmbeddingConfig) -> Embedder | None:
        """Load the embedder. Raises ConfigError for a setting that can never work, at the first start of the daemon.

        An upgrade may remove the multilingual model, and a service has other variables than the shell. A daemon that
        runs does not end for a model either. Until it can be used, memories are found by their words, or by the vectors
        of the former model.
        """
        self.bus.starting("loading the embedding model")
        try:
            return await asyncio.to_thread(load_embedder, wanted)
        except ConfigError as error:
            if wanted.provider != "multilingual" and not isinstance(error, MissingKey) and self.boot.incarnation == 1:
                raise
            self.log.warning("embedding_unavailable", reason=error.detail)
            model, dimensions = configured_space(wanted) or ("", 0)
            return AbsentEncoder(wanted.provider, model, dimensions, error.detail)

    def _limits(self, gateway: GatewayConfig) -> ConnectionLimits:
        """Return the limits of connections, reduced to the available file descriptors.

        Each served connection needs two: as many connections again may be open in overflow.
        """
        limits = connection_limits(gateway, max(1, self._descriptors // 2))
        if limits.connections < gateway.max_connections:
            self.log.warning(
                "connections_bounded",
                configured=gateway.max_connections,
                most=limits.connections,
                remedy="a higher limit of open files (ulimit -n, LimitNOFILE)",
            )
        return limits

    def _load_signing_key(self) -> bytes:
        """Return the stored key, or a temporary one if none can be stored. Raises ConfigError."""
        try:
            return signing_key(self._workspace.secret_file)
        except OSError as error:
            self.log.warning("confirm_key_not_stored", exc_info=error)
            return secrets.token_bytes(KEY_BYTES)

    def _token_secret(self) -> bytes:
        """Return what signs tokens; empty (no token is accepted) if it cannot be read or stored. Blocks."""
        try:
            return signing_key(self._workspace.token_secret_file)
        except (ConfigError, OSError) as error:
            self.log.warning("token_secret_not_read", reason=str(error))
            return b""

    def _owner_token(self, config: Config) -> str | None:
        """Return the owner token if one is needed. Without it, requests that need it are refused. Blocks."""
        if not _needs_owner_token(config):
            return None
        try:
            return owner_token(self._workspace.owner_token_file)
        except (ConfigError, OSError) as error:
            self.log.warning("owner_token_not_read", reason=str(error))
            return None

    async def _take_owner_token(self, state: GatewayState) -> None:
        """Read the owner token, if the configuration needs one now, and the secret of tokens: they may be others."""
        state.authenticator.secret = await asyncio.to_thread(self._token_secret)
        state.owner_token = await asyncio.to_thread(self._owner_token, state.config)

    def _new_state(self, config: Config, port: int, embedder: Embedder | None, key: bytes) -> GatewayState:
        return GatewayState(
            boot=self.boot,
            config=config,
            bus=self.bus,
            clock=self.clock,
            rng=self.rng,
            log=self.log,
            embedder=embedder,
            redactor=Redactor(),
            signing_key=key,
            common_words=CommonWordsCache(),
            port=port,
            started_at_ms=self.boot.started_at_ms,
            supervisor_silent_ms=self.bus.supervisor_silent_ms,
        )

    def _drain(self, grace_ms: int) -> None:
        """Stop accepting connections, and finish the requests in flight."""
        if self.state is None or self.server is None:
            self._stopped_before_ready = True  # the model is still loading; no connection was accepted
            return
        if self.state.draining:
            return
        self.state.draining = True
        self.state.vector_waits.stop()
        self.state.streams.stopped.set()
        self.log.info("draining", in_flight=self.state.counters.in_flight)
        self.server.stop(max(0, grace_ms - DRAIN_RESERVE_MS))

    def _reload(self, config: Config) -> None:
        """Apply ``config`` to new requests and connections. The old embedder is used until the new one is loaded.

        If the owner's token is needed from now on, it is read before: no request of the owner is refused meanwhile.
        """
        if self.state is None or self.server is None:
            return  # the state will be built from bus.config, which already is ``config``
        if self.state.owner_token is None and _needs_owner_token(config):
            self._token_task = asyncio.create_task(self._reload_with_token(self.state, config))
        else:
            self._apply(config)

    async def _reload_with_token(self, state: GatewayState, config: Config) -> None:
        with contextlib.suppress(TimeoutError):  # a slow disk must not keep a mode that needs no token
            async with asyncio.timeout(TOKEN_READ_S):
                state.owner_token = await asyncio.to_thread(self._owner_token, config)
        if self.bus.config is config:  # else a newer one has been applied, or will be
            self._apply(config)

    def _apply(self, config: Config) -> None:
        assert self.state is not None
        assert self.server is not None
        self._record_change(self.state, config)
        self.server.server_context.limits = self._limits(config.gateway)
        embedding = msgspec.structs.replace(self.state.config.embedding, wait_ms=config.embedding.wait_ms)
        self.state.reconfigure(msgspec.structs.replace(config, embedding=embedding))
        self._token_task = asyncio.create_task(self._take_owner_token(self.state))
        self._apply_embedding_config(self.state)
        self.state.synthesis.check_soon()  # agents may read other memories now
        self.log.info("reloaded")

    def _record_change(self, state: GatewayState, config: Config) -> None:
        """Record which keys differ from the former configuration, never their values."""
        former, self._recorded = self._recorded, config
        names = changed_keys(former, config)
        if names:
            state.audit.add_apart(state.audit.event(CONFIGURATION, "daemon", "done", keys=names))

    def _apply_embedding_config(self, state: GatewayState) -> None:
        """Start loading the embedder of the newest configuration if it is not in use, unless one is being loaded."""
        changing = self._embedder_task is not None and not self._embedder_task.done()
        if not changing:
            self._embedder_task = asyncio.create_task(self._load_new_embedder(state))

    async def _load_new_embedder(self, state: GatewayState) -> None:
        """Switch to the embedder of the newest configuration. On failure the old one stays, and the error is logged."""
        while (wanted := self.bus.config.embedding) != state.config.embedding:
            try:
                embedder = await asyncio.to_thread(load_embedder, wanted)
            except Exception as error:
                self.log.warning("embedding_not_changed", exc_info=error)
                state.embedding_refused = error.detail if isinstance(error, SignetError) else type(error).__name__
                if self.bus.config.embedding == wanted:
                    return
            else:
                previous, state.embedder = state.embedder, embedder
                await state.previous_embedder.replace(previous, embedder)
                state.reconfigure(msgspec.structs.replace(state.config, embedding=wanted))
                self.log.info("embedding_changed", provider=wanted.provider, model=wanted.model)
        state.embedding_refused = ""

    def _release_idle_memory(self, state: GatewayState) -> None:
        """Drop what the embedder can rebuild while the process is idle."""
        if isinstance(state.embedder, EmbeddedEmbedder):
            state.embedder.release_memory()

    def _on_unhandled_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log the type and place of an unhandled error. asyncio itself would log the exception's text and the task."""
        self.log.error("unhandled_error", problem=first_line(context["message"]), exc_info=context.get("exception"))

    def _counter_values(self) -> dict[str, float]:
        return {} if self.state is None else dict(self.state.counter_values())

    def _exit(self, code: int, detail: str) -> int:
        self.log.error("exiting", code=code, detail=detail)
        self.bus.exiting(code, detail)
        return code
