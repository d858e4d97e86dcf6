"""The sentences of a text that say what was forgotten. Source: docs/concepts.md "What happens later"."""

from __future__ import annotations

from signet_actors.domain.said_again import statement_of, without_said

BACKUP = "The nightly backup job runs on host backup3 at 02:00"
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


def test_only_the_sentences_that_say_it_are_left_out() -> None:
    left = [(without_said(text, [statement_of(memory)], before), text, left) for memory, before, text, left in LEFT]
    assert [each for each in left if each[0] != (each[1] if each[2] is None else each[2])] == []
