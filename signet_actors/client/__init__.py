"""A typed client of the daemon for Python programs: ``Client`` blocks, ``AsyncClient`` is awaited.

It knows the operations only by their declarations in ``operations/``, and imports no part of the daemon.

Source: docs/guides/python.md.
"""

from __future__ import annotations

from signet_actors.client.async_client import AsyncClient
from signet_actors.client.blocking import Client
from signet_actors.client.errors import (
    ClientError,
    Conflicting,
    DaemonFailed,
    DaemonUnreachable,
    DoesNotExist,
    InvalidReply,
    JobNotEnded,
    NoReply,
    NotPermitted,
    Refused,
    TemporarilyRefused,
)
from signet_actors.client.exchange import Limits
from signet_actors.operations.batch_modify import ModifyPatch
from signet_actors.operations.import_export import MemoryLine
from signet_actors.operations.remember import RememberChunksReply, RememberReply
from signet_actors.operations.temporal import RecallTime

__all__ = [
    "AsyncClient",
    "Client",
    "ClientError",
    "Conflicting",
    "DaemonFailed",
    "DaemonUnreachable",
    "DoesNotExist",
    "InvalidReply",
    "JobNotEnded",
    "Limits",
    "MemoryLine",
    "ModifyPatch",
    "NoReply",
    "NotPermitted",
    "RecallTime",
    "Refused",
    "RememberChunksReply",
    "RememberReply",
    "TemporarilyRefused",
]
