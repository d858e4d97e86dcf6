"""Remember and its aliases: every field, prefix, duplicate and rejection; long texts; secrets; the Codex note."""

from __future__ import annotations

from typing import Any

from tests.corpus.exchange import Scenario, Step, get, post

REMEMBER = "/api/memory/remember"

SENTENCE = "The cache of the build server is emptied every Sunday night by a timer. "
LONG = "".join(f"{number}. {SENTENCE}" for number in range(1, 13))
OTHER_LONG = "".join(
    f"{number}. The index of the search server is built anew each morning. " for number in range(1, 13)
)
CODE = "def add(a, b):\n    if a:\n\treturn a + b\n\n    return b  # trailing  blanks  stay   \n"
TABLE = "| name | port |\n|------|-----:|\n| db   | 5433 |\n\n- one\n  - two\n    three"


def refused(name: str, **fields: Any) -> Step:
    """A remember request that must be rejected."""
    return post(name, REMEMBER, {"content": "Something to keep", **fields})


def typed(word: str, content: str) -> Step:
    """Content whose type is inferred."""
    return post(f"the inferred type: {word}", REMEMBER, {"content": content})


FIELDS = (
    post("content alone", REMEMBER, {"content": "The staging database listens on port 5433"}, save={"first": "id"}),
    get("the stored row of it", "/api/memory/<<first>>"),
    get("its history", "/api/memory/<<first>>/history"),
    post(
        "every field in camelCase",
        REMEMBER,
        {
            "content": "User prefers vim keybindings",
            "type": "preference",
            "who": "claude-code",
            "project": "my-project",
            "importance": 0.9,
            "tags": "preference,editor",
            "pinned": False,
            "sourceType": "manual",
            "sourceId": "ext-1",
            "sourcePath": "/a/source.md",
            "runtimePath": "memory/MEMORY.md",
            "idempotencyKey": "key-1",
            "createdAt": "2024-02-21T10:00:00.000Z",
            "occurredAt": "2024-02-20T15:00:00.000Z",
            "observedAt": "2024-02-21T09:55:00.000Z",
            "sourceCreatedAt": "2024-02-20T15:05:00.000Z",
            "validFrom": "2024-02-20T00:00:00.000Z",
            "validUntil": "2024-03-01T00:00:00.000Z",
            "agentId": "default",
            "visibility": "global",
        },
        save={"full": "id"},
    ),
    get("the stored row of every field", "/api/memory/<<full>>"),
    post(
        "every field in snake_case",
        REMEMBER,
        {
            "content": "User prefers tabs over spaces",
            "source_type": "manual",
            "source_id": "ext-2",
            "source_path": "/a/other.md",
            "runtime_path": "memory/OTHER.md",
            "idempotency_key": "key-2",
            "created_at": "2024-02-22T10:00:00.000Z",
            "occurred_at": "2024-02-20T15:00:00.000Z",
            "observed_at": "2024-02-21T09:55:00.000Z",
            "source_created_at": "2024-02-20T15:05:00.000Z",
            "valid_from": "2024-02-20T00:00:00.000Z",
            "valid_until": "2024-03-01T00:00:00.000Z",
            "agent_id": "default",
        },
        save={"snake": "id"},
    ),
    get("the stored row of snake_case", "/api/memory/<<snake>>"),
    post(
        "provenance in a metadata object",
        REMEMBER,
        {
            "content": "Imported from an older note",
            "metadata": {"source_path": "/b.md", "runtime_path": "r.md", "idempotency_key": "key-3"},
        },
        save={"meta": "id"},
    ),
    get("the stored row with metadata", "/api/memory/<<meta>>"),
    post("tags as an array", REMEMBER, {"content": "Tags may be an array", "tags": ["Alpha", " beta ", "alpha"]}),
    post("tags as a string with blanks", REMEMBER, {"content": "Tags may be a string", "tags": "alpha, beta"}),
    post("who and project", REMEMBER, {"content": "Said by somebody", "who": "ada", "project": "p1"}),
    post("a scope", REMEMBER, {"content": "Only in a scope", "scope": "room-1"}, save={"scoped": "id"}),
    get("the owner reads a scoped row by id", "/api/memory/<<scoped>>"),
    post("pinned", REMEMBER, {"content": "Pinned by the body", "pinned": True}),
    post("pinned with an importance", REMEMBER, {"content": "Pinned and named", "pinned": True, "importance": 0.4}),
    post("pinned as text", REMEMBER, {"content": "Pinned by a word", "pinned": "true"}),
    post("the alias save", "/api/memory/save", {"content": "By the alias save"}),
    post("the alias hook/remember", "/api/hook/remember", {"content": "By the alias hook"}),
    post("a body as text/plain", REMEMBER, b'{"content": "As plain text"}', headers={"Content-Type": "text/plain"}),
    post(
        "named actor",
        REMEMBER,
        {"content": "Kept by a harness"},
        headers={
            "x-signet-actor": "opencode-plugin",
            "x-signet-actor-type": "harness",
            "x-signet-session-id": "s-1",
            "x-signet-request-id": "r-1",
        },
        save={"acted": "id"},
    ),
    get("the history of a named actor", "/api/memory/<<acted>>/history"),
    post(
        "changed_by in the body", REMEMBER, {"content": "Changed by a name", "changed_by": "ada"}, save={"named": "id"}
    ),
    get("the history of changed_by", "/api/memory/<<named>>/history"),
)

PREFIXES = (
    post("critical:", REMEMBER, {"content": "critical: never log access tokens"}),
    post("tags in brackets", REMEMBER, {"content": "[Project, auth]: tokens live for an hour"}),
    post("critical: and tags", REMEMBER, {"content": "critical: [ops]: the pager is on the desk"}),
    post(
        "a body beats the prefix",
        REMEMBER,
        {"content": "critical: [a]: body wins", "pinned": False, "tags": "b", "importance": 0.2},
    ),
    post("a bare critical:", REMEMBER, {"content": "critical:"}),
    post("CRITICAL in capitals", REMEMBER, {"content": "CRITICAL: shouted"}),
    typed("preference", "Ada likes short functions"),
    typed("decision", "We decided to use SQLite"),
    typed("learning", "Learned that the flag is inverted"),
    typed("issue", "There is a bug in the parser"),
    typed("rule", "Always run the tests first"),
    typed("fact", "The office is in Berlin"),
    typed("no word inside another", "The mustard is on the table"),
)

LAYOUT = (
    post("code keeps its layout", REMEMBER, {"content": CODE}, save={"code": "id"}),
    get("the stored code", "/api/memory/<<code>>"),
    post("a table keeps its layout", REMEMBER, {"content": TABLE}, save={"table": "id"}),
    get("the stored table", "/api/memory/<<table>>"),
    post("leading blank lines and trailing blanks go", REMEMBER, {"content": "\n\n  indented\r\nsecond\rthird \t\n\n"}),
    post("the same text in another layout", REMEMBER, {"content": "indented second third"}),
    post("NUL is dropped", REMEMBER, {"content": "before\u0000after"}),
    post("a lone surrogate", REMEMBER, b'{"content": "lone \\ud800 surrogate"}'),
    post("emoji and other scripts", REMEMBER, {"content": "日本語のメモ 🚀 naïve Straße İstanbul"}),
)

DUPLICATES = (
    post("a first copy", REMEMBER, {"content": "Hello World", "tags": "greeting"}, save={"hello": "id"}),
    post("the same text", REMEMBER, {"content": "Hello World"}),
    post("other case and punctuation", REMEMBER, {"content": "hello   world!!!"}),
    post("the same text in another project", REMEMBER, {"content": "Hello World", "project": "other"}),
    post("the same text in another scope", REMEMBER, {"content": "Hello World", "scope": "other"}),
    post("the same private text", REMEMBER, {"content": "Hello World", "visibility": "private"}),
    post("a source id", REMEMBER, {"content": "From a source", "sourceId": "src-1"}),
    post("the same source with another text", REMEMBER, {"content": "From a source, changed", "sourceId": "src-1"}),
    post("an idempotencyKey", REMEMBER, {"content": "Under a key", "idempotencyKey": "k-1"}),
    post("the same key with another text", REMEMBER, {"content": "Under a key, changed", "idempotencyKey": "k-1"}),
    post(
        "a session's transcript", REMEMBER, {"content": "Part one", "sourceId": "session-1", "transcript": "User: hi"}
    ),
    post(
        "the same session, another text",
        REMEMBER,
        {"content": "Part two", "sourceId": "session-1", "transcript": "User: hi"},
    ),
    post("an Idempotency-Key", REMEMBER, {"content": "Once"}, headers={"Idempotency-Key": "header-1"}),
    post("the same Idempotency-Key and body", REMEMBER, {"content": "Once"}, headers={"Idempotency-Key": "header-1"}),
    post(
        "the same Idempotency-Key, another body",
        REMEMBER,
        {"content": "Twice"},
        headers={"Idempotency-Key": "header-1"},
    ),
    post(
        "an Idempotency-Key that is too long", REMEMBER, {"content": "Long key"}, headers={"Idempotency-Key": "k" * 201}
    ),
)

TEXT_EXECUTOR = (
    post(
        "a long text",
        REMEMBER,
        {"content": LONG, "sourceType": "manual", "sourceId": "long-1"},
        save={"chunk": "ids.0", "group": "group_id"},
    ),
    get("its first chunk", "/api/memory/<<chunk>>"),
    post("the same long text and source", REMEMBER, {"content": LONG, "sourceType": "manual", "sourceId": "long-1"}),
    post("the same long text under no key", REMEMBER, {"content": LONG}),
    post("the same long text under a key", REMEMBER, {"content": LONG, "idempotencyKey": "long-key-0"}),
    post("another long text under a key", REMEMBER, {"content": OTHER_LONG, "idempotencyKey": "long-key-1"}),
    post("the same long text and key", REMEMBER, {"content": OTHER_LONG, "idempotencyKey": "long-key-1"}),
    post("the same key, another long text", REMEMBER, {"content": LONG + "More.", "idempotencyKey": "long-key-1"}),
    post("the same long text, another key", REMEMBER, {"content": OTHER_LONG, "idempotencyKey": "long-key-2"}),
    post("a short text under a key", REMEMBER, {"content": "Short under a key", "idempotencyKey": "short-key"}),
    post(
        "a long text under the key of a short one", REMEMBER, {"content": LONG + "End.", "idempotencyKey": "short-key"}
    ),
    post(
        "a short text under the key of a long one", REMEMBER, {"content": "Short again", "idempotencyKey": "long-key-1"}
    ),
    post("501 characters in one piece", REMEMBER, {"content": "a" * 501}),
    post("500 characters", REMEMBER, {"content": "b" * 500}),
)

SECRETS = (
    post(
        "a token in the content",
        REMEMBER,
        {"content": "The token is ghp_16C7e42F292c6912E7710c838347Ae178B4a of the bot"},
    ),
    post("a password in the content", REMEMBER, {"content": "password: hunter2-is-not-safe"}),
    post(
        "a secret in a tag",
        REMEMBER,
        {"content": "Tagged with a secret", "tags": ["ghp_16C7e42F292c6912E7710c838347Ae178B4a"]},
    ),
    post(
        "a secret in the type",
        REMEMBER,
        {"content": "Typed with a secret", "type": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"},
    ),
    post("no secret", REMEMBER, {"content": "The commit is 16c7e42f292c6912e7710c838347ae178b4a1234"}),
)

REFUSALS = (
    post("no body", REMEMBER),
    post("not JSON", REMEMBER, b"{"),
    post("a JSON string", REMEMBER, b'"text"'),
    post("a JSON array", REMEMBER, b"[]"),
    post("no content", REMEMBER, {}),
    post("null content", REMEMBER, {"content": None}),
    post("blank content", REMEMBER, {"content": " \n\t "}),
    post("content is a number", REMEMBER, {"content": 5}),
    post("content is too large", REMEMBER, {"content": "x" * 1_000_001}),
    refused("type is a number", type=5),
    refused("type is no name", type="no name at all!"),
    refused("who is a list", who=["ada"]),
    refused("who is too long", who="w" * 501),
    refused("importance is text", importance="high"),
    refused("importance above 1", importance=1.5),
    refused("importance is negative", importance=-0.1),
    refused("importance is a boolean", importance=True),
    refused("tags are a number", tags=5),
    refused("tags hold a number", tags=["a", 5]),
    refused("too many tags", tags=[f"t{number}" for number in range(101)]),
    refused("pinned is a word", pinned="maybe"),
    refused("pinned is 2", pinned=2),
    refused("sourceId is a number", sourceId=7),
    refused("idempotencyKey is a list", idempotencyKey=[]),
    refused("createdAt is no time", createdAt="yesterday"),
    refused("createdAt is a number", createdAt=5),
    refused("createdAt in the year 9999", createdAt="9999-12-31T23:59:59-12:00"),
    refused("occurredAt is no time", occurredAt="2026-02-30"),
    refused("observedAt is no time", observedAt="x"),
    refused("sourceCreatedAt is no time", sourceCreatedAt="x"),
    refused("validFrom is no time", validFrom="x"),
    refused("validUntil before validFrom", validFrom="2024-03-01T00:00:00Z", validUntil="2024-02-01T00:00:00Z"),
    refused("visibility is unknown", visibility="archived"),
    refused("agentId is a number", agentId=5),
    refused("agentId has a control character", agentId="a\nb"),
    refused("agentId is too long", agentId="a" * 129),
    refused("scope is a number", scope=5),
    refused("metadata is text", metadata="x"),
    refused("transcript is a number", transcript=5),
    refused("changed_by is too long", changed_by="c" * 201),
    refused("an unknown field", tagz="a"),
    refused("structured is a text", structured="Ada"),
    refused("structured is null", structured=None),
    refused("entities is an object", structured={"entities": {"name": "Ada"}}),
    refused(
        "an attribute without content",
        structured={"aspects": [{"entity": "Ada", "aspect": "role", "attributes": [{"kind": "constraint"}]}]},
    ),
    refused("mode", mode="sync"),
)

NOTE = "/api/memory/codex-native-note"
NOTES = (
    post("a note", NOTE, {"content": "Small scoped note to preserve", "title": "Optional title", "tags": "codex,note"}),
    post("a note without title", NOTE, {"content": "Another note"}),
    post("a note under a key", NOTE, {"content": "Keyed note"}, headers={"Idempotency-Key": "n-1"}),
    post("the same note and key", NOTE, {"content": "Keyed note"}, headers={"Idempotency-Key": "n-1"}),
    post("another note under the key", NOTE, {"content": "Another"}, headers={"Idempotency-Key": "n-1"}),
    post("a note with a secret", NOTE, {"content": "password: hunter2-is-not-safe"}),
    post("a note without content", NOTE, {}),
    post("a note of 8001 characters", NOTE, {"content": "n" * 8001}),
    post("a note's title is a number", NOTE, {"content": "n", "title": 5}),
    post("a note's tags are a list", NOTE, {"content": "n", "tags": ["a"]}),
    post("a note's title with a path", NOTE, {"content": "n", "title": "../../../etc/passwd"}),
)

SCENARIOS = (
    Scenario("remember", (*FIELDS, *PREFIXES, *LAYOUT)),
    Scenario("remember-duplicates", (*DUPLICATES, *TEXT_EXECUTOR)),
    Scenario("remember-refusals", (*REFUSALS, *SECRETS, *NOTES, get("what is stored", "/api/memories"))),
)
