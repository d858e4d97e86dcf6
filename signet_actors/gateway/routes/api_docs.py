"""The API document and a page that shows it.

All files come from the installed package. The page works offline and may not load anything from another host.

Source: docs/decisions.md 27, 40; Swagger UI's documentation, "Installation".
"""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path

import signet_actors
from signet_actors.errors import NotFound
from signet_actors.gateway.http.openapi import for_openapi_30, openapi_document
from signet_actors.gateway.http.responses import encode_json
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.operations.api_docs import DOCS, DOCS_FILE, DOCS_FILES, OPENAPI
from signet_actors.operations.registry import OPERATIONS
from signet_actors.operations.request_fields import NoFields

SWAGGER_UI = Path(signet_actors.__file__).with_name("third_party") / "swagger_ui"

OPENAPI_30_FILE = "openapi-3.0.json"
"""The document as OpenAPI 3.0, for the page and for tools that read no newer version."""

START_SCRIPT = b"""window.addEventListener("load", () => {
  SwaggerUIBundle({
    url: "/api/docs/openapi-3.0.json",
    dom_id: "#page",
    deepLinking: true,
    docExpansion: "none",
    onComplete: () => location.hash || document.querySelector(".opblock-tag")?.click(),
    validatorUrl: null,
    presets: [SwaggerUIBundle.presets.apis],
  });
});
"""

DOCS_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Signet Actors API</title>
<link rel="icon" href="/api/docs/favicon-32x32.png">
<link rel="stylesheet" href="/api/docs/swagger-ui.css">
</head>
<body>
<div id="page"></div>
<script src="/api/docs/swagger-ui-bundle.js"></script>
<script src="/api/docs/start.js"></script>
</body>
</html>
"""

PAGE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
}
"""Allow only our own scripts. Inline styles are allowed because swagger-ui sets them on elements."""

HTML = "text/html; charset=utf-8"


async def openapi(call: Call[NoFields]) -> HttpResponse:  # noqa: ARG001 - every caller gets the same document
    """Return the API document (OpenAPI 3.1)."""
    return HttpResponse(await asyncio.to_thread(_openapi_31_document))


async def docs(call: Call[NoFields]) -> HttpResponse:  # noqa: ARG001 - every caller gets the same page
    """Return the page that shows the API document."""
    return HttpResponse(DOCS_PAGE.encode(), headers=PAGE_HEADERS, media_type=HTML)


async def docs_file(call: Call[NoFields]) -> HttpResponse:
    """Return a file that the page loads."""
    name = call.path["file"]
    if name == "start.js":
        return HttpResponse(START_SCRIPT, headers=PAGE_HEADERS, media_type="text/javascript; charset=utf-8")
    if name == OPENAPI_30_FILE:
        return HttpResponse(await asyncio.to_thread(_openapi_30_document))
    media_type = DOCS_FILES.get(name)
    if media_type is None:
        raise NotFound("Not found")
    data = await asyncio.to_thread(_docs_bytes, name)
    return HttpResponse(data, headers={**PAGE_HEADERS, "cache-control": "private, max-age=3600"}, media_type=media_type)


@functools.cache
def _docs_bytes(name: str) -> bytes:
    return (SWAGGER_UI / name).read_bytes()


@functools.cache
def _openapi_31_document() -> bytes:
    """Build the document. On a busy machine this takes a second or more, so it must not run on the event loop."""
    return encode_json(openapi_document(OPERATIONS))


@functools.cache
def _openapi_30_document() -> bytes:
    return encode_json(for_openapi_30(openapi_document(OPERATIONS)))


ROUTES: tuple[Route, ...] = (
    *serve(OPENAPI, openapi),
    *serve(DOCS, docs),
    *serve(DOCS_FILE, docs_file),
)
