"""Read the agent's identity from ``IDENTITY.md`` and ``agent.yaml``.

Source: architecture.txt "User Data Layout" (``IDENTITY.md``: structured identity metadata).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

MAX_LINES: Final = 400
MAX_VALUE_CHARS: Final = 500
FIELDS: Final = ("name", "description", "creature", "vibe")
# People write ``- **Name:** Ada``, ``* name: Ada``, ``Name: Ada`` and front matter. Matches one line, bounded.
_LINE: Final = re.compile(r"[ \t]{0,8}(?:[-*] {0,4})?[*_]{0,2}([A-Za-z]{1,20})[*_]{0,2} ?: {0,4}[*_]{0,2} {0,4}(.*)")


def identity_of_text(text: str) -> dict[str, str]:
    """Return the ``FIELDS`` in the lines of ``IDENTITY.md``. The first line of each field counts."""
    found: dict[str, str] = {}
    for line in text.splitlines()[:MAX_LINES]:
        match = _LINE.match(line)
        if match is not None:
            _keep(found, match[1].lower(), match[2])
    return found


def identity_of_document(document: object) -> dict[str, str]:
    """Return the ``FIELDS`` of a parsed ``agent.yaml``: from ``agent``, else ``identity``, else the top level."""
    found: dict[str, str] = {}
    if isinstance(document, Mapping):
        for section in (document.get("agent"), document.get("identity"), document):
            _keep_all(found, section)
    return found


def _keep_all(found: dict[str, str], section: Any) -> None:
    if isinstance(section, Mapping):
        for name in FIELDS:
            value = section.get(name)
            if isinstance(value, str):
                _keep(found, name, value)


def _keep(found: dict[str, str], name: str, value: str) -> None:
    words = " ".join(value[: 4 * MAX_VALUE_CHARS].split()).strip("\"'`*_ ")[:MAX_VALUE_CHARS]
    if name in FIELDS and words:
        found.setdefault(name, words)
