"""``python -m signet_actors.config`` prints the generated part of ``docs/configuration.md``."""

from __future__ import annotations

import sys

from signet_actors.config.reference import reference

if __name__ == "__main__":
    sys.stdout.write(reference() + "\n")
