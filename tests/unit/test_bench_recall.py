"""Recall figures: kinds of questions, hits, and attribution of CPU time."""

from __future__ import annotations

import os
import random

import msgspec
import pytest
import yaml

from bench.closed_loops import BUSY, OK, Answered
from bench.cpu_usage import LOAD_GENERATOR, CpuUsage
from bench.loaded_daemon import EvenSample
from bench.recall_phase import KINDS, judged, kinds_of, latencies_by_kind
from bench.searchers import by_role, settings_for
from bench.texts import Asked, Texts
from signet_actors.config.schema import Config

NATURAL = Asked({"query": "what did we decide?"}, None, filtered=False)
FILTERED = Asked({"query": "what did we decide?", "type": "fact"}, None, filtered=True)
IDENTIFIER = Asked({"query": "OPS-7"}, "OPS-7", filtered=False)
BOTH = Asked({"query": "OPS-7", "type": "fact"}, "OPS-7", filtered=True)
WITH_A_WORD = Asked({"query": "OPS-7 rollback"}, "OPS-7", filtered=False)


def answer(*contents: str) -> bytes:
    """A recall's answer with these results."""
    stages = [{"name": "fts", "durationMs": 2.0}]
    body = {"results": [{"content": content} for content in contents], "meta": {"timings": {"stages": stages}}}
    return msgspec.json.encode(body)


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        (NATURAL, {"unfiltered", "natural questions"}),
        (FILTERED, {"filtered", "natural questions"}),
        (IDENTIFIER, {"unfiltered", "identifiers"}),
        (BOTH, {"filtered", "identifiers"}),
        (WITH_A_WORD, {"unfiltered", "identifiers"}),
    ],
)
def test_a_question_is_of_two_kinds(asked: Asked, kinds: set[str]) -> None:
    assert set(kinds_of(asked)) == kinds
    assert kinds <= set(KINDS)


def test_latencies_are_grouped_by_the_kind_of_question() -> None:
    asked = [NATURAL, BOTH, IDENTIFIER, FILTERED]
    found = latencies_by_kind(asked, [(3, 30.0), (0, 1.0), (1, 20.0), (2, 5.0)])
    assert (found["unfiltered"].p50, found["unfiltered"].worst, found["unfiltered"].count) == (1, 5, 2)
    assert (found["filtered"].p50, found["filtered"].worst) == (20, 30)
    assert (found["natural questions"].p50, found["natural questions"].worst) == (1, 30)
    assert (found["identifiers"].p50, found["identifiers"].worst) == (5, 20)


def test_a_kind_without_questions_has_an_empty_spread() -> None:
    found = latencies_by_kind([NATURAL], [(0, 1.0)])
    assert set(found) == set(KINDS)
    assert found["identifiers"].count == 0


def test_generated_questions_have_every_kind() -> None:
    texts = Texts(3)
    asked = texts.questions([texts.memory() for _ in range(200)], 200)
    found = latencies_by_kind(asked, ((at, 1.0) for at in range(200)))
    assert found["filtered"].count == found["unfiltered"].count == 100
    assert found["natural questions"].count + found["identifiers"].count == 200
    assert 20 < found["identifiers"].count < 120


def test_only_plain_identifiers_without_a_filter_are_counted() -> None:
    asked = [IDENTIFIER, IDENTIFIER, WITH_A_WORD, BOTH, NATURAL]
    answers = [
        (0, answer("about OPS-7", "x")),
        (1, answer("x", "about OPS-7")),
        (2, answer("OPS-7")),
        (3, answer("OPS-7")),
        (4, answer()),
    ]
    found = judged(asked, answers)
    assert (found["identifiers"], found["identifiers first"], found["no hit"]) == (2, 1, 1)
    assert found["stages_ms"]["fts"].count == 5


def test_an_identifier_without_an_answer_is_not_first() -> None:
    found = judged([IDENTIFIER], [(0, answer())])
    assert (found["identifiers"], found["identifiers first"], found["no hit"]) == (1, 0, 1)


def test_answers_are_counted_by_status_and_keep_their_requests_index() -> None:
    answered = Answered(keep_bodies=True)
    answered.add(4, OK, b"{}", 1.5)
    answered.add(5, BUSY, b"later", 0.1)
    answered.add(6, 500, b"broken", 0.1)
    assert (answered.at, answered.latencies_ms, answered.bodies) == ([4], [1.5], [b"{}"])
    assert (answered.refused, answered.failed) == (1, ["500: broken"])
    assert Answered().bodies == []


def test_cpu_time_of_searchers_is_summed_and_the_load_generator_excluded() -> None:
    each = {"gateway": 1.0, "searcher-1": 0.5, "searcher-2": 0.25, LOAD_GENERATOR: 9.0}
    assert by_role(each) == {"gateway": 1.0, "searchers": 0.75}


def test_the_settings_for_a_number_of_searchers_are_valid() -> None:
    said = yaml.safe_load(settings_for(3))
    assert msgspec.convert(said, Config).searcher.processes == 3


def test_cpu_of_several_phases_adds_up() -> None:
    usage = CpuUsage({"self": os.getpid()})
    for _ in range(2):
        with usage.measured():
            sum(range(1000))
    assert set(usage.spent_ms) == {"self", LOAD_GENERATOR}
    assert set(usage.tree_ms) == {"self"}
    assert usage.each(0).keys() == usage.spent_ms.keys()


def test_a_sample_is_bounded_and_drawn_from_all_items() -> None:
    texts = Texts(9)
    offered = [texts.memory() for _ in range(400)]
    sample = EvenSample(40, seed=1)
    for made in offered:
        sample.offer(made)
    places = sorted(offered.index(made) for made in sample.kept)
    assert len(set(places)) == 40
    assert places[0] < 100
    assert places[-1] >= 300
    few = EvenSample(40, seed=1)
    for made in offered[:7]:
        few.offer(made)
    assert few.kept == offered[:7]


def test_streams_of_a_seed_share_their_words_but_no_memory_and_no_identifier() -> None:
    first, second = Texts(4), Texts(4, stream=1)
    ours = [first.memory() for _ in range(300)]
    theirs = [second.memory() for _ in range(300)]
    assert {made.content for made in ours}.isdisjoint(made.content for made in theirs)
    identifiers = {made.identifier for made in ours} - {None}
    assert identifiers.isdisjoint(made.identifier for made in theirs)
    shared = {word for made in ours for word in made.telling} & {word for made in theirs for word in made.telling}
    assert len(shared) > 300


def test_generating_questions_does_not_change_the_generated_texts() -> None:
    stored, again = Texts(4), Texts(4)
    asking = Texts(4, stream=1)
    made = [stored.memory() for _ in range(20)]
    asking.questions(made, random.Random(1).randrange(5, 50))
    more = [stored.memory() for _ in range(20)]
    assert [again.memory() for _ in range(40)] == made + more
