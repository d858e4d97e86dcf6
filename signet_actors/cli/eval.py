"""The command eval: measure how well recall finds the right memories, on this machine, with the user's configuration.

The questions come from a file, or are made from the user's own memories. A temporary daemon with a copy of the memories
answers them; the user's daemon is only read. Of its configuration only what shapes a recall is taken over; the texts
must not be sent to a language model.

Source: docs/cli.md "Measuring recall"; docs/quality.md "How it is measured".
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from signet_actors.cli.bench import TemporaryDaemon, spread, temporary_daemon
from signet_actors.cli.config import checked_config, yaml_lines
from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.eval_run import Answers, FilledStore, ask, export_memories, fill, wait_for_vectors
from signet_actors.cli.invocation import Invocation, command
from signet_actors.cli.presentation import counted, print_json, print_message
from signet_actors.cli.tables import Column, print_table
from signet_actors.config.keys import keys
from signet_actors.config.load import effective_mapping, load_config
from signet_actors.config.regular_file import read_regular
from signet_actors.config.schema import Config
from signet_actors.config.suggest import did_you_mean
from signet_actors.config.workspace import CONFIG_FILE_NAME
from signet_actors.config.yaml_file import UnreadableYaml, parse_yaml
from signet_actors.domain.evaluation.bootstrap import Estimate, differences, estimates
from signet_actors.domain.evaluation.locomo import question_set, read_conversations
from signet_actors.domain.evaluation.measures import measure_names
from signet_actors.domain.evaluation.own_questions import own_questions
from signet_actors.domain.evaluation.question_set import QuestionSet, evenly_chosen, read_question_lines
from signet_actors.errors import ConfigError

MAX_FILE_BYTES = 256 * 1024 * 1024
OWN_QUESTIONS = 200
ALL = "all"
Groups = dict[str, list[int]]


@command(name="eval", agent=True)
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--own", is_flag=True, help="Make the questions from your own memories.")
@click.option(
    "--limit", "-n", type=click.IntRange(1, 100), default=50, show_default=True, help="Results of each question."
)
@click.option(
    "--questions",
    type=click.IntRange(1, 1_000_000),
    help=f"Ask at most this many, evenly chosen (default: all; with --own {OWN_QUESTIONS}).",
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the configuration.")
@click.option(
    "--compare", "others", multiple=True, metavar="KEY=VALUE", help="Measure again with this key, and compare."
)
def eval_(
    invocation: Invocation,
    file: str | None,
    own: bool,
    limit: int,
    questions: int | None,
    settings: tuple[str, ...],
    others: tuple[str, ...],
) -> None:
    """Measure how well recall finds the right memories.

    FILE is a LoCoMo file, or JSON lines: memories with `id` and `content`, questions with `question` and `ids`. If it
    has no memories, the ids are those of your own. A temporary daemon with your configuration is filled and asked;
    your store is not changed. Columns: share of questions whose first result is right, evidence recall, nDCG.
    """
    if own == (file is not None):
        raise click.UsageError("give either a FILE or --own")
    always = Overrides("--set", settings)
    compared = Overrides("--compare", others)
    plans = [Plan("configured", always)]
    if others:
        plans.append(Plan("compared", always + compared))
    configured = load_config(invocation.workspace, invocation.settings).config
    asked = _questions(invocation, file, questions)
    with temporary_daemon(invocation.environ) as daemon:
        for plan in plans:
            mapping = measured_mapping(configured, plan.overrides)
            plan.embedding = mapping["embedding"]
            plan.text = settings_text(mapping, plan.overrides)
        measured = _measure(invocation, daemon, plans, asked, limit)
    _print(invocation, measured)


@dataclass
class Plan:
    """A configuration to measure: its name, the overrides, and the text of its ``agent.yaml``.

    ``embedding`` is its section: plans with the same one can share a store.
    """

    name: str
    overrides: Overrides
    text: str = ""
    embedding: Any = None


@dataclass(frozen=True)
class Measured:
    """What was asked, the plans, and the answers of each."""

    store: FilledStore
    plans: Sequence[Plan]
    answers: Sequence[Answers]
    limit: int

    def groups(self) -> Groups:
        """Return the positions of the questions: of all, and of each kind if there are several."""
        kinds: Groups = {}
        for at, question in enumerate(self.store.questions):
            kinds.setdefault(question.category or "other", []).append(at)
        whole = {ALL: list(range(len(self.store.questions)))}
        return whole if len(kinds) == 1 else whole | kinds

    def estimates(self, which: int, places: Sequence[int]) -> list[Estimate]:
        return estimates([self.answers[which].scores[at] for at in places])

    def differences(self, places: Sequence[int]) -> list[Estimate]:
        """Return the estimates of the second plan minus the first."""
        before, after = ([answers.scores[at] for at in places] for answers in self.answers)
        return differences(before, after)


def _questions(invocation: Invocation, file: str | None, count: int | None) -> QuestionSet:
    if file is None:
        memories = export_memories(invocation.client())
        asked = own_questions(memories, invocation.agent, count or OWN_QUESTIONS)
        if not asked.questions:
            found = counted(len(memories), "memory")
            raise click.UsageError(f"the store has {found}, too few to make questions from")
        return asked
    asked = read_questions(Path(file))
    if not asked.memories:
        wanted = len(asked.questions)
        asked = QuestionSet(export_memories(invocation.client()), asked.questions).answerable()
        if not asked.questions:
            raise click.UsageError(f"{file} has no memories, and no id of its questions is one of your memories")
        if len(asked.questions) < wanted:
            left_out = counted(wanted - len(asked.questions), "question")
            print_message(f"Left out: {left_out}, whose memories do not exist.")
    if count is not None:
        asked = QuestionSet(asked.memories, evenly_chosen(asked.questions, count))
    return asked


def read_questions(path: Path) -> QuestionSet:
    """Return the questions of a LoCoMo file or of JSON lines. Raises click.UsageError if the file is neither."""
    try:
        document = read_regular(path, MAX_FILE_BYTES, follow=True, advice="")
    except ConfigError as error:
        raise click.UsageError(error.detail) from error
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from error
    try:
        if document.lstrip()[:1] != b"[":
            return read_question_lines(document)
        asked = question_set(read_conversations(document))
    except ValueError as error:
        raise click.UsageError(f"{path}: {error}") from error
    if not asked.questions:
        raise click.UsageError(f"{path}: no question names a turn of the conversations")
    return asked


def _measure(
    invocation: Invocation, daemon: TemporaryDaemon, plans: Sequence[Plan], asked: QuestionSet, limit: int
) -> Measured:
    """Fill the daemon, and ask the questions once for each plan.

    A plan with another model gets a new store: a store that exists already gets its new vectors only after a while.
    """
    store: FilledStore | None = None
    answers = []
    for before, plan in zip((None, *plans), plans, strict=False):
        if before is not None and before.embedding != plan.embedding:
            daemon.clear()
            store = None
        daemon.start(plan.text)
        client = DaemonClient(daemon.address, print_warnings=False, agent=invocation.agent)
        invocation.last_client = client
        try:
            if store is None:
                store = fill(client, asked)
            wait_for_vectors(client)
            answers.append(ask(client, store, limit))
        finally:
            client.close()
            daemon.stop()
    assert store is not None, "there is at least one plan"
    return Measured(store, plans, answers, limit)


def _print(invocation: Invocation, measured: Measured) -> None:
    names = measure_names(measured.limit)
    if invocation.as_json:
        print_json(_as_json(measured, names))
        return
    rows = []
    for kind, places in measured.groups().items():
        for which, plan in enumerate(measured.plans):
            cells = map(_per_cent, measured.estimates(which, places))
            rows.append((kind, plan.name, str(len(places)), *cells))
        if len(measured.plans) > 1:
            cells = map(_difference, measured.differences(places))
            rows.append((kind, "difference", str(len(places)), *cells))
    print_table(
        ("questions", "configuration", Column("count", drop=1, right=True), *(f"{name} %" for name in names)), rows
    )
    stored = counted(measured.store.memories, "memory")
    print_message(f"{stored}. In brackets: 95 % confidence interval. *: not by chance.")
    for plan, answers in zip(measured.plans, measured.answers, strict=True):
        took = spread(answers.took_ms)
        with_ = f" with {', '.join(plan.overrides.texts)}" if plan.overrides.texts else ""
        print_message(f"{plan.name}{with_}: recall p50 {took['p50']:.1f} ms, p95 {took['p95']:.1f} ms")


def _as_json(measured: Measured, names: Sequence[str]) -> dict[str, Any]:
    groups = measured.groups()
    document: dict[str, Any] = {
        "memories": measured.store.memories,
        "questions": len(measured.store.questions),
        "limit": measured.limit,
        "configurations": [
            {
                "name": plan.name,
                "overrides": list(plan.overrides.texts),
                "recall_ms": spread(measured.answers[which].took_ms),
                "stages_ms": measured.answers[which].mean_stages_ms(),
                "kinds": {
                    kind: {"questions": len(places), **_named(names, measured.estimates(which, places))}
                    for kind, places in groups.items()
                },
            }
            for which, plan in enumerate(measured.plans)
        ],
    }
    if len(measured.plans) > 1:
        document["difference"] = {kind: _named(names, measured.differences(places)) for kind, places in groups.items()}
    return document


def _named(names: Sequence[str], found: Sequence[Estimate]) -> Mapping[str, dict[str, float]]:
    return {
        name: {part: round(value, 5) for part, value in one._asdict().items()}
        for name, one in zip(names, found, strict=True)
    }


def _per_cent(one: Estimate) -> str:
    return f"{100 * one.mean:.1f} [{100 * one.low:.1f}, {100 * one.high:.1f}]"


def _difference(one: Estimate) -> str:
    mark = " *" if one.is_significant else ""
    return f"{100 * one.mean:+.1f} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]{mark}"


PIPELINE = ("memory", "pipelineV2")
TAKEN_OVER: tuple[tuple[str, ...], ...] = (
    ("search",),
    ("embedding",),
    ("searcher",),
    ("agents",),
    ("redaction",),
    (*PIPELINE, "reranker"),
    (*PIPELINE, "guardrails"),
    (*PIPELINE, "graph"),
    (*PIPELINE, "traversal"),
    (*PIPELINE, "dampening"),
)
"""Sections of the user's configuration that the measured daemon has."""

WITHOUT_MODELS: tuple[tuple[str, ...], ...] = ((*PIPELINE, "enabled"), (*PIPELINE, "reranker", "useExtractionModel"))
"""Switches that are off in the measured daemon."""


class Overrides:
    """Values of keys, given as ``key=value``. ``texts`` are the arguments, in order."""

    def __init__(self, option: str, arguments: Sequence[str]) -> None:
        self.option = option
        self.texts = tuple(arguments)
        self._values = [_parse(option, argument) for argument in arguments]

    def __add__(self, other: Overrides) -> Overrides:
        both = Overrides(other.option, ())
        both.texts = (*self.texts, *other.texts)
        both._values = [*self._values, *other._values]
        return both

    def apply(self, mapping: dict[str, Any]) -> None:
        """Set the values in the mapping of a configuration."""
        for path, value in self._values:
            _put(mapping, path, value)


def measured_mapping(config: Config, overrides: Overrides) -> dict[str, Any]:
    """Return the configuration of the measured daemon as a mapping with the key names of the file."""
    users = effective_mapping(config)
    mapping: dict[str, Any] = {"backup": {"intervalMs": 0}}
    for path in TAKEN_OVER:
        _put(mapping, path, copy.deepcopy(functools.reduce(operator.getitem, path, users)))
    for path in WITHOUT_MODELS:
        _put(mapping, path, False)
    overrides.apply(mapping)
    return mapping


def settings_text(mapping: Mapping[str, Any], overrides: Overrides) -> str:
    """Return the mapping as the text of ``agent.yaml``. Raises click.UsageError if an override is not valid."""
    text = "\n".join(yaml_lines(mapping)) + "\n"
    try:
        checked_config(text)
    except ConfigError as error:
        problem = error.detail.split("\n", 1)[0].removeprefix(f"{CONFIG_FILE_NAME}: ")
        raise click.UsageError(f"{overrides.option}: {problem}") from error
    return text


def _parse(option: str, argument: str) -> tuple[tuple[str, ...], Any]:
    """Return path and value of ``key=value``; raise click.UsageError if it is nothing that can be measured."""
    name, equals, text = argument.partition("=")
    if not equals or not text.strip():
        raise click.UsageError(f'{option} {argument}: expected KEY=VALUE, for example "search.alpha=0.6"')
    known = {key.dotted: key.path for key in keys()}
    path = known.get(name)
    if path is None:
        raise click.UsageError(f"{option} {argument}: {name} is no key of the configuration{did_you_mean(name, known)}")
    if path in WITHOUT_MODELS or not any(path[: len(section)] == section for section in TAKEN_OVER):
        raise click.UsageError(f"{option} {argument}: {name} has no effect on what is measured")
    try:
        return path, parse_yaml(text.encode("utf-8", "surrogateescape"))
    except UnreadableYaml as error:
        raise click.UsageError(f"{option} {argument}: {error.problems[0]}") from error


def _put(mapping: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for name in path[:-1]:
        mapping = mapping.setdefault(name, {})
    mapping[path[-1]] = value
