"""A request's Struct parses the request: leniently where clients differ, else it names the invalid field."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.timestamps import moved
from signet_actors.errors import InvalidRequest
from signet_actors.operations.config_files import WriteConfigRequest
from signet_actors.operations.field_types import Tags
from signet_actors.operations.forget import ForgetRequest
from signet_actors.operations.import_export import ExportRequest, MemoryLine
from signet_actors.operations.memories import ListMemoriesRequest
from signet_actors.operations.memory_changes import DeleteRequest, PatchRequest
from signet_actors.operations.recall import LegacySearchRequest, RecallRequest, RecallTime, SearchRequest
from signet_actors.operations.registry import OPERATIONS
from signet_actors.operations.remember import RememberRequest
from signet_actors.operations.repair import SweepRequest
from signet_actors.operations.request_reader import (
    Items,
    inner_structs,
    known_fields,
    object_warnings,
    read_request,
    request_fields,
    request_schemas,
)
from signet_actors.operations.requeue import RequeueRequest

NOW_MS = 1_780_000_000_000
REQUESTS = tuple(
    dict.fromkeys(
        kind for one in OPERATIONS for kind in inner_structs(one.lines or one.request) if request_fields(kind)
    )
)


def of_body(kind: Any, /, **body: Any) -> Any:
    return read_request(kind, body=body, now_ms=NOW_MS, warnings=[])


def of_query(kind: Any, warnings: list[str] | None = None, **query: str) -> Any:
    return read_request(kind, query=query, now_ms=NOW_MS, warnings=[] if warnings is None else warnings)


def test_both_spellings_of_a_name_are_accepted_and_the_documented_one_wins() -> None:
    assert of_body(RememberRequest, content="x", sourceType="a").source_type == "a"
    assert of_body(RememberRequest, content="x", source_type="a").source_type == "a"
    assert of_body(RememberRequest, content="x", source_type="a", sourceType="b").source_type == "b"


def test_an_error_names_the_spelling_that_was_used() -> None:
    with pytest.raises(InvalidRequest) as refused:
        of_body(RememberRequest, content="x", source_id=5)
    assert (refused.value.detail, refused.value.field) == ("source_id must be a string", "source_id")


def test_null_counts_as_absent_in_one_spelling_and_as_the_default_in_both() -> None:
    assert of_body(RememberRequest, content="x", sourceType=None, source_type="a").source_type == "a"
    assert of_body(RememberRequest, content="x", sourceType=None).source_type is None
    assert of_body(RecallRequest, query="x", limit=None).limit == 10


def test_a_required_field_that_is_blank_null_or_absent_is_reported() -> None:
    for body in ({}, {"query": None}, {"query": "  "}):
        with pytest.raises(InvalidRequest, match=r"^query is required$") as refused:
            of_body(RecallRequest, **body)
        assert refused.value.field == "query"
    with pytest.raises(InvalidRequest, match=r"^query is required$") as refused:
        of_query(SearchRequest)
    assert refused.value.field == "q"


def test_a_field_of_an_inner_object_is_read_like_one_of_the_body() -> None:
    request = of_body(RememberRequest, content="x", metadata={"sourcePath": "a.md", "unknown": 1})
    assert request.metadata.source_path == "a.md"
    with pytest.raises(InvalidRequest, match="source_path must be a string"):
        of_body(RememberRequest, content="x", metadata={"source_path": 5})
    with pytest.raises(InvalidRequest, match="metadata must be an object"):
        of_body(RememberRequest, content="x", metadata="a.md")


def test_an_integer_of_a_query_is_clamped_and_an_invalid_one_gives_the_default_and_a_warning() -> None:
    warnings: list[str] = []
    assert of_query(ListMemoriesRequest, warnings, limit="5000x").limit == 1000
    assert of_query(ListMemoriesRequest, warnings, limit="").limit == 100
    assert warnings == []
    assert of_query(ListMemoriesRequest, warnings, limit="abc").limit == 100
    assert of_query(LegacySearchRequest, warnings, limit="abc").limit is None
    assert warnings == [
        "limit is not an integer; the default 100 was used",
        "limit is not an integer; the default was used",
    ]


def test_a_field_of_the_body_wins_over_the_same_field_of_the_query() -> None:
    def read(body: dict[str, Any], **query: str) -> DeleteRequest:
        return read_request(DeleteRequest, body=body, query=query, now_ms=NOW_MS, warnings=[])

    assert read({"reason": "body", "ifVersion": 3}, reason="query", if_version="4").if_version == 3
    assert read({"reason": None}, reason="query", ifVersion=" 4 ", force="1") == DeleteRequest(
        reason="query", if_version=4, force=True
    )
    with pytest.raises(InvalidRequest, match=r"^reason is required$"):
        read({})


@pytest.mark.parametrize(("value", "version"), [(3, 3), (3.0, 3), ("3", 3), (" 3 ", 3), ("+3", 3), (None, None)])
def test_versions_are_accepted(value: object, version: int | None) -> None:
    assert of_body(PatchRequest, reason="r", if_version=value).if_version == version
    assert of_body(PatchRequest, reason="r", ifVersion=value).if_version == version


@pytest.mark.parametrize("value", [0, -1, 1.5, "x", "", "1.0", True, [], 2**70, "9" * 30])
def test_invalid_versions_are_refused(value: object) -> None:
    with pytest.raises(InvalidRequest, match="if_version must be a positive integer"):
        of_body(PatchRequest, reason="r", if_version=value)


def test_null_in_a_patch_changes_only_tags() -> None:
    nothing = dict.fromkeys(("content", "type", "importance", "pinned", "if_version"))
    assert of_body(PatchRequest, reason="r", **nothing) == PatchRequest(reason="r")
    assert of_body(PatchRequest, reason="r", tags=None) == PatchRequest(reason="r", tags=())
    assert of_body(PatchRequest, reason="r", tags="") == PatchRequest(reason="r", tags=())


@pytest.mark.parametrize("limit", ["abc", "5x", "", [], {}, True, "1e", "1 2", "5" * 501])
def test_an_invalid_limit_in_a_body_is_refused(limit: object) -> None:
    with pytest.raises(InvalidRequest, match="limit must be a number") as refused:
        of_body(ForgetRequest, limit=limit)
    assert refused.value.field == "limit"


@pytest.mark.parametrize(
    ("limit", "read"), [("5", 5), (" 7 ", 7), ("2.9", 2), ("-1", 1), ("1e99", 200), (10**400, 200), (None, None)]
)
def test_a_limit_may_be_a_number_in_a_string(limit: object, read: int | None) -> None:
    assert of_body(ForgetRequest, limit=limit).limit == read


def test_repeated_values_count_once() -> None:
    assert of_body(ForgetRequest, ids=["a", " b", "a", "b"] * 500).ids == ("a", "b")
    for bad in (["a", " "], ["a", 1], "a"):
        with pytest.raises(InvalidRequest, match="array of strings"):
            of_body(ForgetRequest, ids=bad)


@pytest.mark.parametrize(("value", "count"), [(3, 3), (3.0, 3), (0, 0), (2**53, 2**53), (None, 0)])
def test_a_count_of_a_line_is_a_whole_number(value: object, count: int) -> None:
    assert of_body(MemoryLine, content="x", accessCount=value).access_count == count
    assert of_body(MemoryLine, content="x", access_count=value).access_count == count


@pytest.mark.parametrize("value", [-1, 1.5, 2**53 + 2, "three", True, [], 1e300])
def test_an_invalid_count_of_a_line_is_refused_with_the_name_that_was_used(value: object) -> None:
    with pytest.raises(InvalidRequest, match="injected_count must be a ") as refused:
        of_body(MemoryLine, content="x", injected_count=value)
    assert refused.value.field == "injected_count"


def test_the_times_of_a_line_are_read_in_storage_form() -> None:
    (time,) = of_body(MemoryLine, content="x", times=[{"facet": " valid ", "start": "2026-05-13", "end": None}]).times
    assert (time.facet, time.start, time.end) == ("valid", "2026-05-13T00:00:00.000Z", None)
    for times in ({}, [5], [{}] * 21):
        with pytest.raises(InvalidRequest, match="times must be an array of at most 20 objects"):
            of_body(MemoryLine, content="x", times=times)
    for facet in (None, "", "other"):
        with pytest.raises(InvalidRequest, match=r"times\.facet must be one of: "):
            of_body(MemoryLine, content="x", times=[{"facet": facet}])


def test_a_cursor_that_is_not_an_integer_is_refused() -> None:
    assert of_query(ExportRequest).after == 0
    assert of_query(ExportRequest, after=" 12 ").after == 12
    for cursor in ("x", "-1", "1.5", "12abc"):
        with pytest.raises(InvalidRequest, match="after must be an integer"):
            of_query(ExportRequest, after=cursor)


class Patch(msgspec.Struct, kw_only=True):
    """An item of a batch."""

    tags: Annotated[tuple[str, ...], Tags(null=())] | None = None


class Batch(msgspec.Struct, kw_only=True):
    """Items that a handler reads one by one."""

    patches: Annotated[list[Any], Items(kind=Patch, max_items=2)]


def test_null_is_a_separate_value_in_a_field_that_declares_it() -> None:
    assert of_body(Patch).tags is None
    assert of_body(Patch, tags=None).tags == ()
    assert of_body(Patch, tags=["a"]).tags == ("a",)


def test_items_that_are_validated_separately_are_only_counted() -> None:
    assert of_body(Batch, patches=[5, {"tags": "a"}]).patches == [5, {"tags": "a"}]
    for body in ({}, {"patches": None}, {"patches": []}, {"patches": {"tags": "a"}}):
        with pytest.raises(InvalidRequest, match=r"^patches must be a non-empty array$") as refused:
            of_body(Batch, **body)
        assert refused.value.field == "patches"
    with pytest.raises(InvalidRequest, match=r"^patches must be at most 2$"):
        of_body(Batch, patches=[1, 2, 3])


def test_items_are_described_by_their_own_fields() -> None:
    assert request_schemas(Batch)["patches"]["items"] == {"$ref": "#/components/schemas/Patch"}
    assert list(inner_structs(Batch)) == [Batch, Patch]
    assert object_warnings(known_fields(Batch), {"patches": [{"tag": "a"}]}) == [
        "unknown field: patches[0].tag (did you mean tags?)"
    ]


@pytest.mark.parametrize(
    ("moment", "before"),
    [
        ("2026-05-14T00:00:00.000Z", "2026-05-13T23:59:59.999Z"),
        ("0001-01-01T00:00:00.000Z", "0001-01-01T00:00:00.000Z"),
        ("0009-03-01T00:00:00.001Z", "0009-03-01T00:00:00.000Z"),
    ],
)
def test_the_millisecond_before_a_time_is_computed(moment: str, before: str) -> None:
    assert moved(moment, timedelta(milliseconds=-1)) == before


def test_a_window_ends_a_day_after_its_start_by_default() -> None:
    assert of_body(RecallRequest, query="x", time={"start": "2026-05-13T06:00:00Z"}).time == RecallTime(
        start="2026-05-13T06:00:00.000Z", end="2026-05-14T06:00:00.000Z"
    )
    assert of_body(RecallRequest, query="x").time is None


@pytest.mark.parametrize("value", [1, "true", "yes", [], {}])
def test_only_true_confirms_the_clock(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="confirmClock must be a boolean"):
        of_body(SweepRequest, confirmClock=value)
    assert of_body(SweepRequest, confirmClock=None).confirm_clock is False
    assert of_body(SweepRequest, confirm_clock=True).confirm_clock is True


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"ids": []}, "ids must be an array of 1 to 50 strings"),
        ({"ids": ["x"] * 51}, "ids must be an array of 1 to 50 strings"),
        ({"ids": ["x", " "]}, "ids is required"),
        ({"ids": [5]}, "ids must be a string"),
        ({"ids": ["x" * 201]}, "ids must be at most 200 characters"),
        (
            {"kinds": ["extract", "dream"]},
            "kinds must be among: extract, prospective_index, embed, summarize, score_session, structural_classify",
        ),
        ({"limit": 0}, "limit must be an integer from 1 to 50"),
        ({"limit": 51}, "limit must be an integer from 1 to 50"),
        ({"limit": 5.0}, "limit must be an integer from 1 to 50"),
        ({"limit": True}, "limit must be an integer from 1 to 50"),
    ],
)
def test_a_selection_of_jobs_is_neither_extended_nor_truncated(body: dict[str, Any], error: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        of_body(RequeueRequest, **body)
    assert (refused.value.detail, refused.value.field) == (error, next(iter(body)))


def test_each_job_is_selected_once() -> None:
    assert of_body(RequeueRequest, ids=["a", " a ", "b"]).ids == ("a", "b")
    assert of_body(RequeueRequest) == RequeueRequest(ids=None, kinds=None, limit=50)


def test_the_content_of_a_file_is_unchanged() -> None:
    request = of_body(WriteConfigRequest, file="USER.md", content="  \n")
    assert request.content == "  \n"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(value=ANYTHING)
def test_any_value_of_a_field_is_accepted_or_refused(value: Any) -> None:
    for kind in REQUESTS:
        for field in request_fields(kind):
            body = {"content": "x", "query": "x", "reason": "x", "id": "x", field.spellings[0]: value}
            try:
                of_body(kind, **body)
            except InvalidRequest:
                continue
            except Exception as error:
                error.add_note(f"{kind.__name__}, {body}")
                raise
