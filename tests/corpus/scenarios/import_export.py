"""Export and import as JSON lines."""

from __future__ import annotations

from tests.corpus.exchange import Scenario, get, post

IMPORT = "/api/memory/import"
NDJSON = {"Content-Type": "application/x-ndjson"}
LINES = b"""{"content": "Imported one", "tags": ["a"], "createdAt": "2024-05-01T10:00:00.000Z"}
{"content": "Imported two", "pinned": true, "who": "ada", "createdAt": "2024-05-02T10:00:00.000Z"}

{"content": "Imported one"}
{"content": ""}
not json
{"content": 5}
{"content": "Far away", "createdAt": "9999-12-31T23:59:59-12:00"}
{"content": "A typo", "tagz": ["a"]}
{"content": "    indented\\n\\tcode", "createdAt": "2024-05-03T10:00:00.000Z"}
"""
STEPS = (
    post("an import", IMPORT, LINES, headers=NDJSON),
    post("the same import", IMPORT, LINES, headers=NDJSON),
    post("an empty import", IMPORT, b"", headers=NDJSON),
    post("an import of one broken line", IMPORT, b"{", headers=NDJSON),
    post("an import under a key", IMPORT, b'{"content": "Keyed line"}\n', headers={**NDJSON, "Idempotency-Key": "i-1"}),
    post(
        "the same import under the key",
        IMPORT,
        b'{"content": "Keyed line"}\n',
        headers={**NDJSON, "Idempotency-Key": "i-1"},
    ),
    post("an import of too many lines", IMPORT, b'{"content": "x"}\n' * 2001, headers=NDJSON),
    get("an export", "/api/memory/export"),
    get("an export's first page", "/api/memory/export?limit=2", save={}),
    get("an export with a wrong cursor", "/api/memory/export?cursor=x"),
    get("an export with abc as limit", "/api/memory/export?limit=abc"),
    get("the list afterwards", "/api/memories"),
)

SCENARIOS = (Scenario("transfer", STEPS),)
