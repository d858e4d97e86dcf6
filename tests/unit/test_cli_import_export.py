"""``signet export`` and ``signet import`` against a scripted daemon."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from click.testing import Result

from signet_actors.cli import import_export
from signet_actors.errors import InvalidRequest
from tests.support.scripted_daemon import ScriptedDaemon

if TYPE_CHECKING:
    from collections.abc import Callable

EXPORT, IMPORT = "/api/memory/export", "/api/memory/import"
HEADER = b'{"format":"signet-memories","version":1}\n'
LINES = {"Content-Type": "application/x-ndjson"}


def done(imported: int, *refused: dict[str, Any], deduped: int = 0, receipt: str | None = None) -> dict[str, Any]:
    counts = {"imported": imported, "deduped": deduped, "redacted": 0, "refused": list(refused)}
    return counts if receipt is None else {**counts, "receipt": receipt}


def memories(count: int) -> bytes:
    return b"".join(json.dumps({"content": f"memory {number}"}).encode() + b"\n" for number in range(count))


# export


def test_an_export_follows_the_pages_into_a_private_file(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path
) -> None:
    daemon.on("GET", EXPORT, HEADER + b'{"content":"a"}\n', headers={"x-signet-next-cursor": "3"}, media_type=LINES)
    daemon.on("GET", EXPORT, b'{"content":"b"}\n', media_type=LINES)
    file = tmp_path / "out.jsonl"
    file.write_text("an older export")
    result = signet("export", str(file), "--agent", "bob", "--scope", "s")
    assert (result.exit_code, result.stdout) == (0, f"Exported 2 memories to {file}.\n")
    assert file.read_bytes() == HEADER + b'{"content":"a"}\n{"content":"b"}\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [asked.query.get("after") for asked in daemon.asked] == ["0", "3"]
    assert {asked.query["agentId"] + asked.query["scope"] for asked in daemon.asked} == {"bobs"}
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_an_interrupted_export_keeps_the_older_file(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path
) -> None:
    daemon.on("GET", EXPORT, HEADER, headers={"x-signet-next-cursor": "3"}, media_type=LINES)
    daemon.on("GET", EXPORT, {"error": "no", "code": "internal"}, status=500)
    file = tmp_path / "out.jsonl"
    file.write_text("an older export")
    assert signet("export", str(file)).exit_code == 1
    assert file.read_text() == "an older export"


def test_an_export_to_standard_output_has_only_the_lines(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", EXPORT, HEADER + b'{"content":"a"}\n', media_type=LINES)
    assert signet("export", "-").stdout_bytes == HEADER + b'{"content":"a"}\n'


@pytest.mark.parametrize("cursor", ["0", "-1", "x", ""])
def test_a_repeated_cursor_ends_the_export(daemon: ScriptedDaemon, signet: Callable[..., Result], cursor: str) -> None:
    daemon.on("GET", EXPORT, HEADER, headers={"x-signet-next-cursor": cursor}, media_type=LINES)
    assert signet("export", "-").exit_code == 1
    assert len(daemon.asked) == 1


def test_a_page_of_another_program_is_refused(daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    daemon.on("GET", EXPORT, b"<html>", media_type={"Content-Type": "text/html"})
    result = signet("export", "-")
    assert (result.exit_code, result.stdout) == (1, "")


# import


def test_an_import_counts_the_memories_that_its_entries_became(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(memories(1))
    daemon.script("POST", IMPORT, {**done(10, deduped=2), "memories": 19})
    result = signet("import", str(file))
    assert result.stdout == "Imported 19 memories from 10 entries, 2 existed already, 0 refused.\n"
    told = json.loads(signet("import", str(file), "--json").stdout)
    assert (told["imported"], told["memories"]) == (10, 19)


def test_an_import_names_the_entries_whose_text_has_changed(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path
) -> None:
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps([{"id": "a", "memory": "old"}, {"id": "b", "memory": "changed"}]))
    daemon.script("POST", IMPORT, {**done(0, deduped=2), "memories": 0, "differing": [{"line": 2, "id": "m-2"}]})
    result = signet("import", str(file), "--from", "mem0")
    assert result.exit_code == 0
    assert result.stderr == "mem0:b: its text has changed; the memory m-2 was left as it is\n"
    assert result.stdout == "Imported 0 memories, 2 existed already, 1 with another text left as it was, 0 refused.\n"
    told = json.loads(signet("import", str(file), "--from", "mem0", "--json").stdout)
    assert (told["differingCount"], told["differing"]) == (1, [{"id": "m-2", "source": "mem0:b"}])


def test_an_import_sends_batches_and_prints_their_results(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(HEADER + memories(1200))
    daemon.on("POST", IMPORT, done(300, deduped=10))
    result = signet("import", str(file), "--agent", "bob")
    assert (result.exit_code, result.stdout) == (0, "Imported 900 memories, 30 existed already, 0 refused.\n")
    sent = sorted(daemon.asked, key=lambda asked: asked.body)
    assert b"".join(asked.body + b"\n" for asked in sent).count(b"content") == 1200
    assert len({asked.headers["idempotency-key"] for asked in sent}) == 3
    assert {asked.headers["content-type"] for asked in sent} == {"application/x-ndjson"}
    assert {asked.query["agentId"] for asked in sent} == {"bob"}
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_refused_lines_are_reported_with_their_numbers_and_exit_code_1(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_export, "BATCH_LINES", 2)
    monkeypatch.setattr(import_export, "CONNECTIONS", 1)
    file = tmp_path / "in.jsonl"
    file.write_bytes(HEADER + memories(3))
    daemon.on("POST", IMPORT, done(1))
    daemon.on("POST", IMPORT, done(1, {"line": 2, "error": "bad \x1b[31m", "code": "invalid_request", "field": "who"}))
    result = signet("import", str(file))
    assert result.exit_code == 1
    assert "line 4: bad \\u001b[31m (who)" in result.stderr
    assert "1 refused" in result.stdout


def test_an_oversized_line_is_refused_by_the_client_and_the_others_are_sent(
    daemon: ScriptedDaemon, signet: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_export, "MAX_LINE_BYTES", 40)
    daemon.on("POST", IMPORT, done(2, {"line": 3, "error": "no", "code": "invalid_request"}))
    result = signet("--json", "import", "-", stdin=b'{"content":"a"}\n' + b"x" * 5000 + b'\n{"content":"b"}')
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert [(line["line"], line["code"]) for line in told["refused"]] == [
        (2, "payload_too_large"),
        (3, "invalid_request"),
    ]
    assert daemon.asked[0].body == b'{"content":"a"}\n\n{"content":"b"}'


@pytest.fixture
def interrupted(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An import of six lines, two in a batch, of which the first two batches were stored."""
    monkeypatch.setattr(import_export, "BATCH_LINES", 2)
    monkeypatch.setattr(import_export, "CONNECTIONS", 1)
    file = tmp_path / "in.jsonl"
    file.write_bytes(memories(6))
    daemon.on("POST", IMPORT, done(2, receipt="r1"))
    daemon.on("POST", IMPORT, done(2, receipt="r2"))
    daemon.on("POST", IMPORT, {"error": "disk full", "code": "storage_full"}, status=507)
    stopped = signet("import", str(file))
    assert stopped.exit_code == 4
    assert "before line 5 is done" in stopped.stderr
    return file


def test_an_interrupted_import_continues_where_it_stopped(
    daemon: ScriptedDaemon, signet: Callable[..., Result], interrupted: Path
) -> None:
    kept = interrupted.with_name("in.jsonl.import-state")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    before = list(daemon.asked)
    daemon.script("POST", IMPORT, done(2, receipt="r1"), done(2, receipt="r2"), done(2, receipt="r3"))
    daemon.asked.clear()
    result = signet("import", str(interrupted))
    assert (result.exit_code, result.stdout) == (0, "Imported 6 memories, 0 existed already, 0 refused.\n")
    assert "Continuing at line 5" in result.stderr
    assert [asked.body for asked in daemon.asked] == [asked.body for asked in before]
    keys = [asked.headers["idempotency-key"] for asked in daemon.asked]
    assert keys == [asked.headers["idempotency-key"] for asked in before]
    assert not kept.exists()


def test_an_import_that_ctrl_c_ends_says_that_it_can_be_continued(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_export, "BATCH_LINES", 2)
    monkeypatch.setattr(import_export, "CONNECTIONS", 1)
    first = {**done(2), "memories": 2, "differing": 0, "differences": [], "receipts": ["r1"]}
    sent = iter([(first, []), KeyboardInterrupt()])
    monkeypatch.setattr(import_export, "send_batch", mock.Mock(side_effect=sent))
    file = tmp_path / "in.jsonl"
    file.write_bytes(memories(6))
    stopped = signet("import", str(file))
    assert stopped.exit_code == 130
    assert "Interrupted after 2 lines; run the same command again to continue." in stopped.stderr


def test_an_import_that_ctrl_c_ends_in_its_first_batch_says_so_too(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_export, "send_batch", mock.Mock(side_effect=KeyboardInterrupt()))
    file = tmp_path / "in.jsonl"
    file.write_bytes(memories(6))
    stopped = signet("import", str(file))
    assert (stopped.exit_code, daemon.asked) == (130, [])
    assert "Interrupted after 0 lines; run the same command again to continue." in stopped.stderr


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"results": [{"id": "1", "memory": "x"}]}),
        json.dumps({"results": [{"id": "1", "memory": "x"}]}, indent=2),
        json.dumps([{"id": "1", "memory": "x"}]),
        '[\n{"id": "1"},\n{"content": "x"}\n]\n',
        "one\ntwo\n",
    ],
    ids=["one line", "many lines", "list", "one line like a memory", "no JSON"],
)
def test_a_file_without_a_memory_in_a_line_is_refused_once_with_the_name_of_the_option(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path, text: str
) -> None:
    file = tmp_path / "mem0.json"
    file.write_text(text)
    result = signet("import", str(file))
    assert (result.exit_code, daemon.asked) == (2, [])
    assert result.stderr.count("name its format with `--from mem0`, `--from claude-mem`") == 1


def test_a_file_with_one_memory_among_other_lines_is_sent_as_it_is(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(b'{\n{"content": "x"}\nno JSON\n')
    daemon.on("POST", IMPORT, done(1))
    assert signet("import", str(file)).exit_code == 0
    assert len(daemon.asked) == 1


@pytest.mark.parametrize("receipts", [("other",), ("r1", "other"), (None,)], ids=["none", "one", "older daemon"])
def test_an_import_whose_batches_are_no_longer_stored_begins_at_line_1(
    daemon: ScriptedDaemon, signet: Callable[..., Result], interrupted: Path, receipts: tuple[str | None, ...]
) -> None:
    before = list(daemon.asked)
    proofs = [done(2, receipt=receipt) for receipt in receipts]
    daemon.script("POST", IMPORT, *proofs, *(done(2, receipt=f"new {number}") for number in range(3)))
    daemon.asked.clear()
    result = signet("import", str(interrupted))
    assert (result.exit_code, result.stdout) == (0, "Imported 6 memories, 0 existed already, 0 refused.\n")
    assert "Beginning at line 1 again" in result.stderr
    sent = daemon.asked[len(receipts) :]
    assert [asked.body for asked in sent] == [asked.body for asked in before]
    assert [asked.headers["idempotency-key"] for asked in sent] == [
        asked.headers["idempotency-key"] for asked in before
    ]


@pytest.mark.parametrize("offset", ["abc", -5, 10**30, 10**9, None, True, 1.5])
def test_an_impossible_saved_position_is_ignored(
    daemon: ScriptedDaemon,
    signet: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    offset: object,
) -> None:
    monkeypatch.setattr(import_export, "BATCH_LINES", 2)
    monkeypatch.setattr(import_export, "CONNECTIONS", 1)
    file = tmp_path / "in.jsonl"
    file.write_bytes(memories(4))
    daemon.on("POST", IMPORT, done(2))
    daemon.on("POST", IMPORT, {"error": "disk full", "code": "storage_full"}, status=507)
    assert signet("import", str(file)).exit_code == 4
    position = tmp_path / "in.jsonl.import-state"
    kept = json.loads(position.read_bytes())
    assert kept["done"]["offset"] > 0
    kept["done"]["offset"] = offset
    position.write_text(json.dumps(kept))
    daemon.asked.clear()
    daemon.on("POST", IMPORT, done(2))
    signet("import", str(file))
    assert daemon.asked[0].body is not None
    assert "memory 0" in str(daemon.asked[0].body)


@pytest.mark.parametrize("name", ["in.jsonl.import-state", "in.jsonl.import-state.new"])
def test_a_fifo_in_place_of_the_position_file_is_refused(
    signet: Callable[..., Result], tmp_path: Path, name: str
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(memories(2))
    os.mkfifo(tmp_path / name)
    result = signet("import", str(file))
    assert (result.exit_code, name in result.stderr) == (2, True)


def test_a_file_that_changed_meanwhile_is_imported_from_its_beginning(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(memories(2))
    position = import_export.ImportState(file, None, "here")
    position.write(import_export.ImportProgress(offset=22, line=2, imported=1))
    file.write_bytes(memories(3))
    daemon.on("POST", IMPORT, done(3))
    assert signet("import", str(file)).exit_code == 0
    assert daemon.asked[0].body.count(b"content") == 3


def test_a_position_is_valid_for_its_daemon_only(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(memories(2))
    import_export.ImportState(file, None, "http://one").write(
        import_export.ImportProgress(offset=22, line=2, imported=1)
    )
    assert import_export.ImportState(file, None, "http://one").read().offset == 22
    assert import_export.ImportState(file, None, "http://other").read().offset == 0
    assert import_export.ImportState(file, "bob", "http://one").read().offset == 0


@pytest.mark.parametrize("from_file", [True, False])
def test_a_completed_import_can_be_repeated(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path, from_file: bool
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(memories(2))
    for _ in range(2):
        daemon.on("POST", IMPORT, done(2))
        given = (str(file),) if from_file else ("-",)
        assert signet("import", *given, stdin=None if from_file else memories(2)).exit_code == 0
    assert len({asked.body for asked in daemon.asked}) == 1
    assert len({asked.headers["idempotency-key"] for asked in daemon.asked}) == 2


def test_an_import_that_was_killed_before_its_first_answer_sends_the_same_key(
    daemon: ScriptedDaemon, signet: Callable[..., Result], tmp_path: Path
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(memories(2))
    daemon.on("POST", IMPORT, {"error": "disk full", "code": "storage_full"}, status=507)
    assert signet("import", str(file)).exit_code == 4
    daemon.on("POST", IMPORT, done(2))
    assert signet("import", str(file)).exit_code in {0, 4}
    assert signet("import", str(file)).exit_code == 0
    assert len({asked.headers["idempotency-key"] for asked in daemon.asked[:2]}) == 1


def test_a_batch_whose_outcome_is_unknown_is_sent_again_under_its_key(
    daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    unknown = {"error": "unknown", "code": "outcome_unknown"}
    for _ in range(3):
        daemon.on("POST", IMPORT, unknown, status=504)
    daemon.on("POST", IMPORT, done(1))
    assert signet("import", "-", stdin=memories(1)).exit_code == 0
    assert len({asked.headers["idempotency-key"] for asked in daemon.asked}) == 1


def test_a_batch_that_is_too_large_is_split(
    daemon: ScriptedDaemon, signet: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_export, "CONNECTIONS", 1)
    too_much = {"error": "too much", "code": "payload_too_large"}
    daemon.on("POST", IMPORT, too_much, status=413)
    daemon.on("POST", IMPORT, done(1))
    daemon.on("POST", IMPORT, too_much, status=413)
    result = signet("--json", "import", "-", stdin=memories(2))
    told = json.loads(result.stdout)
    assert (told["imported"], [line["line"] for line in told["refused"]]) == (1, [2])


def test_a_file_of_another_format_is_not_imported(signet: Callable[..., Result], daemon: ScriptedDaemon) -> None:
    result = signet("import", "-", stdin=b'{"format":"signet-memories","version":9}\n' + memories(1))
    assert result.exit_code != 0
    assert "signet-memories 9" in result.stderr
    assert daemon.asked == []


def test_an_empty_file_and_one_with_blank_lines_are_imported_without_a_request(
    signet: Callable[..., Result], daemon: ScriptedDaemon
) -> None:
    for given in (b"", b"\n\n \n"):
        assert signet("import", "-", stdin=given).exit_code == 0
    assert daemon.asked == []


def test_a_file_that_is_not_there_is_a_usage_error(signet: Callable[..., Result], tmp_path: Path) -> None:
    assert signet("import", str(tmp_path / "missing")).exit_code == 2
    assert signet("export", str(tmp_path / "missing" / "file")).exit_code == 2


def test_batches_cover_the_input_without_gap_or_overlap() -> None:
    raw = HEADER + memories(1700) + b'{"content":"no end of line"}'
    found = list(import_export.batches(io.BytesIO(raw), 0, 1))
    assert [batch.offset for batch in found][1:] == [batch.end for batch in found][:-1]
    assert found[-1].end == len(raw)
    assert b"\n".join(batch.payload for batch in found) == raw
    assert [batch.first_line for batch in found] == [1, 501, 1001, 1501]
    later = list(import_export.batches(io.BytesIO(raw[found[2].offset :]), found[2].offset, 1001))
    assert [batch.key for batch in later] == [batch.key for batch in found[2:]]


def test_equal_batches_at_different_positions_have_different_keys() -> None:
    raw = b'{"content":"same"}\n' * 1000
    first, second = import_export.batches(io.BytesIO(raw), 0, 1)
    assert first.payload == second.payload
    assert first.key != second.key


@pytest.mark.parametrize(
    "text", [b"{", b"[1]", b'"x"', b'{"content":"format"}', b'{"format":"x","content":"y"}', b"[" * 9999]
)
def test_a_first_line_without_a_header_is_sent(text: bytes) -> None:
    import_export.check_header(text)


def test_the_header_of_an_unknown_format_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        import_export.check_header(b'{"format":"other"}')
