"""Memory that the allocator keeps of what was freed, given back to the machine."""

from __future__ import annotations

import ctypes
import sys


def trim_heap() -> None:
    """Nothing is kept of what loading something large has left behind; a millisecond or two, where the C library can.

    glibc returns only the end of its heap by itself, and a parser's scraps lie everywhere in it.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # absent from musl, which keeps little
        if trim is not None:
            trim(0)
