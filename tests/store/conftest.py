from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.store_room import StoreRoom, kept_sound


@pytest.fixture
def room(tmp_path: Path) -> Iterator[StoreRoom]:
    """A store; whatever a test did to it, its invariants hold afterwards."""
    with kept_sound(StoreRoom(tmp_path)) as room:
        yield room
