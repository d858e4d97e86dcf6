"""The commands edit, recover and forget, which change stored memories.

A set of memories is deleted exactly as it was shown: the second request has the ids of the preview and its confirm
token, so that the daemon refuses it if the set has changed since.

Source: memory-api.txt "Memories", "POST /api/memory/forget"; docs/compatibility.md "Forget and modify";
docs/decisions.md 38 and 42.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote

import click

from signet_actors.cli.connection import DaemonClient, DaemonReply, memory_path, print_answer
from signet_actors.cli.exit_codes import REFUSED, explanation
from signet_actors.cli.invocation import (
    Invocation,
    command,
    page_options,
    print_unusual_type,
    project_option,
    reason_option,
    split_tags,
    version_option,
)
from signet_actors.cli.memories import read_text
from signet_actors.cli.memory_rows import (
    MIN_PREFIX_CHARS,
    UnusableId,
    full_id,
    named_if_unknown,
    print_memories,
    project_name,
    short_id,
)
from signet_actors.cli.presentation import (
    SINCE,
    UNTIL,
    counted,
    on_terminal,
    one_line,
    print_json,
    print_message,
    print_result,
    require_confirmation,
)
from signet_actors.cli.show import find_session
from signet_actors.errors import ErrorCode, RequestRefused


@command(agent=True)
@click.argument("memory_id", metavar="ID")
@click.option("--content", "-c", metavar="TEXT", help="New text; `-` reads it from standard input.")
@click.option("--type", metavar="TYPE", help="New type.")
@click.option(
    "--tags", "-t", multiple=True, metavar="A,B", help="New tags, replacing the old ones; an empty text removes all."
)
@click.option("--importance", "-i", type=click.FloatRange(0, 1), help="New importance from 0 to 1.")
@click.option("--pin/--unpin", "pinned", default=None, help="Pin or unpin it.")
@project_option("Project to move it to; an empty text: it belongs to none.")
@reason_option("edited on the command line")
@version_option()
def edit(
    invocation: Invocation,
    memory_id: str,
    content: str | None,
    tags: tuple[str, ...],
    reason: str,
    if_version: int | None,
    **given: Any,
) -> None:
    """Change a memory.

    Without an option that changes something, $EDITOR opens with the text. The edited text is stored only if the memory
    has not changed in the meantime.
    """
    client = invocation.client()
    patch = {name: value for name, value in given.items() if value is not None}
    if content is not None:
        patch["content"] = read_text((content,))
    if tags:
        patch["tags"] = split_tags(tags) or []
    named, memory_id = memory_id, full_id(client, memory_id)
    body = {"reason": reason, "if_version": if_version}
    if patch:
        answer = _applied(client, "PATCH", memory_id, "", {**patch, **body}, *EDITED)
    else:
        with named_if_unknown(memory_id):
            found = client.get(memory_path(memory_id))
        body["if_version"] = if_version or found.body.get("version")
        with _edited(found.text("content")) as text:
            if text is None:
                if invocation.as_json:
                    print_json({"id": memory_id, "status": "no_changes"})
                else:
                    print_message("Nothing changed.")
                return
            answer = _applied(client, "PATCH", memory_id, "", {"content": text, **body}, *EDITED)
    is_same = answer.body.get("status") == "no_changes"
    told = "has these values already." if is_same else f"(version {answer.body.get('newVersion')})."
    invocation.print_done(answer, f"{'' if is_same else 'Updated '}{short_id(memory_id, named)} {told}")
    if not invocation.as_json:
        if parts := answer.body.get("otherParts"):
            stay = "stays as it was" if len(parts) == 1 else "stay as they were"
            print_message(f"It is a part of a longer text, of which {counted(len(parts), 'other part')} {stay}.")
        _print_moved_with(answer.body)
        print_unusual_type(given["type"])


@command(agent=True)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--whole", is_flag=True, help="Of a part of a long text: recover all its parts.")
@reason_option("recovered on the command line")
@version_option()
def recover(invocation: Invocation, ids: tuple[str, ...], whole: bool, reason: str, if_version: int | None) -> None:
    """Recover deleted memories.

    Possible for 30 days after the deletion; `signet list --deleted` shows the candidates. Of several, one that cannot
    be recovered does not stop the others; the exit code is 1 then.
    """
    if if_version is not None and len(ids) > 1:
        raise click.UsageError("--if-version goes with exactly one ID")
    client = invocation.client()
    found = [full_id(client, given, deleted=True) for given in ids]
    body = {"reason": reason, "if_version": if_version, "whole": whole or None}
    if len(found) == 1:
        answer = _applied(client, "POST", found[0], "/recover", body, "recovered")
        invocation.print_done(
            answer, f"Recovered {short_id(found[0], ids[0])} (version {answer.body.get('newVersion')})."
        )
        if not invocation.as_json:
            _print_facts(answer.body, "recoveredWith", "Recovered", whole=whole)
        return
    recovered: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for memory_id in dict.fromkeys(found):
        if any(memory_id in body.get("recoveredWith", ()) for body in recovered):
            continue
        try:
            answer = _applied(client, "POST", memory_id, "/recover", body, "recovered")
        except RequestRefused as error:
            if error.code not in {ErrorCode.NOT_FOUND, ErrorCode.CONFLICT}:
                raise
            refused.append({"id": memory_id, "error": error.detail, "code": error.code.value})
            if not invocation.as_json:
                about = "" if error.code is ErrorCode.NOT_FOUND else f"{memory_id} was not recovered: "
                print_message(f"{about}{explanation(error).rstrip('.')}.")
            continue
        recovered.append(answer.body)
        if not invocation.as_json:
            print_result(f"Recovered {memory_id} (version {answer.body.get('newVersion')}).")
            _print_facts(answer.body, "recoveredWith", "Recovered", whole=whole)
    if invocation.as_json:
        print_json({"recovered": recovered, "refused": refused})
    if refused:
        click.get_current_context().exit(REFUSED)


def _applied(
    client: DaemonClient, method: str, memory_id: str, tail: str, body: dict[str, Any], *words: str
) -> DaemonReply:
    """Send a change of the memory; return the daemon's reply, which has one of the ``words`` as its status."""
    with named_if_unknown(memory_id):
        answer = client.send(method, memory_path(memory_id, tail), body)
    answer.confirm("status", *words)
    return answer


@contextmanager
def _edited(content: str) -> Iterator[str | None]:
    """Open the text in the user's editor and yield the new text; None if it is unchanged."""
    from signet_actors.cli.edited_text import edited_text  # noqa: PLC0415 - slow; not needed to remember or recall

    options = "--content, --type, --tags, --importance, --project or --pin/--unpin"
    with edited_text(content + "\n", ".md", instead=f"nothing to change: give {options}") as text:
        edited = text.rstrip("\n")
        if not edited.strip():
            raise click.UsageError("the text is empty; `signet forget` deletes a memory")
        yield None if edited == content.rstrip("\n") else edited


BATCH_LIMIT = 200
EDITED = ("updated", "no_changes")
SHOWN_IN_FULL = 30
SESSIONS_SHOWN = 5
TEXT_SHOWN = 100
SELECTION = ("query", "type", "who", "source_type", "since", "until")
"""The options that select memories, beside ``--tags``."""


@command(agent=True)
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--query", "-q", help="Select memories that contain any of these words.")
@click.option("--type", metavar="TYPE", help="Select memories of this type.")
@click.option("--tags", "-t", multiple=True, metavar="A,B", help="Select memories with any of these tags.")
@click.option("--who", help="Select memories of this author.")
@click.option("--source-type", help="Select by kind of source.")
@click.option("--since", metavar="TIME", type=SINCE, help="Select memories created at this time or later.")
@click.option("--until", metavar="TIME", type=UNTIL, help="Select memories created at this time or earlier.")
@page_options(BATCH_LIMIT, "memories", offset=False)
@reason_option("forgotten on the command line")
@version_option("With one ID: delete it only if it still has this version.")
@click.option("--force", is_flag=True, help="With one ID: delete it even if it is pinned; it is recoverable.")
@click.option("--permanently", is_flag=True, help="Delete for good, pinned memories too; nothing is recoverable.")
@click.option("--whole", is_flag=True, help="With one ID, of a part of a long text: forget all its parts.")
@click.option("--preview", is_flag=True, help="Only show what would be deleted.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def forget(invocation: Invocation, ids: tuple[str, ...], tags: tuple[str, ...], limit: int, **given: Any) -> None:
    """Delete memories, recoverable for 30 days unless --permanently.

    Name them by ID, or select them with options; a selection and several IDs are shown before you are asked. ID may
    also be the key of a session (`signet sessions`): what was said in it is erased for good, and its memories stay;
    the summaries of it among them are named.
    """
    selection = {"tags": split_tags(tags), **{name: given.pop(name) for name in SELECTION}}
    selected = any(value is not None for value in selection.values())
    if bool(ids) == selected:
        raise click.UsageError(
            "give IDs or a selection, not both"
            if ids
            else "give the memories to forget: IDs, or --query, --type, --tags, …"
        )
    wanted = _Forgetting(invocation, **given)
    if wanted.if_version is not None and (len(ids) != 1 or wanted.permanently):
        raise click.UsageError("--if-version goes with exactly one ID, and not with --permanently")
    if wanted.force and (len(ids) != 1 or wanted.permanently):
        raise click.UsageError("--force goes with exactly one ID; --permanently deletes pinned memories too, for good")
    if wanted.whole and len(ids) != 1:
        raise click.UsageError("--whole goes with exactly one ID")
    if len(ids) > BATCH_LIMIT:
        raise click.UsageError(f"at most {BATCH_LIMIT} IDs at a time")
    client = wanted.client
    try:
        found = [full_id(client, one) for one in ids]
        if len(ids) == 1 and not wanted.preview and not wanted.permanently:
            wanted.forget_one(found[0], short_id(found[0], ids[0]))
        elif ids:
            if wanted.whole:
                found = wanted.parts_of(found[0])
            wanted.forget_all({"ids": list(dict.fromkeys(found)), "limit": BATCH_LIMIT})
        else:
            wanted.forget_all({"limit": limit, **selection})
    except (UnusableId, RequestRefused) as error:
        is_refused = isinstance(error, RequestRefused) and error.code is not ErrorCode.NOT_FOUND
        is_ambiguous = isinstance(error, UnusableId) and len(ids[0]) >= MIN_PREFIX_CHARS
        session = None if len(ids) != 1 or is_refused or is_ambiguous else find_session(client, ids[0])
        if session is None:
            raise
        wanted.forget_session(session)


@dataclass
class _Forgetting:
    """What is to be forgotten, and how: the options of the command."""

    invocation: Invocation
    reason: str
    if_version: int | None
    force: bool
    permanently: bool
    whole: bool
    preview: bool
    yes: bool

    @cached_property
    def client(self) -> DaemonClient:
        return self.invocation.client()

    def forget_session(self, key: str) -> None:
        """Erase what was said in the session. Raises RequestRefused for the answer no."""
        path = f"/api/sessions/{quote(key, safe='')}/transcript"
        if self.preview or not self.yes:
            body = self.client.get(path, view="turns", limit=1).body
            turns = counted(body.get("turnCount") or 0, "turn")
            print_message(f"{one_line(key)} is a session of {turns}; it would be erased for good. Its memories stay.")
            if self.preview:
                return
            require_confirmation("Erase what was said in it?", "nothing was deleted")
        answer = self.client.send("DELETE", path, {})
        self.invocation.print_done(answer, f"Erased what was said in the session {one_line(key)}.")
        summaries = [one_line(each) for each in answer.body.get("saidBy") or ()]
        if summaries and not self.invocation.as_json:
            what, them = ("A summary of it stays", "it") if len(summaries) == 1 else ("Summaries of it stay", "them")
            named = " ".join(map(shlex.quote, summaries[:BATCH_LIMIT]))
            print_message(self.invocation.advice(f"{what}: `signet forget {named}` forgets {them}."))

    def parts_of(self, memory_id: str) -> list[str]:
        """Return the ids of the live parts of the text of the memory, or its own; as many as one request may have."""
        with named_if_unknown(memory_id):
            answer = self.client.get(memory_path(memory_id), withParts=True)
        return [part["id"] for part in answer.records("parts")][:BATCH_LIMIT] if "parts" in answer.body else [memory_id]

    def forget_one(self, memory_id: str, shown: str) -> None:
        """Forget a memory, which is ``shown`` by this id. Raises RequestRefused for the answer no."""
        if_version = self.if_version
        if not self.yes:
            with named_if_unknown(memory_id):
                found = self.client.get(memory_path(memory_id), withParts=True)
            found.text("content")
            memory = found.body
            others = len(memory.get("parts") or ()) - 1
            if memory.get("pinned") and not self.force:
                raise RequestRefused(
                    f"{shown} is pinned; `signet forget {shown} --force` forgets it, and it is recoverable",
                    code=ErrorCode.CONFLICT,
                )
            pinned = ", pinned" if memory.get("pinned") else ""
            pinned += f", project {project_name(memory)}" if memory.get("project") else ""
            print_message(f"{shown} ({one_line(memory.get('type'))}{pinned}): {one_line(memory.get('content'), 300)}")
            if others > 0 and not self.whole:
                print_message(f"It is a part of a longer text of {others + 1} parts; --whole forgets all of them.")
            if_version = if_version or memory.get("version")
            with_others = f" and its {counted(others, 'other part')}" if self.whole and others > 0 else ""
            require_confirmation(f"Forget it{with_others}?", "nothing was deleted")
        body = {"reason": self.reason, "force": self.force, "if_version": if_version, "whole": self.whole or None}
        with named_if_unknown(memory_id):
            answer = self.client.send("DELETE", memory_path(memory_id), body)
        answer.confirm("status", "deleted")
        if self.invocation.as_json:
            print_answer(answer)
        else:
            recover = f"`signet recover {shown}{' --whole' * self.whole}`"
            print_result(self.invocation.advice(f"Forgot {shown}; {recover} brings it back."))
            _print_said_in(self.invocation, answer.body, whole=self.whole)

    def forget_all(self, chosen: dict[str, Any]) -> None:
        """Forget the chosen memories after a preview. Raises RequestRefused for the answer no."""
        request = {**chosen, "mode": "preview", "force": self.permanently}
        answer = self.client.ask("/api/memory/forget", request)
        answer.confirm("mode", "preview")
        candidates = answer.records("candidates")
        if not all(isinstance(candidate.get("id"), str) for candidate in candidates):
            raise answer.malformed("a candidate without an id")
        found: list[str] = [candidate["id"] for candidate in candidates]
        unknown = [memory_id for memory_id in chosen.get("ids", []) if memory_id not in found]
        if self.preview and self.invocation.as_json:
            print_answer(answer)
            return
        for memory_id in unknown:
            print_message(f"{one_line(memory_id)} was not found (unknown, deleted, or another agent's).")
        if not candidates:
            raise RequestRefused("nothing matches; nothing was deleted", code=ErrorCode.NOT_FOUND)
        if "ids" not in chosen and len(candidates) >= chosen["limit"]:
            print_message(f"These are the first {len(candidates)}; there may be more (-n selects up to {BATCH_LIMIT}).")
        if self.preview:
            _print_candidates(self.client, candidates, to_stderr=False)
            print_message(f"{counted(len(candidates), 'memory')} selected; nothing was deleted")
            _print_other_parts(self.invocation, answer.body)
            return
        if not self.yes:
            _print_candidates(self.client, candidates, to_stderr=self.invocation.as_json)
            count, they = (f"these {len(found)} memories", "they") if len(found) > 1 else ("this memory", "it")
            require_confirmation(
                f"Delete {count} PERMANENTLY ({they} cannot be recovered)?" if self.permanently else f"Forget {count}?",
                "nothing was deleted",
            )
        executed = self.client.send(
            "POST",
            "/api/memory/forget",
            {
                "mode": "execute",
                "ids": found,
                "limit": BATCH_LIMIT,
                "reason": self.reason,
                "force": self.permanently,
                "confirm_token": answer.body.get("confirmToken"),
            },
        )
        executed.confirm("mode", "execute")
        results = executed.records("results")
        if unreported := set(found) - {result["id"] for result in results if isinstance(result.get("status"), str)}:
            raise executed.malformed(f"no result for {one_line(min(unreported))}")
        kept = [result for result in results if result.get("status") != "deleted"]
        if self.invocation.as_json:
            print_answer(executed)
        else:
            for result in kept:
                print_message(f"{one_line(result['id'])} was kept: {one_line(_why(result['status']))}")
            tail = (
                "permanently" if self.permanently else self.invocation.advice("`signet recover ID…` brings them back")
            )
            print_result(f"Forgot {len(results) - len(kept)} of {len(found)}; {tail}.")
            _print_said_in(self.invocation, executed.body)
        if kept or unknown:
            click.get_current_context().exit(REFUSED)


def _print_facts(body: dict[str, Any], field: str, what: str, *, whole: bool = False) -> None:
    """Print which facts shared the fate of the memory that they were made of; with ``whole`` also parts of its text."""
    facts = [one_line(fact) for fact in body.get(field) or ()]
    if facts:
        shown = f"{', '.join(facts[:SESSIONS_SHOWN])}{', …' if facts[SESSIONS_SHOWN:] else ''}"
        why = "as a part of the text or made of it" if whole else "because the pipeline had made it of this"
        print_message(f"{what} too, {why}: {shown}.")


def _print_moved_with(body: dict[str, Any]) -> None:
    """Print which facts have moved to the project with the memory that they were made of."""
    facts = [one_line(fact) for fact in body.get("movedWith") or ()]
    if facts:
        shown = f"{', '.join(facts[:SESSIONS_SHOWN])}{', …' if facts[SESSIONS_SHOWN:] else ''}"
        print_message(f"Moved too, because the pipeline had made it of this: {shown}.")


def _print_other_parts(invocation: Invocation, body: dict[str, Any]) -> None:
    """Print how many other parts of a long text stay, and the command that forgets them."""
    parts = [each for each in body.get("otherParts") or () if isinstance(each, str)]
    if parts:
        stay, them = ("stays", "it") if len(parts) == 1 else ("stay", "them")
        told = f"{counted(len(parts), 'other part')} of a longer text {stay}"
        print_message(invocation.advice(f"{told}: `signet forget {one_line(parts[0])} --whole` forgets {them}."))


_SAYING = {
    "saidBy": ("memories say", "Another memory says it or was made of it: `signet forget {}` forgets that."),
    "saidIn": ("sessions say", "It was said in a session, whose transcript keeps it: `signet forget {}` erases that."),
    "mayBeSaidIn": (
        "sessions may say",
        "A session may say it in other words (`signet show {0}`): `signet forget {0}` erases that.",
    ),
}


def _print_said_in(invocation: Invocation, body: dict[str, Any], *, whole: bool = False) -> None:
    """Print what was forgotten with it, and the memories and sessions that still say it."""
    _print_facts(body, "forgottenWith", "Forgot", whole=whole)
    _print_other_parts(invocation, body)
    for field, (more, form) in _SAYING.items():
        found = [each for each in body.get(field) or () if isinstance(each, str)]
        for each in found[:SESSIONS_SHOWN]:
            print_message(invocation.advice(form.format(shlex.quote(one_line(each)))))
            if field == "saidBy" and (described := _described(invocation.client(), each)):
                print_message(f"  {described}")
        if len(found) > SESSIONS_SHOWN:
            print_message(f"{len(found) - SESSIONS_SHOWN} more {more} it (--json names them).")


def _described(client: DaemonClient, memory_id: str) -> str:
    """Return the project and the beginning of the text of a memory; nothing of one that is not there any more."""
    try:
        memory = client.get(memory_path(memory_id)).body
    except RequestRefused:
        return ""
    project = f"project {project_name(memory)}: " if memory.get("project") else ""
    return f"{project}{one_line(memory.get('content'), TEXT_SHOWN)}"


def _why(status: str) -> str:
    return {
        "pinned_requires_force": "it is pinned (unpin it with `signet edit ID --unpin`)",
        "version_conflict": "it changed after the preview",
        "already_deleted": "it was already deleted",
        "not_found": "it does not exist",
    }.get(status, status)


def _print_candidates(client: DaemonClient, candidates: list[dict[str, Any]], *, to_stderr: bool) -> None:
    rows: list[dict[str, Any]] = []
    for number, candidate in enumerate(candidates):
        memory: dict[str, Any] = {}
        if number < SHOWN_IN_FULL:
            try:
                memory = client.get(memory_path(str(candidate["id"]))).body
            except RequestRefused as refused:
                if refused.code is not ErrorCode.NOT_FOUND:
                    raise
                memory = {"content": "(no longer found)"}
        rows.append({**memory, "id": candidate["id"], "pinned": candidate.get("pinned")})
    if to_stderr or not on_terminal():
        for row in rows:
            cells = (row["id"], row.get("type"), "pinned" if row["pinned"] else "", one_line(row.get("content"), 200))
            click.echo("\t".join(one_line(cell) for cell in cells), err=to_stderr)
    else:
        print_memories(rows)
