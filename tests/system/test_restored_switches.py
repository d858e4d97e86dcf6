"""A restore knows for which sessions memory was switched off since the backup, and what was forgotten or erased.

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


def test_what_was_switched_off_forgotten_or_erased_since_the_backup_stays_out_after_a_restore() -> None:
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
            api.request("POST", "/api/checkpoints", {"sessionKey": session.key, "context": "beforeword"}).ok()
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
        assert (code, told["carried_over"], told["memories_before"], told["memories_after"]) == (0, True, 2, 1), said
        daemon.start()
        daemon.wait_ready()
        assert {row["id"] for row in api.listed()} == {kept}
        assert not {erased, again, forgotten} & set(api.recalled("the lynx, the heron and the otter below the bridge"))
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
        checkpoints = {session: api.get(f"/api/checkpoints/{session.key}").ok()["count"] for session in (gone, quiet)}
        assert checkpoints == {gone: 0, quiet: 1}
        for session, expected_text in ((gone, ""), (quiet, "laterword")):
            session.report(**BACKFILL)
            assert expected_text in session.stored()
            assert bool(expected_text) is bool(session.stored())
        for memory in (erased, forgotten):
            assert signet(daemon, "recover", memory)[0] == 0, "a backup has it, and so nothing is lost by a mistake"
        assert {row["id"] for row in api.listed()} == {kept, erased, forgotten}
        daemon.stop()
        assert daemon.broken_invariants() == []


def test_a_restore_keeps_what_was_replaced_since_the_backup() -> None:
    with live_daemon(patient=True) as daemon:
        notes = daemon.root / "notes.md"
        notes.write_text("The harbour master is Ada Lovelace\n")
        assert signet(daemon, "import", str(notes), "--yes")[0] == 0
        decided = daemon.api.remember("The lock is painted green")["id"]
        ((imported,),) = daemon.read("SELECT id FROM memories WHERE content LIKE '%Ada%'")
        assert signet(daemon, "backup")[0] == 0
        notes.write_text("The harbour master is Grace Hopper\n")
        assert signet(daemon, "import", str(notes), "--yes")[0] == 0
        daemon.api.acting(x_signet_actor_type="pipeline").request(
            "DELETE", f"/api/memory/{decided}", {"reason": "a newer memory says it"}
        ).ok()
        assert imported not in {row["id"] for row in daemon.api.listed()}
        assert decided not in {row["id"] for row in daemon.api.listed()}
        daemon.stop()
        code, _, said = signet(daemon, "restore", "latest", "--yes")
        assert code == 0, said
        daemon.start()
        daemon.wait_ready()
        assert {row["id"] for row in daemon.api.listed()} == {imported, decided}, "the backup lacks what replaced them"


def test_a_memory_recovered_after_a_restore_is_live_whichever_database_is_restored_next() -> None:
    with live_daemon(patient=True) as daemon:
        memory = daemon.api.remember("The otter is below the bridge")["id"]
        assert signet(daemon, "backup")[0] == 0
        assert signet(daemon, "forget", memory, "--yes")[0] == 0
        daemon.stop()
        assert signet(daemon, "restore", "latest", "--yes")[0] == 0
        daemon.start()
        daemon.wait_ready()
        assert signet(daemon, "recover", memory)[0] == 0
        assert signet(daemon, "backup")[0] == 0
        daemon.stop()
        (aside,) = (daemon.workspace / "memory").glob("aside-*/memories.db")
        for source, live in ((str(aside), []), ("latest", [memory])):
            code, _, said = signet(daemon, "restore", source, "--yes")
            assert code == 0, said
            daemon.start()
            daemon.wait_ready()
            assert [row["id"] for row in daemon.api.listed()] == live
            daemon.stop()
        assert daemon.broken_invariants() == []
