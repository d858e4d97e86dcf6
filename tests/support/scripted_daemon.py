"""A fake daemon with real sockets that gives scripted responses and records the requests."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class Asked:
    """One request as received. ``body`` is None if there was none, and bytes if it was not JSON."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Scripted:
    """One response. ``drop`` closes the connection without one; ``hang`` keeps it open until the daemon closes."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    drop: bool = False
    hang: bool = False


def _body(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return raw


class ScriptedDaemon:
    """Responds by method and path. The last of several responses repeats. A path without a script is a 404."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._answers: dict[tuple[str, str], list[Scripted]] = {}
        self._closing = threading.Event()
        daemon = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: object) -> None:
                pass

            def answer(self) -> None:
                parts = urlsplit(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                raw = self.rfile.read(length) if length else b""
                daemon.asked.append(
                    Asked(
                        self.command,
                        parts.path,
                        dict(parse_qsl(parts.query)),
                        {name.lower(): value for name, value in self.headers.items()},
                        _body(raw),
                    )
                )
                scripted = daemon._next(self.command, parts.path)
                if scripted.hang:
                    daemon._closing.wait(30)
                if scripted.drop or scripted.hang:
                    self.close_connection = True
                    return
                body = scripted.body if isinstance(scripted.body, bytes) else json.dumps(scripted.body).encode()
                self.send_response(scripted.status)
                for name, value in {**scripted.headers, **scripted.media_type}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - the server's names

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def on(self, method: str, path: str, body: Any = None, *, status: int = 200, **more: Any) -> None:
        """Script the next response to this request."""
        self._answers.setdefault((method, path), []).append(Scripted(status, body, **more))

    def script(self, method: str, path: str, *bodies: Any) -> None:
        """Replace the responses to this request by these, each a 200."""
        self._answers[method, path] = [Scripted(200, body) for body in bodies]

    def _next(self, method: str, path: str) -> Scripted:
        answers = self._answers.get((method, path))
        if not answers:
            return Scripted(404, {"error": "not found", "code": "not_found"})
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def close(self) -> None:
        """Free the port and join the thread."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
