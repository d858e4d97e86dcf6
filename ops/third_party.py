"""Bring the files of other projects into the checkout: ``python ops/third_party.py [--check | --multilingual]``.

The program is part of the package, since ``signet setup`` uses it too; it needs the standard library only.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from signet_actors.cli.third_party_files import main, refuse_absent

__all__ = ["refuse_absent"]

if __name__ == "__main__":
    main()
