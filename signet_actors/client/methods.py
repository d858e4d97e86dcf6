"""The methods of both clients: each is a function that makes an exchange, bound once for the blocking and the asyncio
client.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from signet_actors.client import daemon_calls, memory_calls
from signet_actors.client.exchange import Caller, Exchange

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Blocking(Protocol):
    """What a method needs of the blocking client."""

    caller: Caller

    def run(self, exchange: Exchange[T], /) -> T:
        """Perform the exchange and return its result."""


class Awaiting(Protocol):
    """What a method needs of the asyncio client."""

    caller: Caller

    async def run(self, exchange: Exchange[T], /) -> T:
        """Perform the exchange and return its result."""


class Method(Protocol[P, T_co]):
    """A method that returns in one client what the same method of the other one returns when it is awaited."""

    @overload
    def __get__(self, client: Blocking, owner: type[Any], /) -> Callable[P, T_co]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type[Any], /) -> Callable[P, Coroutine[Any, Any, T_co]]: ...


def method(function: Callable[Concatenate[Caller, P], Exchange[T]]) -> Method[P, T]:
    """Return the method of a client that performs the exchange of ``function``."""

    @functools.wraps(function)
    def perform(client: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
        return client.run(function(client.caller, *args, **kwargs))

    return cast("Method[P, T]", perform)


class Methods:
    """The operations that programs use most; ``call`` of a client performs every other one."""

    remember = method(memory_calls.remember)
    recall = method(memory_calls.recall)
    search = method(memory_calls.search)
    similar = method(memory_calls.similar)
    get = method(memory_calls.get)
    list = method(memory_calls.list_memories)
    most_used = method(memory_calls.most_used)
    history = method(memory_calls.history)
    facets = method(memory_calls.facets)
    timeline = method(memory_calls.timeline)
    update = method(memory_calls.update)
    update_many = method(memory_calls.update_many)
    forget = method(memory_calls.forget)
    preview_forget = method(memory_calls.preview_forget)
    forget_many = method(memory_calls.forget_many)
    recover = method(memory_calls.recover)
    import_memories = method(memory_calls.import_memories)
    export_page = method(memory_calls.export_page)
    job = method(daemon_calls.job)
    wait_for_job = method(daemon_calls.wait_for_job)
    reviews = method(daemon_calls.reviews)
    approve = method(daemon_calls.approve)
    reject = method(daemon_calls.reject)
    rate = method(daemon_calls.rate)
    session_memories = method(daemon_calls.session_memories)
    sessions = method(daemon_calls.sessions)
    searches = method(daemon_calls.searches)
    prompts = method(daemon_calls.prompts)
    conversation = method(daemon_calls.conversation)
    findings = method(daemon_calls.findings)
    try_prompt = method(daemon_calls.try_prompt)
    status = method(daemon_calls.status)
    health = method(daemon_calls.health)
    ready = method(daemon_calls.ready)
    pipeline_status = method(daemon_calls.pipeline_status)
