"""The API document, a page that shows it, and the index page. Source: docs/decisions.md 27, 40."""

from __future__ import annotations

from typing import Final

from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NoFields

INDEX: Final = Operation(
    name="api.index",
    summary="Index page",
    tag="page",
    method="GET",
    paths=("/",),
    request=NoFields,
    replies={200: str},
    permission=None,
    media_types=("text/html", "text/plain"),
    surfaces=("http",),
)
OPENAPI: Final = Operation(
    name="api.document",
    summary="This document",
    tag="page",
    method="GET",
    paths=("/api/openapi.json",),
    request=NoFields,
    replies={200: dict},
    permission=None,
)
DOCS: Final = Operation(
    name="api.page",
    summary="This document as a page",
    tag="page",
    method="GET",
    paths=("/api/docs",),
    request=NoFields,
    replies={200: str},
    permission=None,
    media_types=("text/html",),
    surfaces=("http",),
)
DOCS_FILE: Final = Operation(
    name="api.file",
    summary="A file of that page",
    tag="page",
    method="GET",
    paths=("/api/docs/{file}",),
    request=NoFields,
    replies={200: bytes},
    permission=None,
    surfaces=("http",),
)
OPERATIONS: Final = (INDEX, OPENAPI, DOCS, DOCS_FILE)
