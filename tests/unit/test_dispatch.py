"""Which function serves which message of writer and searcher."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

from signet_actors.protocol.message import Asked
from signet_actors.protocol.searcher import SearcherQuery
from signet_actors.protocol.writer import TransactionCommand
from signet_actors.searcher import actor as searcher
from signet_actors.writer import dispatch as writer


def own(table: dict[type, Any]) -> dict[type, Any]:
    """Return the rows of messages that are not declared by a feature."""
    return {
        message: function
        for message, function in table.items()
        if not issubclass(message, Asked) and not message.__module__.startswith("signet_actors.features.")
    }


COMMANDS = own(writer.HANDLERS)
QUERIES = own(searcher.HANDLERS | searcher.WITH_READER)


def test_every_command_of_the_writer_has_a_function() -> None:
    assert COMMANDS.keys() == set(get_args(TransactionCommand))


def test_every_query_of_a_searcher_has_a_function() -> None:
    asked_with_frames = {"Recall", "FindCandidates", "ExportEmbeddings", "ExportMemories", "GetStoreStats"}
    assert {query.__name__ for query in get_args(SearcherQuery) if query not in QUERIES} == asked_with_frames
    assert not QUERIES.keys() - set(get_args(SearcherQuery))
    assert not searcher.HANDLERS.keys() & searcher.WITH_READER.keys()


@pytest.mark.parametrize("table", [COMMANDS, QUERIES], ids=["writer", "searcher"])
def test_every_function_takes_the_message_that_it_serves(table: dict[type, Any]) -> None:
    for message, function in table.items():
        assert message in get_type_hints(function).values(), function
