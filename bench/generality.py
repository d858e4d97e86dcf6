"""Recall on stores that are no chats, with and without the stages: ``python -m bench.generality [FILE]``.

FILE is a LoCoMo file, whose observations become facts; without it, conversations and facts are generated
(``bench.made_talks``). Each slice is a store of its own, asked over HTTP with the default configuration, and with all
switches of ``search.*`` off. ``*`` marks a difference whose 95 % confidence interval (paired by question) excludes 0.
The evidence of a question about facts are the facts that were observed in its turns.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

from bench.ablation import LIMIT, Session, Variant, all_off
from bench.daemon import DaemonFailed, leave_on_sigterm, throw_away_workspace
from bench.figures import circumstances, write_result
from bench.made_talks import ENGLISH, GERMAN, made_conversations
from signet_actors.domain.evaluation.bootstrap import Estimate, differences, estimates
from signet_actors.domain.evaluation.locomo import Conversation, question_set, read_conversations, stamp
from signet_actors.domain.evaluation.measures import measure_names
from signet_actors.domain.evaluation.question_set import Question, QuestionSet, StoredText

FORMER: Final = Variant("without stages", all_off())
DEFAULT: Final = Variant("default")
MADE: Final = 4
SHORT_ROWS: Final = 90
_SEED: Final = 5


class Slice(msgspec.Struct, frozen=True):
    """A kind of store: its memories and questions."""

    name: str
    asked: QuestionSet


def slices(conversations: Sequence[Conversation]) -> Iterator[Slice]:
    """Yield every slice."""
    chats = question_set(conversations)
    yield Slice("chats", chats)
    yield Slice("chats in one scope", in_one_scope(chats))
    yield Slice("chats shuffled in one import", QuestionSet(shuffled(chats.memories), chats.questions))
    yield Slice("short stores of turns", short(chats))
    facts = joined(map(facts_of, conversations))
    if facts.questions:
        yield Slice("facts in order", facts)
        yield Slice("facts in one scope", in_one_scope(facts))
        yield Slice("facts shuffled in one import", QuestionSet(shuffled(facts.memories), facts.questions))
        yield Slice("short stores of facts", short(facts))
        mixed = [*chats.memories, *facts.memories]
        yield Slice("chats and facts mixed, about facts", QuestionSet(mixed, facts.questions))
        yield Slice("chats and facts mixed, about turns", QuestionSet(mixed, chats.questions))
    german = made_conversations(GERMAN, MADE, _SEED)
    yield Slice("German chats (generated)", question_set(german))
    yield Slice("German facts (generated)", joined(map(facts_of, german)))


def facts_of(conversation: Conversation) -> QuestionSet:
    """Return each observation as a memory, dated an hour after its session, and the questions that facts answer.

    The evidence of a question are all facts that were observed in one of its turns.
    """
    facts: list[StoredText] = []
    observed: dict[str, list[str]] = {}
    for session in conversation.sessions:
        for at, (text, labels) in enumerate(session.observations):
            line = {
                "content": text,
                "agentId": conversation.agent,
                "visibility": "private",
                "createdAt": stamp(session.date + timedelta(hours=1, seconds=at)),
            }
            facts.append(StoredText(f"{conversation.number}:fact-{len(facts)}", line))
            for label in labels:
                observed.setdefault(conversation.key(label), []).append(facts[-1].key)
    questions = []
    for asked in conversation.asked():
        evidence = dict.fromkeys(key for turn in asked.evidence for key in observed.get(turn, ()))
        if evidence:
            questions.append(Question(asked.text, asked.category, tuple(evidence), asked.agent))
    return QuestionSet(facts, questions)


def joined(sets: Iterable[QuestionSet]) -> QuestionSet:
    """Return the memories and questions of all sets."""
    every = list(sets)
    return QuestionSet([m for one in every for m in one.memories], [q for one in every for q in one.questions])


def shuffled(memories: Sequence[StoredText]) -> list[StoredText]:
    """Return the memories in random order without dates, so that all are created by one import."""
    mixed = [
        StoredText(memory.key, {name: value for name, value in memory.line.items() if name != "createdAt"})
        for memory in memories
    ]
    random.Random(_SEED).shuffle(mixed)
    return mixed


def in_one_scope(asked: QuestionSet) -> QuestionSet:
    """Return the set with all memories owned by one agent, who asks."""
    agent = "everyone"
    memories = [StoredText(memory.key, {**memory.line, "agentId": agent}) for memory in asked.memories]
    questions = [Question(one.text, one.category, one.evidence, agent) for one in asked.questions]
    return QuestionSet(memories, questions)


def short(asked_of: QuestionSet) -> QuestionSet:
    """Return the memories in stores of at most ``SHORT_ROWS``, and the questions whose evidence is in one store."""
    store_of: dict[str, str] = {}
    sizes: dict[str, int] = {}
    kept = []
    for memory in asked_of.memories:
        name = f"{memory.agent}-{sizes.get(memory.agent or '', 0) // SHORT_ROWS}"
        if store_of.setdefault(memory.key, name) == name:
            sizes[memory.agent or ""] = sizes.get(memory.agent or "", 0) + 1
            kept.append(StoredText(memory.key, {**memory.line, "agentId": name}))
    asked = []
    for question in asked_of.questions:
        stores = {store_of.get(key) for key in question.evidence}
        store = stores.pop()
        if store is not None and not stores:
            asked.append(Question(question.text, question.category, question.evidence, store))
    return QuestionSet(kept, asked)


class Row(msgspec.Struct, frozen=True):
    """The estimates of a slice with the default and the former settings, and their difference."""

    name: str
    memories: int
    questions: int
    before: list[Estimate]
    after: list[Estimate]
    difference: list[Estimate]


def measure(one: Slice, settings: Sequence[str]) -> Row:
    """Fill a store with the slice and ask with both settings."""
    with throw_away_workspace() as workspace:
        session = Session(workspace, one.asked, settings)
        after, before = session.answers(DEFAULT), session.answers(FORMER)
    return Row(
        one.name,
        session.store.memories,
        len(session.store.questions),
        estimates(before.scores),
        estimates(after.scores),
        differences(before.scores, after.scores),
    )


def table_of(rows: Sequence[Row]) -> Table:
    """Return a table with the R@10 of both settings and the differences of R@10, R@50 and nDCG@10."""
    table = Table(title="Recall by kind of store, %: default, and with the stages of search.* off")
    _, *names = measure_names(LIMIT)
    for name in ("", "memories", "questions", "R@10 off", "R@10", *(f"difference of {name} (95 %)" for name in names)):
        table.add_column(name, justify="right" if name else "left")
    for row in rows:
        moved = [
            f"{100 * one.mean:+.1f} ({100 * one.low:+.1f} to {100 * one.high:+.1f}){' *' if one.is_significant else ''}"
            for one in row.difference[1:]
        ]
        counts = (str(row.memories), str(row.questions))
        table.add_row(row.name, *counts, f"{100 * row.before[1].mean:.1f}", f"{100 * row.after[1].mean:.1f}", *moved)
    return table


def result_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the result to be written: figures without any text."""
    return {"circumstances": circumstances(), "measures": measure_names(LIMIT), "rows": rows}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 if it could be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.generality", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="?", help="a LoCoMo JSON file; without it, generated conversations")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--only", metavar="TEXT", help="only slices whose name contains this text")
    options = parser.parse_args(arguments)
    leave_on_sigterm()
    progress = Console(stderr=True)
    try:
        document = None if options.file is None else options.file.read_bytes()
        talks = made_conversations(ENGLISH, MADE, _SEED) if document is None else read_conversations(document)
    except (OSError, ValueError) as error:
        progress.print(f"[red]{error}[/red]", highlight=False)
        return 66
    rows = []
    for one in slices(talks):
        if options.only is not None and options.only not in one.name:
            continue
        try:
            rows.append(measure(one, options.settings))
        except DaemonFailed as error:
            progress.print(f"[red]{error}[/red]", highlight=False)
            return 1
        moved = rows[-1].difference[1]
        progress.print(f"[dim]{one.name}: R@10 {100 * moved.mean:+.1f}[/dim]", highlight=False)
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table_of(rows))
    console.print(str(write_result("generality", result_of(rows))), highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
