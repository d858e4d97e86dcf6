"""Two agents use everything that the daemon serves at random, beside each other: neither is told a word of the other.

``python -m tests.hostile.two_tenants [COUNT [SEED]]`` makes 20,000 requests.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.support.scoped_requests import Sent, as_tool_call, every, naming, told
from tests.support.tenants import AGENTS, Connection, Scope, Tenants, tenants

DEFAULT_COUNT = 20_000
ROLES = ("operator", "agent", "agent", "readonly")


@dataclass
class Run:
    """The figures, and the replies that had a word of the other agent."""

    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    own_words: int = 0
    leaks: list[tuple[str, Sent, set[str]]] = field(default_factory=list)
    failures: list[tuple[Sent, bytes]] = field(default_factory=list)


def run(store: Tenants, count: int, seed: int) -> Run:
    """Make ``count`` requests in an order that ``seed`` settles."""
    rng, done = random.Random(seed), Run()
    paths = list(every())
    ids = {name: [(kind, known) for kind, known, canary in store.ids if canary.agent == name] for name in AGENTS[:2]}
    callers = {name: [store.token(role, Scope(agent=name)) for role in ROLES] for name in AGENTS[:2]}
    said: dict[str, set[str]] = {name: set() for name in AGENTS[:2]}
    words = {name: re.compile(rf"\b{name}q[a-z]+") for name in AGENTS[:2]}
    while done.requests < count:
        name = rng.choice(AGENTS[:2])
        other = next(each for each in AGENTS[:2] if each != name)
        operation, path = rng.choice(paths)
        if rng.random() < 0.5:
            kind, known = rng.choice(ids[rng.choice(AGENTS[:2])])
            choices = list(naming(operation, path, known, kind))
        else:
            choices = list(told(operation, path))
        if not choices:
            continue
        request = rng.choice(choices)
        if rng.random() < 0.3:
            request = as_tool_call(operation, request) or request
        request = with_own_word(request, f"{name}q{''.join(rng.choices('abcdefghijklmnop', k=6))}")
        said[name] |= set(words[other].findall(f"{request.target} {request.body} {request.headers}"))
        answer = rng.choice(callers[name]).request(request.method, request.target, request.body, request.headers)
        done.requests += 1
        done.statuses[answer.status] += 1
        done.operations[operation.name] += 1
        text = f"{answer.headers} {answer.raw.decode('utf-8', 'replace')}".lower()
        done.own_words += len(words[name].findall(text))
        if leaked := set(words[other].findall(text)) - said[name]:
            done.leaks.append((name, request, leaked))
        if answer.status == 500:
            done.failures.append((request, answer.raw[:500]))
    for each in (caller for of_name in callers.values() for caller in of_name):
        assert isinstance(each, Connection)
        each.close()
    return done


def with_own_word(request: Sent, word: str) -> Sent:
    """Return the request with a word of the caller in each text that it stores."""
    if not isinstance(request.body, dict):
        return request
    names = ("content", "transcript", "context", "summary", "userPrompt")
    body = {name: f"{value} ({word})" if name in names else value for name, value in request.body.items()}
    return request._replace(body=body)


def main() -> int:
    """Print the figures; return 1 if anything was told that should not be."""
    count, seed = (*map(int, sys.argv[1:]), *(DEFAULT_COUNT, 1)[len(sys.argv) - 1 :])
    started = time.monotonic()
    with tenants() as store:
        done = run(store, count, seed)
    took = time.monotonic() - started
    print(f"seed {seed}: {done.requests} requests of {len(done.operations)} operations in {took:.0f} s")
    print(f"statuses: {dict(sorted(done.statuses.items()))}; words of the caller itself in replies: {done.own_words}")
    print(f"replies with a word of the other: {len(done.leaks)}; failures: {len(done.failures)}")
    for each in (*done.leaks[:20], *done.failures[:20]):
        print(each)
    return 1 if done.leaks or done.failures else 0


if __name__ == "__main__":
    sys.exit(main())
