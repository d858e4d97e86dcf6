"""Plain text: a paragraph is a memory, whatever the name of the file.

Source: docs/transfer.md "Other formats".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signet_actors.cli.importers import markdown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from signet_actors.cli.importers.findings import Findings
    from signet_actors.cli.importers.source import Line


def memories(path: Path, findings: Findings) -> Iterator[Line]:
    """Yield a memory for each paragraph of the file, or of each file in the directory; raise NotThisFormat."""
    return markdown.memories(path, findings, plain=True)
