"""Set one key in the text of a YAML file; everything else, comments and layout included, stays as it is.

Source: docs/cli.md "Maintenance"; YAML 1.2 "Node Styles".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml

from signet_actors.config.yaml_file import UnreadableYaml, parse_yaml


def with_value(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with ``value`` at the keys of ``path``. Raises ``UnreadableYaml``.

    A key that is missing is inserted before the first key of its section; its spelling must be that of the file.
    """
    if parse_yaml(text.encode()) is None:
        return f"{text}{_newline(text)}{_nested(path, value, 0)}\n"
    node: yaml.Node | None = yaml.compose(text, yaml.SafeLoader)
    assert node is not None, "the document is not empty"
    for depth, name in enumerate(path):
        if not isinstance(node, yaml.MappingNode):
            inside = "" if depth == 0 else f" in {'.'.join(path[:depth])}"
            if depth and isinstance(node, yaml.ScalarNode) and node.value in {"", "~", "null"}:
                return _replaced(text, node, _object(path[depth:], value))
            raise UnreadableYaml([f"there is no mapping of keys{inside}"])
        if not node.value:
            return _replaced(text, node, _object(path[depth:], value))
        found = next((item for key, item in node.value if key.value == name), None)
        if found is None:
            return _inserted(text, node, path[depth:], value)
        node = found
    assert node is not None, "each step found a node"
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        raise UnreadableYaml([f"the value of {'.'.join(path)} takes several lines; edit the file itself"])
    return _replaced(text, node, _json(value))


def _inserted(text: str, section: yaml.MappingNode, path: Sequence[str], value: Any) -> str:
    first = section.value[0][0].start_mark
    if section.flow_style:
        added = f"{path[0]}: {_object(path[1:], value)}, "
    else:
        added = f"{_nested(path, value, first.column)}\n{' ' * first.column}"
    return text[: first.index] + added + text[first.index :]


def _replaced(text: str, node: yaml.Node, new: str) -> str:
    start, end = node.start_mark.index, node.end_mark.index
    old = text[start:end]
    space = " " if text[:start].endswith(":") else ""
    return text[:start] + space + new + ("\n" if old.endswith("\n") else "") + text[end:]


def _nested(path: Sequence[str], value: Any, column: int) -> str:
    """Return the keys and the value in block style; the first line is indented already."""
    name, *rest = path
    if not rest:
        return f"{name}: {_json(value)}"
    return f"{name}:\n{' ' * (column + 2)}{_nested(rest, value, column + 2)}"


def _object(path: Sequence[str], value: Any) -> str:
    for name in reversed(path):
        value = {name: value}
    return _json(value)


def _json(value: Any) -> str:
    """Return the value as JSON, which is valid YAML."""
    return json.dumps(value, ensure_ascii=False)


def _newline(text: str) -> str:
    return "" if not text or text.endswith("\n") else "\n"
