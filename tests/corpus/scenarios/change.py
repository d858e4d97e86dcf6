"""Change, delete and recover one memory: every status in the specification's tables."""

from __future__ import annotations

from tests.corpus.exchange import Scenario, delete, get, patch, post

UNKNOWN = "/api/memory/01a20000-0000-7000-8000-000000000000"
ONE, TWO, PIN, SCOPED = "/api/memory/<<one>>", "/api/memory/<<two>>", "/api/memory/<<pin>>", "/api/memory/<<scoped>>"

STEPS = (
    post("one", "/api/memory/remember", {"content": "The first fact of the list", "tags": "a"}, save={"one": "id"}),
    post(
        "two",
        "/api/memory/remember",
        {"content": "Another fact of the list", "idempotencyKey": "two"},
        save={"two": "id"},
    ),
    post("a pinned one", "/api/memory/remember", {"content": "critical: a rule that stays"}, save={"pin": "id"}),
    post("a scoped one", "/api/memory/remember", {"content": "A fact in a scope", "scope": "s"}, save={"scoped": "id"}),
    patch("patch without body", ONE),
    patch("patch with a JSON string", ONE, b'"x"'),
    patch("patch without reason", ONE, {"content": "New text"}),
    patch("patch with nothing to change", ONE, {"reason": "r"}),
    patch("patch content", ONE, {"content": "The first fact, corrected", "reason": "Correcting"}),
    patch("patch layout alone", ONE, {"content": "The first fact,\n  corrected", "reason": "Layout"}),
    get("the stored layout", ONE),
    patch("patch to the same", ONE, {"content": "The first fact,\n  corrected", "reason": "Again"}),
    patch("patch type", ONE, {"type": "rule", "reason": "r"}),
    patch("patch tags as string", ONE, {"tags": "x, y", "reason": "r"}),
    patch("patch tags as array", ONE, {"tags": ["updated", "fact"], "reason": "r"}),
    patch("patch tags null", ONE, {"tags": None, "reason": "r"}),
    patch("patch importance", ONE, {"importance": 0.3, "reason": "r"}),
    patch("patch pinned", ONE, {"pinned": True, "reason": "r"}),
    get("a pinned row's importance", ONE),
    patch("patch unpinned", ONE, {"pinned": False, "reason": "r"}),
    patch("patch content blank", ONE, {"content": "  ", "reason": "r"}),
    patch("patch content is a number", ONE, {"content": 5, "reason": "r"}),
    patch("patch importance out of range", ONE, {"importance": 2, "reason": "r"}),
    patch("patch pinned is a word", ONE, {"pinned": "maybe", "reason": "r"}),
    patch("patch type is null", ONE, {"type": None, "reason": "r"}),
    patch("patch reason is a number", ONE, {"importance": 0.5, "reason": 5}),
    patch("patch if_version 0", ONE, {"importance": 0.5, "reason": "r", "if_version": 0}),
    patch("patch if_version 1.5", ONE, {"importance": 0.5, "reason": "r", "if_version": 1.5}),
    patch("patch if_version x", ONE, {"importance": 0.5, "reason": "r", "if_version": "x"}),
    patch("patch with an old version", ONE, {"importance": 0.5, "reason": "r", "if_version": 1}),
    patch("patch an unknown memory", UNKNOWN, {"importance": 0.5, "reason": "r"}),
    patch("patch to another's text", ONE, {"content": "Another fact of the list", "reason": "r"}),
    patch("patch with an unknown field", ONE, {"importance": 0.6, "reason": "r", "importanze": 1}),
    patch("patch by a named actor", ONE, {"importance": 0.7, "reason": "r", "changed_by": "ada"}),
    patch("patch a secret in", ONE, {"content": "password: hunter2-is-not-safe", "reason": "r"}),
    patch("patch a scoped memory", SCOPED, {"importance": 0.5, "reason": "r"}),
    get("the history of a scoped memory", f"{SCOPED}/history"),
    get("the history of all that", f"{ONE}/history"),
    post("recover what is not deleted", f"{ONE}/recover", {"reason": "r"}),
    delete("delete without reason", ONE),
    delete("delete, force is a word", ONE, {"reason": "r", "force": "maybe"}),
    delete("delete an old version", ONE, {"reason": "r", "if_version": 1}),
    delete("delete", ONE, {"reason": "No longer relevant"}),
    delete("delete again", ONE, {"reason": "r"}),
    get("a deleted memory", ONE),
    get("a deleted memory on request", f"{ONE}?include_deleted=true"),
    get("the list of tombstones", "/api/memories?deleted=true"),
    patch("patch a deleted memory", ONE, {"importance": 0.5, "reason": "r"}),
    delete("delete an unknown memory", UNKNOWN, {"reason": "r"}),
    delete("delete by query parameters", f"{TWO}?reason=gone&force=false&if_version=1"),
    delete("delete a pinned memory", PIN, {"reason": "r"}),
    delete(
        "delete a pinned memory by an agent",
        PIN,
        {"reason": "r", "force": True},
        headers={"x-signet-actor-type": "agent"},
    ),
    delete(
        "delete a pinned memory by the pipeline",
        PIN,
        {"reason": "r", "force": True},
        headers={"x-signet-actor-type": "pipeline"},
    ),
    delete("delete a pinned memory with force", PIN, {"reason": "r", "force": True}),
    delete("delete a scoped memory", SCOPED, {"reason": "r"}),
    post("recover without reason", f"{ONE}/recover", {}),
    post("recover without body", f"{ONE}/recover"),
    post("recover an old version", f"{ONE}/recover", {"reason": "r", "if_version": 1}),
    post("recover an unknown memory", f"{UNKNOWN}/recover", {"reason": "r"}),
    post("recover", f"{ONE}/recover", {"reason": "Accidentally deleted"}),
    post("recover by query parameters", f"{TWO}/recover?reason=back"),
    get("a recovered memory keeps its key", TWO),
    post("recover a scoped memory", f"{SCOPED}/recover", {"reason": "r"}),
    get("the whole history", f"{ONE}/history"),
    delete("delete one more", TWO, {"reason": "r"}),
    post("its text again", "/api/memory/remember", {"content": "Another fact of the list"}),
    post("recover where its text is taken", f"{TWO}/recover", {"reason": "r"}),
    patch("patch under a key", ONE, {"importance": 0.1, "reason": "keyed"}, headers={"Idempotency-Key": "p-1"}),
    patch(
        "the same patch under the key", ONE, {"importance": 0.1, "reason": "keyed"}, headers={"Idempotency-Key": "p-1"}
    ),
    patch(
        "another patch under the key", ONE, {"importance": 0.2, "reason": "keyed"}, headers={"Idempotency-Key": "p-1"}
    ),
)

SCENARIOS = (Scenario("change", STEPS),)
