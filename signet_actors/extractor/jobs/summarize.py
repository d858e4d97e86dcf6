"""``summarize``: let a model summarize an ended session, store the summary as a memory, and write it as a file.

The model is asked first; then the writer stores the memory and makes it the subject of the job. From then on an
interrupted job goes on with the stored memory: no second answer can become a second summary. The file comes last, and
the job ends when its name is recorded. A job that is interrupted between the parts of a long session asks for all anew.

Source: architecture.txt "summary_jobs"; docs/compatibility.md "Summaries of sessions"; docs/decisions.md 14, 17, 19.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from signet_actors.config.pipeline_schema import PipelineV2Config
from signet_actors.config.workspace import Workspace
from signet_actors.domain import jobs
from signet_actors.domain import session_summaries as rules
from signet_actors.domain.extraction.answers import SESSION_SUMMARY
from signet_actors.domain.extraction.masking import masked
from signet_actors.domain.extraction.session_summary import SessionSummary, parse_session_summary
from signet_actors.errors import SignetError, UnusableAnswer
from signet_actors.extractor.job_runner import JobRun
from signet_actors.extractor.jobs.model_job import ModelJob
from signet_actors.extractor.prompts import session_parts_prompt, session_summary_prompt
from signet_actors.extractor.session_samples import read_sample
from signet_actors.protocol.leases import CompleteJob
from signet_actors.protocol.pipeline import JobMemory
from signet_actors.protocol.session_summaries import RecordNote, StoreSummary
from signet_actors.runtime.file_draft import FileDraft, fsync_path
from signet_actors.runtime.local_zone import LOCAL_ZONE
from signet_actors.runtime.sync_points import sync_point

MAX_SAME_NAME: Final = 1_000
_SUFFIX: Final = ".md"


def write_note(directory: Path, name: str, content: bytes) -> str:
    """Write ``content`` under ``name``, or with a number behind it; return the name of the file.

    The file appears complete, can be read by its owner only, and replaces nothing. One that has this content already,
    written by an interrupted attempt, is the result. Raises OSError.
    """
    for number in range(1, MAX_SAME_NAME + 1):
        path = directory / f"{name}{'' if number == 1 else f'-{number}'}{_SUFFIX}"
        if _has(path, content):
            return path.name
        if os.path.lexists(path):
            continue
        with FileDraft(path, f".{path.name}.new") as draft:
            draft.file.write(content)
            draft.sync()
            try:
                os.link(draft.path, path, follow_symlinks=False)
            except FileExistsError:
                continue
        fsync_path(directory)
        return path.name
    raise FileExistsError(f"{MAX_SAME_NAME} files have this name")


def _has(path: Path, content: bytes) -> bool:
    """Return whether the file has this content; a link is never followed."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(handle, "rb") as file:
        return file.read(len(content) + 1) == content


_TRIES: Final = 2
_DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_FULL_PAUSE_S: Final = 2.0
TRANSCRIPT_GONE: Final = '{"skipped":"transcript_gone"}'


class Summarize(ModelJob):
    """The kind ``summarize``."""

    name = jobs.SUMMARIZE
    needs_role = "searcher"

    def switched_off(self, pipeline: PipelineV2Config) -> str | None:
        reasons = {
            "enabled is false": not pipeline.enabled,
            "mutationsFrozen is true": pipeline.mutations_frozen,
            "shadowMode is true": pipeline.shadow_mode,
            "confirm is review": pipeline.confirm == "review",
            "summary.enabled is false": not pipeline.summary.enabled,
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    async def work(self, run: JobRun) -> None:
        part = msgspec.json.decode(run.job.payload or "", type=rules.SummaryPart)
        memory = run.job.subject or await self._summarized(run, part)
        if memory is None:
            return
        note, digest = await self._written(memory, part)
        sync_point("extractor.note_written")
        await run.report(RecordNote(run.job.id, run.job.lease_id, note, digest))

    async def _summarized(self, run: JobRun, part: rules.SummaryPart) -> JobMemory | None:
        """Return the memory that holds the summary, None if the transcript is gone, and the job is completed."""
        resources = self._resources
        sample = await read_sample(resources.actor, part, run.trace_id)
        if not sample.text():
            await run.report(CompleteJob(run.job.id, run.job.lease_id, TRANSCRIPT_GONE))
            return None
        sync_point("extractor.prompt_sent")
        said, gaps = await self._said(run, sample)
        if said is None:
            raise UnusableAnswer("the answer contained no summary of the session")
        # Secrets are always removed, as from the transcript: the user did not ask to store what they are in.
        content = masked(rules.memory_text(said.title or "session", f"{said.summary}\n\n{gaps}".rstrip()))
        sync_point("extractor.summarized")
        stored = await run.report(StoreSummary(run.job.id, run.job.lease_id, content))
        return stored.memory

    async def _said(self, run: JobRun, sample: rules.ConversationSample) -> tuple[SessionSummary | None, str]:
        """Return the model's summary, and the sentence about what it leaves out.

        Of a long session, each part is summarized, then the summaries are joined. Each of these at most nine answers
        is asked for twice at most. A part without a usable answer is left out.
        """
        parts, rng = sample.parts(), self._resources.rng
        if len(parts) == 1:
            prompt = session_summary_prompt(parts[0].text, rng)
            return await self._answer(run, prompt, 1, parts[0].said_by_user), rules.not_covered(sample.left_out, (), 1)
        summaries: dict[int, str] = {}
        for number, part in enumerate(parts, 1):
            prompt = session_summary_prompt(part.text, rng, number, len(parts))
            said = await self._answer(run, prompt, _TRIES, part.said_by_user)
            sync_point("extractor.part_summarized")
            if said is not None:
                summaries[number] = masked(f"{said.title}\n\n{said.summary}")
        if not summaries:
            return None, ""
        prompt = session_parts_prompt(summaries, len(parts), rng)
        joined = await self._answer(run, prompt, _TRIES, *(part.said_by_user for part in parts))
        missing = [number for number in range(1, len(parts) + 1) if number not in summaries]
        return joined, rules.not_covered(sample.left_out, missing, len(parts))

    async def _answer(self, run: JobRun, prompt: str, tries: int, *said_by_user: str) -> SessionSummary | None:
        """Return the summary in the model's answer, None if none of the answers has one. Raises ProviderError."""
        resources = self._resources
        for _ in range(tries):
            answer = await resources.model.generate(
                prompt, timeout_ms=resources.pipeline.extraction.timeout_ms, answer=SESSION_SUMMARY
            )
            said = parse_session_summary(answer.text, *said_by_user)
            if said is None:
                continue
            if said.suspicious:
                resources.actor.log.warning("summary_lines_removed", job=run.job.id, lines=said.suspicious)
            return said
        return None

    async def _written(self, memory: JobMemory, part: rules.SummaryPart) -> tuple[str, str]:
        """Write the file and return its name and digest. Raises SignetError; a repeated attempt finds its file."""
        day = f"{datetime.fromisoformat(memory.created_at).astimezone(LOCAL_ZONE):%Y-%m-%d}"
        name = rules.note_name(day, rules.title_of(memory.content)[0], memory.project)
        about = (
            ("session", part.session_key),
            ("agent", part.agent_id),
            ("project", memory.project),
            ("harness", part.harness),
            ("ended", part.ended_at),
            ("memory", memory.id),
        )
        content = rules.note_text(day, memory.content, about).encode()
        directory = Workspace(Path(self._resources.actor.boot.workspace)).memory_dir
        while True:
            try:
                note = await asyncio.to_thread(write_note, directory, name, content)
                return note, hashlib.sha256(content).hexdigest()
            except OSError as error:
                if error.errno not in _DISK_FULL:
                    raise SignetError(f"the file with the summary was not written: {error.strerror}") from error
            await asyncio.sleep(_FULL_PAUSE_S)
