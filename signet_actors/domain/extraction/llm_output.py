"""Find the JSON in a model's answer. Never raises.

Time and memory are bounded: at most ``MAX_ANSWER_CHARS`` of the answer are read and at most ``_MAX_STARTS`` positions
tried, which share one ``StepBudget``. Nothing recurses, so nesting costs no stack. An item that was cut off is dropped,
never completed: half a sentence would be stored as if the user had said it.

Source: memory-pipeline.txt "Extraction Stage", "Decision Stage"; docs/reliability.md R12;
docs/compatibility.md "Worked examples: extraction parsing".
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

from msgspec import Struct

from signet_actors.domain.extraction import tolerant_json

MAX_ANSWER_CHARS: Final = 1_000_000
"""The rest of a longer answer is ignored. Reasoning before the JSON may make an answer long."""

_MAX_DOCUMENT_CHARS: Final = 262_144
"""JSON is searched for in this many characters after the reasoning. Twenty facts and fifty triples need a fifth of it.
"""

_MAX_STARTS: Final = 64
_MAX_ENCODINGS: Final = 3


class LlmOutput(Struct, frozen=True):
    """The JSON of an answer. If there is none, ``found`` is False and ``value`` is None.

    ``value`` is an object or an array that may be nested as deep as the recursion limit. Inspect it with
    ``isinstance``; do not print or compare it as a whole. ``repaired`` counts repairs, ``dropped`` counts items that
    were cut off or nested too deep, and ``repairs`` names the kinds of both in order.
    """

    value: object = None
    found: bool = False
    repaired: int = 0
    dropped: int = 0
    repairs: tuple[str, ...] = ()


_NO_JSON: Final = LlmOutput()


def read_json(answer: str | bytes, keys: tuple[str, ...] = ()) -> LlmOutput:
    """Return the object or array in ``answer``, without reasoning, code fences and prose.

    ``keys`` are the keys of the expected object. If the answer contains several documents, those with one of these keys
    are merged. If two have the same key, only the later one is used, so an example or a draft does not affect the final
    answer. Several objects without such keys are returned as one array.
    """
    text = _text_of(answer)
    best = _NO_JSON
    for encodings in range(_MAX_ENCODINGS):
        whole = _pure_json(text)
        output = whole or _read(text, keys)
        if encodings and output.found:
            output = _with_repair(output, "double_encoding")
        best = output if output.found else best
        if whole or _has_any_key(output.value, keys) or (output.value and not output.repairs):
            break
        inner = _decode_nested(text)
        if inner is None:
            break
        text = inner
    return best


def _text_of(answer: str | bytes) -> str:
    if isinstance(answer, bytes):
        answer = answer[: 4 * MAX_ANSWER_CHARS].decode("utf-8", errors="replace")
    return answer[:MAX_ANSWER_CHARS].strip(" \t\r\n\ufeff\x00")


def _decode_nested(text: str) -> str | None:
    """Return the text of JSON that was encoded twice, or None.

    That is a string with a document in it, or a document with ``\\"``.
    """
    if text.startswith('"'):
        try:
            inner, _ = _STRICT.raw_decode(text[:_MAX_DOCUMENT_CHARS])
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, str):
            return inner.strip()
    if '{\\"' in text or '[\\"' in text or "{\\n" in text:
        return text.replace("\\n", "\n").replace('\\"', '"')
    return None


def _with_repair(output: LlmOutput, kind: str) -> LlmOutput:
    return LlmOutput(output.value, True, output.repaired + 1, output.dropped, (kind, *output.repairs))


def _has_any_key(value: object, keys: tuple[str, ...]) -> bool:
    return isinstance(value, dict) and any(key in value for key in keys)


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


_STRICT: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=tolerant_json.parse_finite)

_TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning|reflection)(?:\s[^<>]{0,80})?>", re.IGNORECASE)
_START = re.compile(r"[\[{]|<(?=(?:think|thinking|thought|reasoning|reflection)[\s>])", re.IGNORECASE)


def _end_of_reasoning(text: str, at: int) -> int:
    """Return the end of the reasoning block that opens at ``at``; the end of ``text`` if it is never closed."""
    depth = 0
    for tag in _TAG.finditer(text, at):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return tag.end()
    return len(text)


def without_leading_reasoning(text: str) -> str:
    """Return ``text`` without reasoning at its beginning.

    A closing tag alone also ends reasoning: some chat templates put the opening tag into the prompt.
    """
    at = 0
    while (tag := _TAG.match(text, at)) and not tag[1]:
        at = _end_of_reasoning(text, at)
        while at < len(text) and text[at].isspace():
            at += 1
    tag = _TAG.search(text, at)
    if tag and tag[1] and _START.search(text, tag.end()):
        at = tag.end()
    return text[at:]


def _pure_json(text: str) -> LlmOutput | None:
    """Return the output if the answer is nothing but JSON, the most common case.

    Tags and fences inside its strings are then ordinary text.
    """
    if text[:1] not in ("{", "["):
        return None
    whole = _decode_strict(text[:_MAX_DOCUMENT_CHARS], 0)
    return LlmOutput(whole[0], True) if whole is not None and not text[whole[1] :].strip() else None


def _read(text: str, keys: tuple[str, ...]) -> LlmOutput:
    """Return the output of the documents in ``text``, without the prose around them.

    Each position is decoded strictly first. Only if that fails is it read tolerantly, and each repair is counted by
    kind.
    """
    text = without_leading_reasoning(text)
    found: list[tolerant_json.Document] = []
    steps = tolerant_json.StepBudget()
    at = starts = 0
    end_of_text = min(len(text), _MAX_DOCUMENT_CHARS)
    while starts < _MAX_STARTS and steps.left > 0 and (start := _START.search(text, at)):
        begin = start.start()
        starts += 1
        if text[begin] == "<":
            at = _end_of_reasoning(text, begin)
            text, at = text[at:], 0
            end_of_text = min(len(text), _MAX_DOCUMENT_CHARS)
            continue
        if begin >= end_of_text:
            break
        strict = _decode_strict(text, begin, end_of_text)
        if strict is not None and not tolerant_json.MORE_MEMBERS.match(text, strict[1]):
            found.append(tolerant_json.Document(strict[0], Counter(), 0))
            at = strict[1]
            continue
        reader = tolerant_json.TolerantReader(text, begin, end_of_text, steps)
        document = reader.read()
        if document is None:
            at = begin + 1
            continue
        found.append(document)
        # A cut-off document without the expected keys may contain the expected one: search inside it.
        at = (
            begin + 1
            if reader.cut_off and keys and not _has_any_key(document.value, keys)
            else max(reader.at, begin + 1)
        )
    return _select_output(found, keys)


def _decode_strict(text: str, at: int, end: int | None = None) -> tuple[object, int] | None:
    try:
        value, after = _STRICT.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return None if end is not None and after > end else (value, after)


def _select_output(found: list[tolerant_json.Document], keys: tuple[str, ...]) -> LlmOutput:
    wanted = [document for document in found if _has_any_key(document.value, keys)]
    if wanted:
        merged: dict[Any, object] = {}
        parts: list[tolerant_json.Document] = []
        for document in wanted:
            if isinstance(document.value, dict):
                if any(key in merged and key in document.value for key in keys):
                    merged, parts = {}, []
                merged.update(document.value)
                parts.append(document)
        return _output(merged, parts)
    arrays = [d for d in found if isinstance(d.value, list) and any(isinstance(i, dict | str) for i in d.value)]
    if arrays:
        return _output(arrays[-1].value, arrays[-1:])
    objects = [d for d in found if isinstance(d.value, dict) and d.value]
    if len(objects) > 1:
        objects[0].repairs["joined_documents"] += 1
        return _output([d.value for d in objects], objects)
    if objects:
        return _output(objects[0].value, objects)
    empty = [d for d in found if not d.value and not d.repairs]
    return _output(empty[-1].value, empty[-1:]) if empty else _NO_JSON


def _output(value: object, documents: list[tolerant_json.Document]) -> LlmOutput:
    repairs: Counter[str] = Counter()
    for document in documents:
        repairs.update(document.repairs)
    dropped = sum(document.dropped for document in documents)
    kinds = (*repairs, "dropped_item") if dropped else tuple(repairs)
    return LlmOutput(value, True, repairs.total(), dropped, kinds)
