"""A restore forgets neither for which sessions memory was switched off since the backup, nor what was erased.

Source: docs/operations.md "Restore".
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.live_daemon import live_daemon
from tests.system.test_maintenance import signet
from tests.system.test_sessions_switched_off import Session, at

pytestmark = pytest.mark.system
BACKFILL: dict[str, Any] = {"reason": "backfill"}


def test_what_was_switched_off_or_erased_since_the_backup_stays_out_after_a_restore() -> None:
    with live_daemon(patient=True) as daemon:
        api = daemon.api
        kept, erased, forgotten, again = (
            api.remember(f"The {word} is below the bridge")["id"] for word in ("crane", "lynx", "otter", "heron")
        )
        paused, open_one, gone, quiet = (Session(api) for _ in range(4))
        for session in (paused, open_one, gone, quiet):
            session.say("beforeword", at(hours=-1))
            session.report()
            session.hook("session-start")
        assert signet(daemon, "backup")[0] == 0
        late, unknown = Session(api), Session(api)
        for session in (paused, open_one, late, unknown):
            session.switch(off=True)
            session.say("hiddenword", at())
            session.report()
        for session in (paused, late):
            session.hook("session-start")
            session.switch(off=False)
        quiet.say("laterword", at())
        quiet.report()
        api.request("DELETE", f"/api/sessions/{gone.key}/transcript").ok()
        assert signet(daemon, "forget", erased, again, "--permanently", "--yes")[0] == 0
        assert signet(daemon, "forget", forgotten, "--yes")[0] == 0
        later = api.remember("The stork is below the bridge")["id"]
        daemon.stop()
        (daemon.workspace / ".daemon" / "claims.json").unlink()  # as it is hours later

        code, told, said = signet(daemon, "restore", "latest", "--yes")
        assert (code, told["carried_over"], told["memories_before"], told["memories_after"]) == (0, True, 2, 2), said
        daemon.start()
        daemon.wait_ready()
        assert {row["id"] for row in api.listed()} == {kept, forgotten}, "what was forgotten is a change like any other"
        assert not {erased, again} & set(api.recalled("the lynx and the heron below the bridge"))
        assert later not in {row["id"] for row in api.listed()}
        for session in (paused, open_one, late, unknown):
            is_off = session in (open_one, unknown)
            session.say("afterword", at(minutes=5))
            answer = session.report()
            assert answer.get("bypassed", False) is is_off
            stored = session.stored()
            expected = (session in (paused, open_one), False, not is_off)
            assert tuple(word in stored for word in ("beforeword", "hiddenword", "afterword")) == expected
            fork = f"fork-of-{session.key}"
            session.report(key=fork, **BACKFILL)
            assert "hiddenword" not in session.stored(fork)
        for session, expected_text in ((gone, ""), (quiet, "laterword")):
            session.report(**BACKFILL)
            assert expected_text in session.stored()
            assert bool(expected_text) is bool(session.stored())
        assert signet(daemon, "recover", erased)[0] == 0, "a backup has it, and so nothing is lost by a mistake"
        assert erased in {row["id"] for row in api.listed()}
        daemon.stop()
        assert daemon.broken_invariants() == []
