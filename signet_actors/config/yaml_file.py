"""Read a YAML file into plain values within limits, or report every problem.

Only safe types are constructed. File size and nesting depth are limited. A repeated key is a problem, not a silent
overwrite. Merge keys are rejected because they can multiply data. An alias is shared, never copied; a program that
writes the document out copies it, so what aliases stand for is limited, too.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

MAX_FILE_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 32
MAX_ALIASED_CHARS: Final = 64 * 1024
"""How much longer a document may become when each alias is replaced by what it stands for."""

if TYPE_CHECKING:
    _Loader = yaml.SafeLoader
else:
    _Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml if installed, about ten times as fast

_MAX_SHOWN_CHARS: Final = 60
_MAX_PROBLEMS: Final = 50
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"


class UnreadableYaml(Exception):
    """The file cannot be read as YAML. ``problems`` lists the reasons, with line and column if known."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def read_yaml(path: Path) -> Any:
    """Return the single document in the file, None if it is missing or empty. Raises ``UnreadableYaml``."""
    data = _read_bounded(path)
    return None if data is None else parse_yaml(data)


def parse_yaml(data: bytes) -> Any:
    """Return the single document in ``data``, or None if it is empty. Raises ``UnreadableYaml``."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableYaml([f"line {line}: is not UTF-8 text"]) from None
    unreadable = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if unreadable is not None:
        line = text.count("\n", 0, unreadable.start()) + 1
        raise UnreadableYaml([f"line {line}: the character U+{ord(unreadable[0]):04X} is not allowed"])
    loader: _BoundedLoader | None = None
    try:
        _check_size(text)
        loader = _BoundedLoader(text)
        document = loader.get_single_data()
    except yaml.reader.ReaderError as error:
        raise UnreadableYaml([f"is not readable text: {error.reason}"]) from None
    except yaml.MarkedYAMLError as error:
        raise UnreadableYaml([_located(error)]) from None
    finally:
        if loader is not None:
            loader.dispose()
    if loader.repeated:
        beyond = len(loader.repeated) - _MAX_PROBLEMS
        more = [f"{beyond} more keys are given again"] if beyond > 0 else []
        raise UnreadableYaml(loader.repeated[:_MAX_PROBLEMS] + more)
    return document


def _read_bounded(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        if path.is_symlink():
            raise UnreadableYaml(["is a link to a file that does not exist"]) from None
        return None
    except OSError as error:
        raise UnreadableYaml([f"cannot be opened: {error.strerror}"]) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableYaml(["is not a regular file"])
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UnreadableYaml([f"cannot be read: {error.strerror}"]) from None
    finally:
        os.close(descriptor)
    if len(data) > MAX_FILE_BYTES:
        raise UnreadableYaml([f"is larger than {MAX_FILE_BYTES} bytes"])
    return data


def _located(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    words = [part for part in (error.context, error.problem) if part]
    if error.problem == "found unhashable key":
        words = ["a list or a mapping is used as a key; a text with braces or brackets needs quotes"]
    sentence = ", ".join(words) or "is not valid YAML"
    return sentence if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: {sentence}"


def _check_size(text: str) -> None:
    """Check the nesting depth and what aliases stand for by counting events, before anything recurses."""
    aliased = 0
    sizes: dict[str, int] = {}  # of what is behind each anchor, with its aliases replaced
    opened: list[tuple[str | None, int]] = [(None, 0)]  # the collections around an event: anchor and size
    for event in yaml.parse(text, Loader=_Loader):
        size = 0
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = opened.pop()
        elif isinstance(event, yaml.NodeEvent):
            mark: Any = event.start_mark
            if len(opened) > MAX_DEPTH:
                raise yaml.composer.ComposerError(None, None, f"is nested deeper than {MAX_DEPTH} levels", mark)
            anchor = event.anchor
            if isinstance(event, yaml.AliasEvent):
                if any(anchor == around for around, _ in opened):
                    raise yaml.composer.ComposerError(None, None, f"the alias *{anchor} stands within itself", mark)
                aliased += (size := sizes.get(str(anchor), 0))
                if aliased > MAX_ALIASED_CHARS:
                    words = f"aliases such as *{anchor} stand for more than {MAX_ALIASED_CHARS} characters"
                    raise yaml.composer.ComposerError(None, None, words, mark)
            elif isinstance(event, yaml.CollectionStartEvent):
                sizes.pop(str(anchor), None)
                opened.append((anchor, 1))
                continue
            else:
                size = 1 + len(event.value) if isinstance(event, yaml.ScalarEvent) else 1
        else:
            continue
        if anchor is not None:
            sizes[anchor] = size
        opened[-1] = opened[-1][0], opened[-1][1] + size


_INT_TAG: Final = "tag:yaml.org,2002:int"
_FLOAT_TAG: Final = "tag:yaml.org,2002:float"
_INT: Final = re.compile(r"[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)\Z")
_FLOAT: Final = re.compile(
    r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
)
"""As in YAML 1.1, but without base 60 (``1:30:00``): such a number takes time quadratic in its length, YAML 1.2 does
not have it, and an author who writes one usually means a time of day.
"""


class _BoundedLoader(_Loader):
    """The safe loader, which also records repeated keys."""

    yaml_implicit_resolvers = {
        first: [(tag, {_INT_TAG: _INT, _FLOAT_TAG: _FLOAT}.get(tag, pattern)) for tag, pattern in resolvers]
        for first, resolvers in _Loader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: list[str] = []

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node. An invalid number or date is reported with its position."""
        try:
            return super().construct_object(node, deep=deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            shown = "a value" if not isinstance(node, yaml.ScalarNode) else f"the value {node.value[:40]!a}"
            raise yaml.constructor.ConstructorError(
                None, None, f"{shown} is not a valid number or date; quote it if it is text", node.start_mark
            ) from None

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """Return the number. Base 60 is rejected also with an explicit tag."""
        self._check_not_base_60(node)
        return int(super().construct_yaml_int(node))

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        """Return the number. Base 60 is rejected also with an explicit tag."""
        self._check_not_base_60(node)
        return float(super().construct_yaml_float(node))

    def _check_not_base_60(self, node: yaml.ScalarNode) -> None:
        if ":" in self.construct_scalar(node):
            raise ValueError

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, _ in node.value:
            if key.tag == _MERGE_TAG:
                raise yaml.constructor.ConstructorError(None, None, "merge keys (<<) are not read", key.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping = super().construct_mapping(node, deep=deep)
        seen: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if key in seen:
                column = key_node.start_mark.column + 1
                shown = ascii(key)[:_MAX_SHOWN_CHARS]
                first = seen[key]
                self.repeated.append(f"line {line}, column {column}: {shown} is given again (first on line {first})")
            else:
                seen[key] = line
        return mapping


_BoundedLoader.add_constructor(_INT_TAG, _BoundedLoader.construct_yaml_int)
_BoundedLoader.add_constructor(_FLOAT_TAG, _BoundedLoader.construct_yaml_float)
