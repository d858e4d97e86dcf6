"""The page at ``/``: a shell without data, and the modules, styles and icon that it loads.

All files are read when this module is imported, so that a later installation beside the running daemon is never mixed
in. Their address has a hash of them all, so a browser may keep them; only the shell is asked for again.

Source: docs/decisions.md 69; docs/security.md "The page".
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Final

import msgspec

import signet_actors
from signet_actors.errors import NotFound
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.operations.page import INDEX, PAGE_FILE, PAGE_TYPES
from signet_actors.operations.registry import OPERATIONS
from signet_actors.operations.request_fields import NoFields

PACKAGE: Final = Path(signet_actors.__file__).parent
FOLDER: Final = PACKAGE / "gateway" / "page"
SHELL: Final = "index.html"
PREACT: Final = PACKAGE / "third_party" / "preact" / "preact-htm.js"
MEDIA_TYPES: Final = dict(zip((".js", ".css", ".svg"), PAGE_TYPES, strict=True))

INDEX_TEXT: Final = """Signet Actors {version}: the long-term memory of the AI agents on this machine.

  {base}/                  the page, in a browser
  {base}/api/docs          the API documentation, with a form to try requests
  {base}/api/openapi.json  the API document (OpenAPI 3.1)
  {base}/api/status        processes, counts and jobs
  {base}/health            health
  {base}/metrics           metrics for Prometheus
"""

PAGE_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}
"""Only our own files; no inline script or style, and no text ever becomes markup, not even by a mistake of ours."""
IMMUTABLE: Final = {"cache-control": "private, max-age=31536000, immutable"}


def operations_module() -> bytes:
    """Return the module that names each operation: its method, its path, and 1 if a request may change something."""
    table = {
        operation.name: (operation.method, operation.paths[0], int(operation.has_effect))
        for operation in OPERATIONS
        if operation.tag != "page"
    }
    return b"export const OPERATIONS = " + msgspec.json.encode(table) + b";\n"


def page_files() -> Mapping[str, bytes]:
    """Return the content of each file that the page loads, by its name."""
    names = (path for path in sorted(FOLDER.iterdir()) if path.suffix in MEDIA_TYPES)
    own = {path.name: path.read_bytes() for path in names}
    return {**own, "operations.js": operations_module(), "preact.js": PREACT.read_bytes()}


def version_of(files: Mapping[str, bytes]) -> str:
    """Return what is in the address of the files: 12 hexadecimal digits, other ones if any file differs."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(b"%s\0%d\0%s" % (name.encode(), len(content), content))
    return digest.hexdigest()[:12]


def shell(files: Mapping[str, bytes], version: str) -> bytes:
    """Return the document. It names all modules, so that a browser need not read one to learn of the next."""
    modules = "\n".join(f'<link rel="modulepreload" href="{{files}}/{name}">' for name in files if name.endswith(".js"))
    text = (FOLDER / SHELL).read_text(encoding="utf-8").replace("{modules}", modules)
    return text.replace("{files}", f"/page/{version}").encode()


FILES: Final = page_files()
VERSION: Final = version_of(FILES)
SHELL_BYTES: Final = shell(FILES, VERSION)
ETAG: Final = '"' + hashlib.sha256(SHELL_BYTES).hexdigest()[:16] + '"'


async def index(call: Call[NoFields]) -> HttpResponse:
    """Return the shell to a browser and plain text to any other client."""
    if "text/html" not in call.headers.get("accept", ""):
        text = INDEX_TEXT.format(version=escape(signet_actors.__version__), base=f"http://{call.headers['host']}")
        headers = {**PAGE_HEADERS, "vary": "accept"}
        return HttpResponse(text.encode(), headers=headers, media_type="text/plain; charset=utf-8")
    headers = {**PAGE_HEADERS, "cache-control": "no-cache", "etag": ETAG, "vary": "accept"}
    known = {tag.strip().removeprefix("W/") for tag in call.headers.get("if-none-match", "").split(",")}
    is_known = not known.isdisjoint({ETAG, "*"})
    body = b"" if is_known else SHELL_BYTES
    return HttpResponse(body, status=304 if is_known else 200, headers=headers, media_type="text/html; charset=utf-8")


async def page_file(call: Call[NoFields]) -> HttpResponse:
    """Return a file of the page. Raises NotFound, also for a file of another version."""
    name = call.path["file"]
    content = FILES.get(name) if call.path["version"] == VERSION else None
    if content is None:
        raise NotFound("Not found")
    return HttpResponse(content, headers={**PAGE_HEADERS, **IMMUTABLE}, media_type=MEDIA_TYPES[Path(name).suffix])


ROUTES: tuple[Route, ...] = (*serve(INDEX, index), *serve(PAGE_FILE, page_file))
