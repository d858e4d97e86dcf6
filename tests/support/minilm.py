"""Whether MiniLM can run on this platform: its runtime has no wheel for every one."""

from __future__ import annotations

import platform
import sys

HAS_RUNTIME = (
    sys.implementation.name == "cpython"
    and sys.version_info < (3, 15)
    and (sys.platform, platform.machine()) in {("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")}
)
WHY_NOT = "onnxruntime has no wheel for this platform"
