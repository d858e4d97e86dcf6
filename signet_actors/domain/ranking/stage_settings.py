"""What a recall says of its stages that use the graph or dampen scores. Messages have it, so it imports no arrays.

Source: knowledge-graph.txt "Walk Algorithm"; memory-pipeline.txt "Post-Fusion Dampening".
"""

from __future__ import annotations

import msgspec


class Traversal(msgspec.Struct, frozen=True):
    """Limits of the walk and of the boost. ``is_primary``: walk; otherwise the graph only raises scores."""

    is_primary: bool = True
    max_aspects: int = 10
    max_attributes: int = 20
    max_neighbours: int = 30
    min_strength: float = 0.3
    timeout_ms: int = 500
    boost: float = 0.15
    boost_timeout_ms: int = 500


class Dampening(msgspec.Struct, frozen=True):
    """Which stages run, and their factors."""

    gravity: bool = True
    hub: bool = True
    resolution: bool = True
    hub_percentile: float = 0.9
    hub_penalty: float = 0.7
    gravity_penalty: float = 0.5
    resolution_boost: float = 1.2
