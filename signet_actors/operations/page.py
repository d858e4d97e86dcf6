"""The page at ``/`` and the files that it loads."""

from __future__ import annotations

from typing import Final

from signet_actors.operations.operation import BY_ALL, Operation
from signet_actors.operations.problem import Problem
from signet_actors.operations.request_fields import NoFields

PAGE_TYPES: Final = ("text/javascript; charset=utf-8", "text/css; charset=utf-8", "image/svg+xml")
INDEX: Final[Operation[NoFields, str]] = Operation(
    name="page.index",
    summary="The page for a browser; for other programs, where to begin",
    tag="page",
    paths=("/",),
    replies={200: str, 304: None},
    permission=None,
    public=True,
    scoped_by=BY_ALL,
    media_types=("text/html", "text/plain"),
    reply_headers={"ETag": "Of the page; a request with this `If-None-Match` gets a 304"},
    surfaces=("http",),
)
PAGE_FILE: Final[Operation[NoFields, bytes]] = Operation(
    name="page.file",
    summary="A file of the page",
    tag="page",
    paths=("/page/{version}/{file}",),
    example={"version": "0123456789ab", "file": "app.js"},
    replies={200: bytes, 404: Problem},
    permission=None,
    public=True,
    scoped_by=BY_ALL,
    media_types=PAGE_TYPES,
    surfaces=("http",),
    description="The version is part of the address, so that a browser keeps the file; another version is a 404.",
)
OPERATIONS: Final = (INDEX, PAGE_FILE)
