"""One file for each kind of durable job. A new kind is a file here, a line below, and a line in ``domain.jobs``."""

from __future__ import annotations

from typing import Final

from signet_actors.extractor.jobs.embed import Embed
from signet_actors.extractor.jobs.extract import Extract
from signet_actors.extractor.jobs.prospective_index import ProspectiveIndex

JOB_KINDS: Final = (Extract, ProspectiveIndex, Embed)
