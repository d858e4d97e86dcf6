"""Load ``agent.yaml`` and the environment into a complete ``Config``, or report every problem at once.

A missing file is valid, because every key has a default. ``IGNORED_KEYS`` are ignored. Any other unknown key is a
warning that suggests the intended key. A number or a choice that is not valid is replaced by its default, with a
warning, unless its key is among ``NO_FALLBACK``. All other invalid values are reported in one ``ConfigError``, with one
line per problem: file, key, given value, permitted values.

Source: memory-pipeline.txt "Configuration Reference"; docs/decisions.md 30, 43, 44, 64.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from signet_actors.config.checks import ConfigFinding, findings
from signet_actors.config.field_forms import ENDPOINT_PATTERN, KEY_VARIABLE_PATTERN
from signet_actors.config.keys import Field, camel, fields_of, keys, snake
from signet_actors.config.legacy import ALIASES, IGNORED_KEYS, MOVED_KEYS
from signet_actors.config.schema import Config
from signet_actors.config.shown_value import MAX_SHOWN_CHARS, printable, shown_value
from signet_actors.config.suggest import closest, did_you_mean
from signet_actors.config.workspace import CONFIG_FILE_NAME
from signet_actors.config.yaml_file import UnreadableYaml, read_yaml
from signet_actors.errors import ConfigError

KeyPath = tuple[str, ...]

ENVIRONMENT_KEYS: Final[tuple[tuple[str, KeyPath], ...]] = (
    ("SIGNET_HOST", ("gateway", "host")),
    ("SIGNET_PORT", ("gateway", "port")),
)
"""Environment variables and the keys of the file that they override."""

NO_FALLBACK: Final = frozenset(
    {"agents", "auth", "backup", "git", "projects", "redaction", "retention"}
    | {
        "host",
        "port",
        "allowedHosts",
        "users",
        "trustedProxies",
        "tlsCertificate",
        "tlsKey",
        "requireOwner",
        "endpoint",
        "apiKeyEnv",
        "dailyCallLimit",
        "dailyTokenLimit",
    }
    | {"confirm", "maintenanceMode", "maxTotalBytes", "minConfidence", "retentionDays"}
)
"""Sections and keys that concern addresses, access, keys, cost, and how long data is kept: a wrong value there stops
the start, because its default may permit, spend or delete more than was meant."""

_MAX_WARNINGS: Final = 50
_CONFIDENTIAL_PATTERNS: Final = (KEY_VARIABLE_PATTERN, ENDPOINT_PATTERN)
"""Patterns of keys into which people paste a secret by mistake. Messages never repeat a value given there."""

_IGNORED: Final = dict(IGNORED_KEYS)
_ALIASES: Final = dict(ALIASES)


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A valid configuration, its warnings, and the file that it came from (None if there is no file).

    ``fallbacks``: the invalid values that were replaced by defaults; they are among the warnings, too. ``is_empty``:
    the file gives no value, or is missing.
    """

    config: Config
    warnings: list[str]
    source: Path | None
    fallbacks: tuple[str, ...] = ()
    is_empty: bool = False


class InvalidConfig(ConfigError):
    """The configuration has problems. ``warnings`` has what was noticed besides."""

    def __init__(self, detail: str, warnings: list[str]) -> None:
        super().__init__(detail)
        self.warnings = warnings


def load_config(workspace: Path, environ: Mapping[str, str], *, strict: bool = False) -> LoadedConfig:
    """Return the configuration of a workspace. Raises ``ConfigError`` with every problem, one per line.

    ``strict``: no value falls back to its default, as for a file that is about to be written.
    """
    path = workspace / CONFIG_FILE_NAME
    reader = _ConfigReader(CONFIG_FILE_NAME, strict=strict)
    document: Any = None
    try:
        document = read_yaml(path)
    except UnreadableYaml as unreadable:
        reader.problems.extend(f"{CONFIG_FILE_NAME}: {problem}" for problem in unreadable.problems)
    if document is not None and not isinstance(document, dict):
        reader.problems.append(f"{CONFIG_FILE_NAME}: is {shown_value(document)} where a mapping of keys is expected")
        document = None
    tree: dict[Any, Any] = document or {}
    reader.collect_moved(tree)
    config = reader.section(Config(), tree, (), ())
    assert isinstance(config, Config), "a section is read into its own struct"
    config = reader.consistent(_with_environment(config, environ, reader))
    if reader.problems:
        raise InvalidConfig("\n".join(reader.problems), reader.all_warnings())
    source = path if path.exists() else None
    return LoadedConfig(config, reader.all_warnings(), source, tuple(reader.fallbacks), is_empty=not _has_values(tree))


def restart_values(config: Config) -> tuple[object, ...]:
    """Return the values that a reload does not apply: the address, TLS, and the number of searchers."""
    gateway = config.gateway
    return gateway.host, gateway.port, gateway.tls_certificate, gateway.tls_key, config.searcher.processes


def effective_mapping(config: Config) -> dict[str, Any]:
    """Return the whole configuration as plain values, by the file's names. It contains no secret."""
    mapping: dict[str, Any] = msgspec.to_builtins(config)
    return mapping


class _InvalidValue(Exception):
    """A value is not valid. The message states the value and what is permitted."""


class _InvalidChoice(_InvalidValue):
    """A number or a choice is not valid, which may be replaced by the default."""


class _ConfigReader:
    """Reads one file, and collects its problems, its warnings and the place of each value."""

    def __init__(self, source: str, *, strict: bool) -> None:
        self.source = source
        self._strict = strict
        self.problems: list[str] = []
        self.fallbacks: list[str] = []
        self._warnings: list[str] = []
        self._omitted_count = 0
        self._moved: dict[KeyPath, tuple[Any, str]] = {}
        self._labels: dict[KeyPath, str] = {}
        self._invalid: set[KeyPath] = set()

    def collect_moved(self, tree: Mapping[Any, Any]) -> None:
        """Collect values at old places, by their new path. If there are several, the first counts."""
        for source, target in MOVED_KEYS:
            mapping: Any = tree
            for step in source[:-1]:
                mapping = next((mapping[name] for name in _spellings(step) if name in mapping), None)
                if not isinstance(mapping, dict):
                    break
            else:
                written = next((name for name in _spellings(source[-1]) if name in mapping), None)
                if written is not None and mapping[written] is not None:
                    self._moved.setdefault(target, (mapping[written], ".".join((*source[:-1], written))))

    def section(
        self, base: msgspec.Struct, mapping: Mapping[Any, Any], path: KeyPath, written: KeyPath
    ) -> msgspec.Struct:
        """Return ``base`` with the values of the mapping. A problem is recorded and leaves the default in place.

        ``path`` is the section's path in the schema, ``written`` the same in the file's own spelling.
        """
        fields = fields_of(type(base))
        given = self._names(fields, mapping, path, written)
        changes: dict[str, Any] = {}
        for attribute, part in fields.items():
            here = (*path, part.name)
            name = given.get(attribute)
            value = None if name is None else mapping[name]
            label = ".".join((*written, name or part.name))
            if part.section is not None:
                if value is not None and not isinstance(value, dict):
                    self._problem(here, label, f"{shown_value(value)} is not a mapping of keys")
                    value = None
                inner = getattr(base, attribute)
                changes[attribute] = self.section(inner, value or {}, here, (*written, name or part.name))
                continue
            moved = self._moved.get(here)
            if moved is not None and value is None:
                value, label = moved
            elif moved is not None:
                self._warn(f"{self.source}: {moved[1]}: ignored, because {label} is given")
            if value is None and (name is None or "none" not in part.choices):
                continue
            self._labels[here] = f"{self.source}: {label}"
            try:
                changes[attribute] = self._value(part, value, here, label)
            except _InvalidValue as invalid:
                if isinstance(invalid, _InvalidChoice) and self._may_fall_back(here):
                    self._fall_back(f"{self.source}: {label}: {invalid}", getattr(base, attribute))
                else:
                    self._problem(here, label, str(invalid))
        return msgspec.structs.replace(base, **changes)

    def consistent(self, config: Config) -> Config:
        """Return the configuration after the rules between keys; a number that breaks one may get its default."""
        for finding in findings(config):
            path = next(filter(self._labels.get, finding.paths), ()) if finding.fatal else ()
            changed = _with_default(config, path) if path and self._may_fall_back(path) else config
            if changed != config:
                self._fall_back(f"{self._labels[path]}: {finding.message}")
                return self.consistent(changed)  # one key fewer differs from its default
        for finding in findings(config):
            self.add_finding(finding)
        return config

    def _fall_back(self, problem: str, default: object = "") -> None:
        self.fallbacks.append(problem)
        self._warn(f"{problem}; the default is used{f' ({default})' if default != '' else ''}")

    def _may_fall_back(self, path: KeyPath) -> bool:
        return not self._strict and NO_FALLBACK.isdisjoint(path)

    def add_finding(self, finding: ConfigFinding) -> None:
        """Record a finding, unless one of its keys was invalid. Its first key is the reported place."""
        if self._invalid.intersection(finding.paths):
            return
        first = finding.paths[0]
        place = self._labels.get(first) or f"{self.source}: {'.'.join(first)}"
        line = f"{place}: {finding.message}"
        if finding.fatal:
            self.problems.append(line)
        else:
            self._warn(line)

    def override(self, variable: str, path: KeyPath) -> None:
        """Record that an environment variable replaces the value at ``path``."""
        self._labels[path] = f"environment: {variable}"
        self._invalid.discard(path)

    def add_problem(self, path: KeyPath, line: str) -> None:
        """Record a problem with the value at ``path``, which keeps its default."""
        self._invalid.add(path)
        self.problems.append(line)

    def all_warnings(self) -> list[str]:
        """Return the warnings, with one line for those beyond the limit."""
        if not self._omitted_count:
            return list(self._warnings)
        return [*self._warnings, f"{self.source}: {self._omitted_count} more warnings of this kind"]

    def _names(
        self, fields: Mapping[str, Field], mapping: Mapping[Any, Any], path: KeyPath, written: KeyPath
    ) -> dict[str, Any]:
        """Return the mapping's own key for each attribute that it gives. Unknown keys add a warning."""
        attributes = {
            spelling: attribute
            for attribute, part in fields.items()
            for spelling in (*_spellings(part.name), *_ALIASES.get((*path, part.name), ()))
        }
        passed_over = {
            *(spelling for name in _IGNORED.get(path, ()) for spelling in _spellings(name)),
            *(spelling for source, _ in MOVED_KEYS if source[:-1] == path for spelling in _spellings(source[-1])),
        }
        given: dict[str, Any] = {}
        for name in mapping:
            attribute = attributes.get(name) if isinstance(name, str) else None
            if attribute is None:
                if name not in passed_over:
                    self._unknown(name, [part.name for part in fields.values()], path, written)
            elif attribute in given:
                here = (*path, fields[attribute].name)
                label = ".".join((*written, name))
                self._problem(here, label, f"is given twice (also as {given[attribute]})")
            else:
                given[attribute] = name
        return given

    def _unknown(self, name: object, siblings: list[str], path: KeyPath, written: KeyPath) -> None:
        if len(self._warnings) >= _MAX_WARNINGS:
            self._omitted_count += 1
            return
        shown = printable(name[:MAX_SHOWN_CHARS]) if isinstance(name, str) else shown_value(name)
        label = ".".join((*written, shown))
        if shown in {"apiKey", "api_key"} and "apiKeyEnv" in siblings:
            hint = "; put the key in an environment variable and the variable's name in apiKeyEnv"
        else:
            hint = self._suggestion(shown, siblings, path, written)
        self._warn(f"{self.source}: {label}: unknown key, ignored{hint}")

    def _suggestion(self, shown: str, siblings: list[str], path: KeyPath, written: KeyPath) -> str:
        *above, last = (*written, *shown.split("."))
        if "." in shown and ".".join((*above, last)) in {key.dotted for key in keys()}:
            places = " below ".join(f'"{part}:"' for part in reversed(above))
            return f'; write "{last}:" indented below {places}'
        near = closest(shown, [*siblings, *_IGNORED.get(path, ())])
        if near is not None:
            return f'; did you mean "{".".join((*written, near))}"?'
        elsewhere = {key.path[-1]: key.dotted for key in keys()}
        elsewhere |= {section: ".".join(place) for section, place in _section_places().items()}
        far = next((place for name, place in elsewhere.items() if name in _spellings(shown)), None)
        return f'; did you mean "{far}"?' if far is not None else ""

    def _value(self, part: Field, value: Any, path: KeyPath, label: str) -> Any:
        if part.element is not None:
            return self._entries(part, part.element, value, path, label)
        if part.item is not None:
            return self._texts(part, part.item, value, path, label)
        return read_scalar(part, value)

    def _entries(self, part: Field, element: type[msgspec.Struct], value: Any, path: KeyPath, label: str) -> Any:
        entries = []
        for index, entry in enumerate(_sequence(part, value)):
            place = f"{label}[{index}]"
            if not isinstance(entry, dict):
                self._problem(path, place, f"{shown_value(entry)} is not a mapping of keys")
                continue
            fields = fields_of(element)
            given = self._names(fields, entry, path, (place,))
            values: dict[str, Any] = {}
            for attribute, inner in fields.items():
                name = given.get(attribute)
                if name is None or entry[name] is None:
                    if inner.required:
                        self._problem(path, f"{place}.{inner.name}", "is missing")
                    continue
                try:
                    values[attribute] = read_scalar(inner, entry[name])
                except _InvalidValue as invalid:
                    self._problem(path, f"{place}.{name}", str(invalid))
            if all(attribute in values for attribute, inner in fields.items() if inner.required):
                entries.append(element(**values))
        return tuple(entries)

    def _texts(self, part: Field, item: Field, value: Any, path: KeyPath, label: str) -> Any:
        texts = []
        for index, text in enumerate(_sequence(part, value)):
            try:
                texts.append(read_scalar(item, text))
            except _InvalidValue as invalid:
                self._problem(path, f"{label}[{index}]", str(invalid))
        return tuple(texts)

    def _problem(self, path: KeyPath, label: str, message: str) -> None:
        self.add_problem(path, f"{self.source}: {label}: {message}")

    def _warn(self, line: str) -> None:
        if len(self._warnings) < _MAX_WARNINGS:
            self._warnings.append(line)
        else:
            self._omitted_count += 1


def read_scalar(part: Field, value: Any) -> Any:
    """Return the value as the field's type, checked against its range. Raises ``_InvalidValue``."""
    if part.choices:
        if isinstance(value, str) and value in part.choices:
            return value
        hint = did_you_mean(value, part.choices) if isinstance(value, str) else ""
        raise _InvalidChoice(f"{shown_value(value)} is not one of {', '.join(part.choices)}{hint}")
    if part.plain is bool:
        if isinstance(value, bool):
            return value
        raise _InvalidValue(f"{shown_value(value)} is not true or false")
    if part.plain is str:
        return _read_text(part, value)
    allowed = f" ({part.range_text})"
    if part.plain is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _InvalidChoice(f"{shown_value(value)} is not a whole number{allowed}")
    elif isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _InvalidChoice(f"{shown_value(value)} is not a number{allowed}")
    assert part.low is not None, "every number has a range"
    assert part.high is not None, "every number has a range"
    if not part.low <= value <= part.high:
        raise _InvalidChoice(f"{shown_value(value)} is out of range{allowed}")
    return value if part.plain is int else float(value)


def _read_text(part: Field, value: Any) -> str:
    if not isinstance(value, str):
        hint = "; put it in quotes" if isinstance(value, bool | int | float) else ""
        raise _InvalidValue(f"{shown_value(value)} is not text{hint}")
    given = "the given value" if part.pattern in _CONFIDENTIAL_PATTERNS else shown_value(value)
    if len(value) < part.min_length:
        raise _InvalidValue("is empty")
    if part.max_length is not None and len(value) > part.max_length:
        raise _InvalidValue(f"is longer than {part.max_length} characters")
    if not value.isprintable():
        raise _InvalidValue("contains a control character or another unprintable character")
    if part.pattern is not None and re.search(part.pattern, value) is None:
        raise _InvalidValue(f"{given} is not {part.form}")
    return value


def _with_default(config: Config, path: KeyPath) -> Config:
    """Return the configuration with the default of the key at ``path``, if that is a number."""
    changed, default = msgspec.to_builtins(config), msgspec.to_builtins(Config())
    section = changed
    for name in path[:-1]:
        section, default = section[name], default[name]
    if isinstance(default[path[-1]], int | float):
        section[path[-1]] = default[path[-1]]
    return msgspec.convert(changed, Config)


def _sequence(part: Field, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _InvalidValue(f"{shown_value(value)} is not a list")
    if part.max_length is not None and len(value) > part.max_length:
        raise _InvalidValue(f"has {len(value)} entries; at most {part.max_length} are allowed")
    return value


def _with_environment(config: Config, environ: Mapping[str, str], reader: _ConfigReader) -> Config:
    """Return the configuration with the overrides from the environment. They are checked like the file's values."""
    gateway = config.gateway
    for variable, path in ENVIRONMENT_KEYS:
        text = environ.get(variable, "").strip()
        if not text:
            continue
        reader.override(variable, path)
        part = fields_of(type(gateway))[path[-1]]
        value: str | int = text
        if part.plain is int and re.fullmatch(r"-?[0-9]{1,18}", text):
            value = int(text)
        try:
            gateway = msgspec.structs.replace(gateway, **{part.attribute: read_scalar(part, value)})
        except _InvalidValue as invalid:
            reader.add_problem(path, f"environment: {variable}: {invalid}")
    return msgspec.structs.replace(config, gateway=gateway)


def _has_values(node: Any, depth: int = 3) -> bool:
    """Return whether a value is given anywhere in the sections. The depth is bounded: an alias may contain itself."""
    if isinstance(node, dict) and depth:
        return any(_has_values(value, depth - 1) for value in node.values())
    return node is not None and node != {}


def _section_places() -> dict[str, KeyPath]:
    return {key.path[end - 1]: key.path[:end] for key in keys() for end in range(1, len(key.path))}


def _spellings(name: str) -> tuple[str, ...]:
    """Return the distinct spellings of a name: as written, in camelCase, in snake_case."""
    return tuple(dict.fromkeys((name, camel(name), snake(name))))
