"""``python -m signet_actors.searcher.projection WORKSPACE AGENT DIMENSIONS``: make a map of an agent's memories.

It is a process of its own because it takes seconds of computing. It reads the vectors from a snapshot and prints
``Projection`` as JSON. The same vectors give the same map.

Source: architecture.txt "UMAP Projection"; McInnes et al. 2018, "UMAP: Uniform Manifold Approximation and Projection".
Departs: without umap-learn (the extra ``projection``) the map shows the first principal components.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any, Final

import signet_actors.searcher  # noqa: F401 - first, because it decides about numpy's threads

# isort: split
import msgspec
import numpy as np
import numpy.typing as npt

from signet_actors.config.workspace import Workspace
from signet_actors.features.projection.api import Points, Projection
from signet_actors.features.projection.reads import vectors
from signet_actors.features.projection.rules import coordinates, edges, neighbour_count, principal_components
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.processes.network_guard import block_network_sockets
from signet_actors.runtime.processes.priority import run_when_idle
from signet_actors.store.sqlite.reader import read_engine

LIMIT_S: Final = 180
_EPOCHS: Final = 200
_SEED: Final = 1
_FEWEST: Final = 10
"""Fewer memories have no neighbourhoods; the map shows their principal components."""
_BLOCK: Final = 1000
Floats = npt.NDArray[np.float32]


def main(arguments: list[str]) -> int:
    """Do the work and print the result."""
    block_network_sockets()
    signal.alarm(LIMIT_S)
    run_when_idle()
    workspace, agent_id, dimensions = arguments
    clock, engine = SystemClock(), read_engine(Workspace(Path(workspace)).database)
    with engine.snapshot(clock, deadline_ns=clock.monotonic_ns() + LIMIT_S * 1_000_000_000) as snapshot:
        found = vectors(snapshot, agent_id)
    engine.close()  # no snapshot stays open while the map is made
    matrix = np.frombuffer(b"".join(vector for _, vector in found.rows), np.float32).reshape(
        -1, max(1, found.dimensions)
    )
    points = map_of([seq for seq, _ in found.rows], matrix, int(dimensions))
    sys.stdout.buffer.write(msgspec.json.encode(Projection(points, found.embedded, found.newest)))
    return 0


def map_of(rows: list[int], matrix: Floats, dimensions: int) -> Points:
    """Return the map of the vectors, shape (n, d), of these rows."""
    umap = _umap() if len(rows) >= _FEWEST else None
    if not rows:
        return Points("pca", [], [], [])
    positions = principal_components(matrix, dimensions) if umap is None else _embed(umap, matrix, dimensions)
    placed = np.round(coordinates(positions), 2)
    return Points("pca" if umap is None else "umap", rows, placed.tolist(), edges(placed))


def _umap() -> Any:
    """Return the library, None where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import umap  # noqa: PLC0415 - an extra, which only this process needs
    except ImportError:
        return None
    return umap


def _embed(umap: Any, matrix: Floats, dimensions: int) -> npt.NDArray[np.float64]:
    count = neighbour_count(len(matrix))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = umap.UMAP(
            n_neighbors=count,
            n_components=dimensions,
            metric="cosine",
            n_epochs=_EPOCHS,
            init=principal_components(matrix, dimensions).astype(np.float32),
            random_state=_SEED,
            precomputed_knn=(*nearest(matrix, count), None),
        )
        positions: npt.NDArray[np.float64] = made.fit_transform(matrix).astype(np.float64)
    return positions


def nearest(matrix: Floats, count: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the ``count`` nearest rows of each row, itself included, and their cosine distances, the nearest first."""
    lengths = np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    unit = matrix / lengths
    found, distances = np.empty((len(unit), count), np.int64), np.empty((len(unit), count), np.float32)
    for start in range(0, len(unit), _BLOCK):
        away = 1.0 - unit[start : start + _BLOCK] @ unit.T
        away[np.arange(len(away)), np.arange(start, start + len(away))] = -1.0  # itself comes first, whatever is equal
        near = np.argpartition(away, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(away, near, 1), axis=1, kind="stable")
        near = np.take_along_axis(near, order, 1)
        found[start : start + _BLOCK] = near
        distances[start : start + _BLOCK] = np.maximum(np.take_along_axis(away, near, 1), 0.0)
    return found, distances


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
