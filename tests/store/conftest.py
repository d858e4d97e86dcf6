from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.store_room import StoreRoom, broken_invariants


@pytest.fixture
def room(tmp_path: Path) -> Iterator[StoreRoom]:
    """A store; whatever a test did to it, its invariants hold afterwards."""
    room = StoreRoom(tmp_path)
    yield room
    try:
        assert broken_invariants(room.connection) == []
    finally:
        room.close()
