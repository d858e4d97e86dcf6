"""The API conforms to its own document, for valid and for invalid data.

Schemathesis generates the requests from ``/api/openapi.json`` of a live daemon: the coverage of each constraint,
fuzzing, and sequences along the document's links.

Source: docs/reliability.md R24; docs/decisions.md 30.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis import engine
from schemathesis.config import SchemathesisConfig
from schemathesis.core.parameters import ParameterLocation
from schemathesis.engine import events

from signet_actors.operations.headers import JSON_LINES
from signet_actors.operations.import_export import MemoryLine
from signet_actors.operations.request_reader import request_fields
from tests.hostile.conftest import SEED, scale
from tests.support.live_daemon import LiveDaemon

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(4 * 3600)]

FUZZED, SEQUENCES = scale(5, 400), scale(32, 400)
"""Examples of each operation, and of sequences along the links."""
LEAST = {"coverage": 1000, "fuzzing": 300, "stateful": 50}
"""Requests of each phase. How long a sequence gets depends on the replies: in some runs five times as long."""

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "use_after_free",
    "ensure_resource_availability",
    "unsupported_method",
)


_VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_LINE = st.dictionaries(
    st.sampled_from([field.spellings[0] for field in request_fields(MemoryLine)]), _VALUES | st.lists(_VALUES)
)
schemathesis.openapi.media_type(
    JSON_LINES,
    st.lists(_LINE, min_size=1, max_size=5).map(lambda lines: b"\n".join(json.dumps(line).encode() for line in lines)),
)


REFUSED = ("400", "403", "404", "405", "409", "413", "415", "429", "431", "5xx")
"""Statuses of a refused request. A content that is too long gets 413, a query that is too long 431."""


def is_valid_body(case: Any) -> bool:
    """Return True if only the body was made invalid, and the document allows it all the same."""
    wrong = {location for location, part in case.meta.components.items() if part.mode.is_negative}
    if wrong != {ParameterLocation.BODY} or not isinstance(case.body, dict):
        return False
    document = case.operation.schema.raw_schema
    body = document["paths"][case.operation.path][case.operation.method.lower()]["requestBody"]
    media = body["content"].get("application/json")
    if media is None:
        return False
    schema = {**media["schema"], "components": document["components"]}
    return bool(jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(case.body))


def is_promised(case: Any, check: str) -> bool:
    """Return True if this failure is documented behaviour."""
    if check in {"use_after_free", "ensure_resource_availability"}:
        # memory-api.txt: the history of a deleted memory stays readable, and a deleted memory can be recovered.
        return case.operation.path.endswith(("/history", "/recover"))
    if check == "not_a_server_error" and case.operation.path == "/api/synthesis/trigger":
        return True  # docs/compatibility.md "MEMORY.md": 503 without a model, and this daemon has none
    if check != "negative_data_rejection":
        return False
    if case.operation.path.startswith("/api/hooks/"):
        return True  # docs/guides/hooks.md: only a missing required field is refused, else a value counts as absent
    if case.operation.label == "POST /api/memory/modify":
        # docs/compatibility.md "Forget and modify": an invalid patch is reported in its own result, and the others are
        # applied
        return True
    if case.operation.label == "POST /api/memory/import":
        return True  # JSON Lines: an invalid line is reported in its own result, and the others are stored
    if isinstance(case.body, str | bytes) and not case.body.strip():
        return True  # docs/compatibility.md: a body of white space alone counts as absent
    if is_valid_body(case):
        return True  # one alternative of a field was mutated, and the value fits another
    wrong = {location for location, part in case.meta.components.items() if part.mode.is_negative}
    # Integers of a query are parsed like parseInt and clamped, a blank parameter counts as absent, a repeated one
    # counts once.
    return wrong <= {ParameterLocation.QUERY}


def configuration() -> dict[str, Any]:
    return {
        "seed": int(SEED),
        "checks": {
            "enabled": False,
            **{name: {"enabled": True} for name in CHECKS},
            "negative_data_rejection": {"enabled": True, "expected-statuses": REFUSED},
        },
        "generation": {"max-examples": SEQUENCES, "database": "none", "no-shrink": True},
        "phases": {
            "examples": {"enabled": False},
            "fuzzing": {"generation": {"max-examples": FUZZED}},
            "stateful": {"max-steps": 8},
        },
        "suppress-health-check": ["all"],
        "max-stream-events": 1,  # else a stream, which does not end, is read for ten seconds each time
        "output": {"sanitization": {"enabled": False}},
    }


def test_the_daemon_conforms_to_its_api_document(default_daemon: LiveDaemon) -> None:
    base = f"http://127.0.0.1:{default_daemon.port}"
    config = SchemathesisConfig.from_dict(configuration())
    schema = schemathesis.openapi.from_url(f"{base}/api/openapi.json", config=config)
    requests: Counter[str] = Counter()
    failures: dict[str, str] = {}
    errors: list[str] = []
    for event in engine.from_schema(schema).execute():
        match event:
            case events.ScenarioFinished(phase=phase, recorder=recorder):
                requests[phase.value] += len(recorder.interactions)
                for case_id, nodes in recorder.checks.items():
                    for node in nodes:
                        case = recorder.cases[case_id].value
                        if node.failure_info is not None and not is_promised(case, node.name):
                            failure = node.failure_info.failure
                            name = f"{case.operation.label}: {node.name}: {failure.title}"
                            failures.setdefault(name, f"{name}\n{failure.message}\n{node.failure_info.code_sample}")
            case events.NonFatalError(info=info, label=label):
                errors.append(f"{label}: {info.format()}")
            case events.FatalError(exception=error):
                errors.append(f"fatal: {error!r}")
            case _:
                pass
    print(f"seed {SEED}: {requests.total()} requests {dict(requests)}")
    assert errors == [], "\n\n".join(errors[:10])
    assert list(failures.values()) == [], "\n\n".join(list(failures.values())[:40])
    assert [phase for phase, least in LEAST.items() if requests[phase] < least] == [], requests
