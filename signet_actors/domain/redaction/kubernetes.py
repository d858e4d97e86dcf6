"""Find the values of Kubernetes Secret manifests: every value of ``data`` and ``stringData``.

The lines of a document are read once, each by bounded patterns, so scanning takes linear time.

Source: Kubernetes Docs: Secrets, "Constraints on Secret names and data", "Editing a Secret".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from signet_actors.domain.redaction.values import SecretSpan, has_placeholder

MANIFEST_MARK: Final = "kind: secret"
"""In lower case. A text without it has no manifest."""

_KIND = re.compile(r"[ ]{0,16}kind:[ ]{1,4}[\"']?Secret[\"']?[ \t\r]{0,4}")
_SECTION = re.compile(r"([ ]{0,16})(?:data|stringData):[ \t\r]{0,4}")
_PAIR = re.compile(r"([ ]{1,20})[\"']?([A-Za-z0-9._-]{1,253}+)[\"']?:[ ]{1,4}+([\"']?+)(\S.{0,65536}+)")
_BLOCK_MARKS: Final = ("|", ">")
_PUBLIC: Final = (".crt", "certificate-authority-data")
"""Certificates are public."""


def manifest_values(plain: str) -> Iterator[SecretSpan]:
    """Yield the values of each YAML document whose kind is Secret."""
    document: list[tuple[int, str]] = []
    at = 0
    for line in plain.split("\n"):
        if line.startswith("---"):
            yield from _document_values(document)
            document = []
        else:
            document.append((at, line))
        at += len(line) + 1
    yield from _document_values(document)


def _document_values(document: list[tuple[int, str]]) -> Iterator[SecretSpan]:
    if not any(_KIND.fullmatch(line) for _, line in document):
        return
    section: int | None = None  # the indentation of ``data:`` while its pairs are read
    block: int | None = None  # the indentation of a key whose value is the block below it
    for at, line in document:
        indentation = len(line) - len(line.lstrip(" "))
        if not line.strip():
            continue
        if block is not None and indentation > block:
            yield "kubernetes-secret", at + indentation, at + len(line.rstrip())
            continue
        block = None
        if (opened := _SECTION.fullmatch(line)) is not None:
            section = len(opened[1])
        elif section is not None and indentation <= section:
            section = None
        elif section is not None and (pair := _PAIR.fullmatch(line)) is not None and not pair[2].endswith(_PUBLIC):
            start = pair.start(4)
            value = pair[4].rstrip()
            if value.startswith(_BLOCK_MARKS):
                block = indentation
                continue
            if pair[3] and value.endswith(pair[3]):
                value = value[:-1]
            if len(value) >= 4 and not has_placeholder(value[:256]):
                yield "kubernetes-secret", at + start, at + start + len(value)
