"""The sentences of a text that say what was forgotten. Source: docs/concepts.md "What happens later"."""

from __future__ import annotations

from signet_actors.domain.said_again import Passage, may_say, says, statement_of, without_said
from tests.support.said_pairs import BACKUP, FULLER, NOT_FULLER, NOT_SPREAD, OTHER, OTHERWISE, SAME, SPREAD

TABS = "Use tabs"
LEFT = (
    (BACKUP, "", "Fix the login page. Our nightly backup job runs on host backup3 at 02:00.", "Fix the login page."),
    (BACKUP, "", "The nightly backup job runs on backup3 at 2am!\nFix the login page.", "Fix the login page."),
    (BACKUP, "where does the nightly backup job run at 2 am?", "On backup3. The login works.", "The login works."),
    (BACKUP, "The nightly backup job runs on backup3, 02:00.", "Noted: backup3. Tests pass.", "Tests pass."),
    (BACKUP, "", "- Prompt: the nightly backup job runs on host backup3 at 02:00", ""),
    (BACKUP, "", "The nightly backup job runs on host backup7 at 02:00.", None),
    (BACKUP, "", "The nightly backup job runs on host backup3 at 03:00.", None),
    (BACKUP, "", "The host backup3 has a new fan since 02:00.", None),
    (BACKUP, "fix the login page", "On backup3 the login page works.", None),
    (BACKUP, "", "", None),
    (TABS, "", "Please use tabs. The tests are slow.", "The tests are slow."),
    (TABS, "", "Replace the tabs of the settings page of the tariff server with a menu.", None),
    ("备份任务在凌晨两点运行", "", "登录页面修好了。\n备份任务在凌晨两点运行", "登录页面修好了。"),
    ("备份任务在凌晨两点运行", "", "登录页面修好了", None),
    ("", "", "The nightly backup job runs on host backup3 at 02:00", None),
    ("?!", "", "What?! Now.", None),
)
"""A forgotten memory, what was said before, a text, and what is left of it; None: all of it."""


def left_otherwise(table: tuple[tuple[str, str, str, str | None], ...]) -> list[tuple[str, str, str | None]]:
    left = [(without_said(text, [statement_of(memory)], before), text, left) for memory, before, text, left in table]
    return [each for each in left if each[0] != (each[1] if each[2] is None else each[2])]


def test_only_the_sentences_that_say_it_are_left_out() -> None:
    assert left_otherwise(LEFT) == []


def test_sentences_that_say_it_together_are_left_out_and_no_others() -> None:
    assert left_otherwise(SPREAD) == []
    assert left_otherwise(tuple((memory, "", text, None) for memory, text in NOT_SPREAD)) == []


def test_what_says_the_same_is_known_however_the_agent_names_the_user_numbers_and_times() -> None:
    assert [each for each in SAME if not says(Passage(each[0]), statement_of(each[1]))] == []
    assert [each for each in OTHER if says(Passage(each[0]), statement_of(each[1]))] == []


def test_a_clause_that_says_a_part_of_it_and_nothing_else_is_left_out_with_its_sentence() -> None:
    assert [each for each in FULLER if not says(Passage(each[0]), statement_of(each[1]))] == []
    assert [
        each for each in FULLER if without_said(f"{each[0]}.\nTests pass.", [statement_of(each[1])]) != "Tests pass."
    ] == []
    assert [each for each in NOT_FULLER if says(Passage(each[0]), statement_of(each[1]))] == []
    assert [each for each in NOT_FULLER if each[0] != without_said(each[0], [statement_of(each[1])])] == []


def test_what_may_be_the_same_in_other_words_is_known_from_what_is_about_something_else() -> None:
    assert [each for each in OTHERWISE if not may_say(Passage(each[0]), statement_of(each[1]))] == []
    others = [(said, memory) for said, _ in OTHERWISE for _, memory in FULLER]
    assert [each for each in others if may_say(Passage(each[0]), statement_of(each[1]))] == []
