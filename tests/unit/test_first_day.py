"""The data set of ``bench.first_day`` is well formed, and its judge sees what an injected text gives."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from bench.first_day.data import NOTES, PROJECT, data_set
from bench.first_day.judging import found_at, given_by, judged, judged_start

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
DATA = data_set()
ITEMS = DATA.items(NOW)
PROMPTS = {prompt.label: prompt for prompt in DATA.prompts}
GERMAN = re.compile(
    r"\b(?:der|die|das|und|ist|wir|ab|ein|eine|mir|bis|alle|bei|vielleicht|nachts|wen|wie|wer|den)\b", re.IGNORECASE
)
COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and any are as at be because by can come did do does for from get had has have how i if in into "
        "is it its may must new no not now of on one or our out right run so that the them then there they "
        "this to up us use used was we were what when where which who why will with you your ",
    )
)


def test_every_label_is_unique_and_every_one_that_is_named_exists() -> None:
    labels = [one.label for one in DATA.memories]
    labels += [turn.label for session in DATA.sessions for turn in session.turns if turn.label]
    assert len(set(labels)) == len(labels) == len(ITEMS)
    assert len(PROMPTS) == len(DATA.prompts)
    named = {label for prompt in DATA.prompts for labels in prompt.expect for label in labels}
    named |= {label for labels in DATA.start.values() for label in labels}
    named |= {item.replaced_by for item in ITEMS.values() if item.replaced_by}
    assert named <= set(ITEMS)
    topics = {topic for item in ITEMS.values() for topic in item.topics}
    assert {topic for prompt in DATA.prompts for topic in prompt.topics} <= topics


def test_the_project_has_ten_weeks_of_memories_notes_and_sessions_in_two_languages() -> None:
    memories = DATA.memories
    assert len(memories) >= 60
    assert all(one.text.strip() and one.topics for one in memories)
    assert max(one.days for one in memories) - min(one.days for one in memories) > 60
    assert {one.file for one in memories if one.file} == {path.name for path in NOTES.iterdir()}
    german = sum(bool(GERMAN.search(one.text)) for one in memories)
    assert 0.2 <= german / len(memories) <= 0.4
    outdated = [one for one in memories if one.replaced_by]
    assert len(outdated) >= 8
    assert all(ITEMS[str(one.replaced_by)].made > ITEMS[one.label].made for one in outdated)
    assert all(one.mark in one.text for one in memories if one.mark)
    assert sum("junk" in one.topics for one in memories) >= 5
    assert "```" in "".join(one.text for one in memories)
    assert "<env>" in "".join(one.text for one in memories)

    assert len(DATA.sessions) == 8
    assert all(6 <= len(session.turns) <= 20 for session in DATA.sessions)
    assert sum(session.project != PROJECT for session in DATA.sessions) == 2
    assert sum(not session.end for session in DATA.sessions) == 1
    assert DATA.sessions == sorted(DATA.sessions, key=lambda session: -session.days)


def test_sixty_prompts_should_be_given_something_and_twenty_nothing() -> None:
    related = [prompt for prompt in DATA.prompts if prompt.expect]
    assert (len(related), len(DATA.prompts) - len(related)) == (60, 20)
    assert all((prompt.kind == "unrelated") is not bool(prompt.expect) for prompt in DATA.prompts)
    wines = {label for label, item in ITEMS.items() if "wine" in item.topics}
    outdated = {label for label, item in ITEMS.items() if item.replaced_by}
    assert not [one for one in related for labels in one.expect if set(labels) & (wines | outdated)]


def test_a_third_of_the_prompts_have_at_most_one_word_of_their_answer() -> None:
    def words(text: str) -> set[str]:
        return {word[:6] for word in re.findall(r"\w+", text.casefold())} - COMMON

    few = [
        prompt.label
        for prompt in DATA.prompts
        if prompt.expect
        and all(len(words(prompt.prompt) & words(ITEMS[one].text)) <= 1 for labels in prompt.expect for one in labels)
    ]
    assert 18 <= len(few) <= 30, few


def test_a_prompt_about_a_day_names_the_day_of_the_session() -> None:
    text, day = DATA.asked(PROMPTS["on-a-day"], NOW)
    assert day is not None
    assert text == f"what did we do on {day:%B} {day.day}?"
    assert DATA.asked(PROMPTS["yesterday"], NOW) == (PROMPTS["yesterday"].prompt, NOW - timedelta(days=1))


def test_an_item_is_recognised_whole_cut_and_with_its_lines_joined() -> None:
    sse = ITEMS["sse"].text
    texts = {
        f"- {sse} (id 01a223ed)": ({"sse"}, {"sse"}),
        f"- {sse[:60]}… (id 01a223ed)": (set(), {"sse"}),
        f"- {' '.join(ITEMS['tests-new'].text.split())} (id 1)": ({"tests-new"}, {"tests-new"}),
        f"From an earlier session (Nov 8): you asked: {ITEMS['boss-ask'].text}": ({"boss-ask"}, {"boss-ask"}),
        "- test test (id 01a223ed)": ({"junk-test"}, {"junk-test"}),
        '[signet:recall | query="yard board" | results=0]': (set(), set()),
        f"- {ITEMS['secrets'].text.replace('<env>', '< env>')}": (set(), {"secrets"}),
        "": (set(), set()),
    }
    found = {text: given_by(text, ITEMS) for text in texts}
    assert {text: (set(given.whole), set(given.shown)) for text, given in found.items()} == texts
    assert not any(given.unknown for given in found.values())


def test_an_outdated_fact_alone_and_a_line_about_something_else_are_counted() -> None:
    prompt = PROMPTS["pg-port"]
    asked = (prompt.prompt, None)
    old, new, other = (f"- {ITEMS[label].text}\n" for label in ("pg-port-old", "pg-port-new", "avis"))
    both = judged(prompt, asked, old + new, ITEMS, "")
    assert (both.answered, both.outdated, both.foreign, both.failed) == (True, [], [], False)
    alone = judged(prompt, asked, old, ITEMS, "")
    assert (alone.answered, alone.outdated, alone.failed) == (False, ["pg-port-old"], True)
    mixed = judged(prompt, asked, new + other + "- a line from nowhere\n", ITEMS, "")
    assert (mixed.answered, mixed.foreign) == (True, ["avis", "- a line from nowhere"])


def test_an_unrelated_prompt_should_be_given_nothing_at_all() -> None:
    prompt = PROMPTS["unrelated-1"]
    assert not judged(prompt, (prompt.prompt, None), "", ITEMS, "").failed
    assert judged(prompt, (prompt.prompt, None), "[signet:recall]", ITEMS, "").failed


def test_a_line_of_the_day_that_is_asked_for_has_to_do_with_the_prompt() -> None:
    prompt = PROMPTS["yesterday"]
    text = f"- {ITEMS['grace-left'].text}\n- {ITEMS['grace-roles'].text}\n- {ITEMS['avis'].text}"
    assert judged(prompt, DATA.asked(prompt, NOW), text, ITEMS, "").foreign == ["avis"]


def test_a_start_is_judged_by_its_words_commands_and_headings() -> None:
    text = "\n".join(
        (
            "[memory active | /remember | `signet recall` | `signet frobnicate` | memory_store | memory_guess]",
            "# Today",
            f"- {ITEMS['rule-pii'].text}",
            f"- {ITEMS['junk-coffee'].text}",
        )
    )
    start = judged_start(text, ITEMS, commands=("recall",), tools=("memory_store",), foreign=("junk",))
    assert start.commands == ["/remember", "signet frobnicate", "memory_guess"]
    assert start.headings == ["# Today"]
    assert start.unwanted == ["junk-coffee"]
    own = len(ITEMS["rule-pii"].text) + len(ITEMS["junk-coffee"].text)
    assert abs(start.share - own / len(text)) < 0.02


def test_the_place_of_the_answer_in_a_recall_is_found_by_its_words() -> None:
    results = [{"content": ITEMS[label].text, "relevance": 0.4} for label in ("avis", "csv")]
    assert found_at(results, [["csv"]], ITEMS) == "csv: place 2, relevance 0.40"
    assert found_at(results, [["sse"]], ITEMS) == "not among the first 2"
