"""Requests rejected before any handler: paths, methods, hosts, origins, proxies, media types, sizes."""

from __future__ import annotations

from tests.corpus.exchange import Scenario, Step, delete, get, patch, post

CONFIG = """
gateway:
  bodyTimeoutMs: 1000
memory:
  pipelineV2:
    enabled: false
    embeddingTracker: {enabled: false}
"""
REMEMBER = "/api/memory/remember"
BODY = b'{"content": "from a browser"}'
JSON = {"Content-Type": "application/json"}

STEPS = (
    get("an unknown path", "/api/nothing"),
    get("a path with dots", "/api/memory/..%2f..%2fetc%2fpasswd"),
    get("a path with NUL", "/api/memory/%00"),
    get("a path with a broken escape", "/api/memory/%c0%ae"),
    get("a path with a line end", "/api/memory/%0d%0aX-Injected"),
    get("a path that is too long", "/api/memory/" + "a" * 9000),
    get("an id of 2000 characters", "/api/memory/" + "a" * 2000),
    get("a GET where there is only POST", REMEMBER),
    delete("a DELETE where there is only POST", "/api/memory/recall"),
    Step("a PUT", "PUT", "/api/memories", {}),
    Step("an OPTIONS", "OPTIONS", "/api/memories"),
    Step("a HEAD of a known path", "HEAD", "/health/live"),
    Step("a HEAD of an unknown path", "HEAD", "/nothing"),
    Step("an unknown method", "BREW", "/api/memories"),
    get("a foreign host", "/api/memories", headers={"Host": "evil.example"}),
    get("0.0.0.0 as host", "/api/memories", headers={"Host": "0.0.0.0"}),
    get("a host with another port", "/api/memories", headers={"Host": "localhost:1"}),
    get("a host that is none", "/api/memories", headers={"Host": "local host"}),
    get("a nip.io host", "/api/memories", headers={"Host": "127.0.0.1.nip.io"}),
    get("localhost as host", "/health/live", headers={"Host": "localhost"}),
    get("[::1] as host", "/health/live", headers={"Host": "[::1]"}),
    post("a foreign origin", REMEMBER, BODY, headers={**JSON, "Origin": "http://evil.example"}),
    post("a null origin", REMEMBER, BODY, headers={**JSON, "Origin": "null"}),
    get("a cross-site image", "/api/memories", headers={"Sec-Fetch-Site": "cross-site"}),
    get("the address bar", "/health/live", headers={"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}),
    post("a browser's form", REMEMBER, BODY, headers={"Content-Type": "text/plain", "Sec-Fetch-Site": "same-origin"}),
    post("a browser's JSON of the same origin", REMEMBER, BODY, headers={**JSON, "Sec-Fetch-Site": "same-origin"}),
    post("Node's fetch", REMEMBER, BODY, headers={"Content-Type": "text/plain", "Sec-Fetch-Mode": "cors"}),
    get("X-Forwarded-For", "/api/memories", headers={"X-Forwarded-For": "127.0.0.1"}),
    get("Forwarded", "/api/memories", headers={"Forwarded": "for=127.0.0.1"}),
    get("Via", "/api/memories", headers={"Via": "1.1 proxy"}),
    get("X-Real-IP", "/api/memories", headers={"X-Real-IP": "127.0.0.1"}),
    post("a compressed body", REMEMBER, BODY, headers={**JSON, "Content-Encoding": "gzip"}),
    post("a body that is too large", REMEMBER, b"x" * (9 << 20), headers=JSON),
    post("a body that never ends", REMEMBER, b"{", headers={**JSON, "Content-Length": "100"}),
    post("deep JSON", REMEMBER, b'{"content": ' + b"[" * 20_000 + b"]" * 20_000 + b"}"),
    post("a number of 5,000 digits", REMEMBER, b'{"content": "x", "importance": ' + b"9" * 5000 + b"}"),
    post("invalid UTF-8", REMEMBER, b'{"content": "\xff"}'),
    post("a doubled name in JSON", REMEMBER, b'{"content": "first", "content": "second"}'),
    get("too many query parameters", "/api/memories?" + "&".join(f"p{number}=1" for number in range(100))),
    post("an actor that is too long", REMEMBER, {"content": "x"}, headers={"x-signet-actor": "a" * 201}),
    post(
        "an unknown actor type",
        REMEMBER,
        {"content": "Of an unknown actor type"},
        headers={"x-signet-actor-type": "wizard"},
    ),
    patch("a trailing slash", "/api/memories/", {}),
    get("what was stored", "/api/memories"),
)

SCENARIOS = (Scenario("edge", STEPS, config=CONFIG),)
