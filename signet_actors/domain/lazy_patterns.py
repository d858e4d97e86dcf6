"""Regular expressions that are compiled at their first use, or in the fork server after a child was replaced.

Compiling those of the redaction takes 0.15 s of CPU time, which each start of the daemon would wait for.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

_WAITING: Final[list[_LazyPattern]] = []


class _LazyPattern:
    """Stands for a ``re.Pattern``; its attributes are those of the pattern."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags
        _WAITING.append(self)

    def __getattr__(self, name: str) -> Any:
        """Return the compiled pattern or an attribute of it; called once for each name."""
        value = re.compile(self.pattern, self._flags) if name == "compiled" else getattr(self.compiled, name)
        setattr(self, name, value)
        return value


def compile_later(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what ``re.compile`` does, but compile it when it is first used."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


def compile_next() -> bool:
    """Compile one more of the patterns, which takes some milliseconds at most; return False if none was left."""
    while _WAITING:
        pattern = _WAITING.pop(0)
        if "compiled" not in vars(pattern):
            return bool(pattern.compiled)
    return False
