"""No module of the package is part of an import cycle, including imports within functions."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "signet_actors"


def module_of(path: Path, root: Path) -> str:
    name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


def import_graph(root: Path) -> dict[str, set[str]]:
    """The modules that each module under ``root`` imports: also within a function, also under ``TYPE_CHECKING``."""
    sources = {module_of(path, root): path for path in root.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in sources.items():
        found: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{name} imports relatively"
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    found.add(inner if inner in sources else str(node.module))
        graph[name] = (found & set(sources)) - {name}
    return graph


def a_circle(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


def test_no_module_is_in_an_import_cycle() -> None:
    graph = import_graph(PACKAGE)
    assert len(graph) > 300
    assert a_circle(graph) == []


@pytest.mark.parametrize(
    "hidden",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack.b import B\n",
        "def late():\n    from pack import b\n    return b\n",
        "import pack.b\n",
    ],
)
def test_an_import_within_a_function_counts_too(tmp_path: Path, hidden: str) -> None:
    root = tmp_path / "pack"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "a.py").write_text(hidden)
    (root / "b.py").write_text("from pack.a import late\n")
    assert set(a_circle(import_graph(root))) == {"pack.a", "pack.b"}
