"""What the gateway serves of the page: to whom, under which policy, and for how long."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from signet_actors.gateway.routes import ROUTES
from signet_actors.gateway.routes.page import FILES, PAGE_HEADERS, VERSION, version_of
from signet_actors.operations.registry import OPERATIONS
from tests.support.edge import Answered, RunningEdge

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Site": "none"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEdge]:
    with RunningEdge(ROUTES, tmp_path_factory.mktemp("workspace")) as running:
        yield running


def shell(edge: RunningEdge, method: str = "GET", **headers: str) -> Answered:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return edge.request(method, "/", headers={**BROWSER, **sent})


def test_a_browser_gets_the_shell_under_the_policy(edge: RunningEdge) -> None:
    answer = shell(edge)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    assert (answer.status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert headers["content-security-policy"] == POLICY
    assert headers["cache-control"] == "no-cache"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["vary"] == "accept"


def test_the_shell_has_no_script_of_its_own_and_loads_only_files_of_this_version(edge: RunningEdge) -> None:
    text = shell(edge).raw.decode()
    assert re.search(r"<script(?![^>]*\bsrc=)", text) is None
    addresses = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert len(addresses) >= 4
    for address in addresses:
        assert address.startswith(f"/page/{VERSION}/")
        assert edge.request("GET", address).status == 200


def test_a_program_gets_plain_text_with_addresses(edge: RunningEdge) -> None:
    answer = edge.request("GET", "/", headers={"Accept": "*/*"})
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert f"http://127.0.0.1:{edge.port}/api/docs" in answer.raw.decode()


def test_a_browser_that_has_the_shell_is_told_so_without_a_body(edge: RunningEdge) -> None:
    tag = shell(edge).headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = shell(edge, If_None_Match=known)
        assert (again.status, again.raw, again.headers["etag"]) == (304, b"", tag)
        assert "content-length" not in {name.lower() for name in again.headers}
    assert shell(edge, If_None_Match='"other"').status == 200


def test_the_shell_names_all_modules_so_that_none_is_found_late(edge: RunningEdge) -> None:
    named = set(re.findall(r'<link rel="modulepreload" href="([^"]+)">', shell(edge).raw.decode()))
    assert named == {f"/page/{VERSION}/{name}" for name in FILES if name.endswith(".js")}


def test_a_head_has_the_headers_and_no_body(edge: RunningEdge) -> None:
    got, head = shell(edge), shell(edge, "HEAD")
    assert (head.status, head.raw) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.raw))
    file = edge.request("HEAD", f"/page/{VERSION}/app.js")
    assert (file.status, file.headers["content-length"]) == (200, str(len(FILES["app.js"])))


def test_every_file_is_kept_by_the_browser_and_has_its_own_type(edge: RunningEdge) -> None:
    kinds = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
    assert {"app.js", "api.js", "page.css", "icon.svg", "preact.js", "operations.js"} <= set(FILES)
    for name, content in FILES.items():
        answer = edge.request("GET", f"/page/{VERSION}/{name}")
        assert (answer.status, answer.raw) == (200, content), name
        assert answer.headers["content-type"] == kinds["." + name.rpartition(".")[2]]
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
        assert answer.headers["content-security-policy"] == PAGE_HEADERS["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/page/0123456789ab/app.js",
        f"/page/{VERSION}/index.html",
        f"/page/{VERSION}/other.js",
        f"/page/{VERSION}/%2e%2e",
        f"/page/{VERSION}",
        "/page/app.js",
    ],
)
def test_nothing_else_is_served(edge: RunningEdge, path: str) -> None:
    assert edge.request("GET", path).status in {400, 404}


def test_another_content_has_another_address() -> None:
    assert version_of(FILES) == VERSION
    assert version_of({**FILES, "app.js": FILES["app.js"] + b"\n"}) != VERSION
    assert version_of({"a": b"bc"}) != version_of({"ab": b"c"})


def test_the_table_of_operations_is_that_of_the_declarations() -> None:
    table = json.loads(FILES["operations.js"].removeprefix(b"export const OPERATIONS = ").removesuffix(b";\n"))
    assert table["memories.patch"] == ["PATCH", "/api/memory/{id}", 1]
    assert table["memories.recall"] == ["POST", "/api/memory/recall", 0]
    assert set(table) == {operation.name for operation in OPERATIONS if operation.tag != "page"}


def test_a_link_of_another_site_opens_the_shell_and_no_data(edge: RunningEdge) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    accepted = {"Accept": "text/html"}
    assert edge.request("GET", "/", headers={**accepted, **link}).status == 200
    for path in ("/api/memories", "/api/status", "/api/docs", f"/page/{VERSION}/app.js", "/%2F", "//"):
        assert edge.request("GET", path, headers={**accepted, **link}).status == 403, path
    assert edge.request("GET", "/", headers={**accepted, **link, "Sec-Fetch-Dest": "iframe"}).status == 403
