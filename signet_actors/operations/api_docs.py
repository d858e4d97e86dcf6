"""The API document and a page that shows it. Source: docs/decisions.md 27, 40."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from signet_actors.operations.operation import BY_ALL, Operation
from signet_actors.operations.request_fields import NoFields

OPENAPI: Final[Operation[NoFields, dict[str, Any]]] = Operation(
    name="api.document",
    summary="This document",
    tag="page",
    paths=("/api/openapi.json",),
    replies={200: dict[str, Any]},
    permission=None,
    scoped_by=BY_ALL,
)
DOCS: Final[Operation[NoFields, str]] = Operation(
    name="api.page",
    summary="This document as a page",
    tag="page",
    paths=("/api/docs",),
    replies={200: str},
    permission=None,
    scoped_by=BY_ALL,
    media_types=("text/html",),
    surfaces=("http",),
)
DOCS_FILES: Final[Mapping[str, str]] = {
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "favicon-32x32.png": "image/png",
}
"""The files that may be served, by name, with their media types. Other names are never looked up on disk."""
DOCS_FILE: Final[Operation[NoFields, bytes]] = Operation(
    name="api.file",
    summary="A file of that page",
    tag="page",
    paths=("/api/docs/{file}",),
    example={"file": "swagger-ui.css"},
    media_types=(*DOCS_FILES.values(), "application/json"),
    replies={200: bytes},
    permission=None,
    scoped_by=BY_ALL,
    surfaces=("http",),
)
OPERATIONS: Final = (OPENAPI, DOCS, DOCS_FILE)
