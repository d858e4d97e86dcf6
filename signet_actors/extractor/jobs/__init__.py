"""The kinds of durable jobs, one file each. A new kind needs a file here, a line below, and one in ``domain.jobs``."""

from __future__ import annotations

from typing import Final

from signet_actors.extractor.jobs.embed import Embed
from signet_actors.extractor.jobs.extract import Extract
from signet_actors.extractor.jobs.prospective_index import ProspectiveIndex
from signet_actors.extractor.jobs.score_session import ScoreSession
from signet_actors.extractor.jobs.structural_classify import StructuralClassify
from signet_actors.extractor.jobs.summarize import Summarize

JOB_KINDS: Final = (Extract, ProspectiveIndex, Embed, Summarize, ScoreSession, StructuralClassify)
