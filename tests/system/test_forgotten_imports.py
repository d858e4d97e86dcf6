"""What was forgotten stays forgotten through imports, until a person asks for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support.live_daemon import Client

pytestmark = pytest.mark.system
LONG = " ".join(f"Sentence {number} of the long note about the harbour." for number in range(80))


def signet(client: Client, *arguments: str, told: bool = True) -> Any:
    url, agent = f"http://127.0.0.1:{client.daemon.port}", client.headers["x-signet-agent-id"]
    done = CliRunner().invoke(cli, ["--url", url, "--agent", agent, *(["--json"] if told else []), *arguments])
    assert done.exit_code == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout) if told else done.stdout


def contents(client: Client) -> set[str]:
    return {memory["content"] for memory in client.listed()}


def forget(client: Client, text: str, *, permanently: bool = False) -> None:
    """Forget every memory that has the text in it."""
    ids = [memory["id"] for memory in client.listed() if text in memory["content"]]
    assert ids
    for memory in ids:
        signet(client, "forget", memory, "--yes", *(["--permanently"] if permanently else []), told=False)


@pytest.mark.parametrize("permanently", [False, True], ids=["forgotten", "forgotten permanently"])
@pytest.mark.parametrize("edited", ["none", "another", "the forgotten one"])
def test_a_file_of_the_markdown_export_does_not_bring_a_memory_back(
    room: Client, tmp_path: Path, permanently: bool, edited: str
) -> None:
    for name in ("apples", "pears", "plums"):
        room.remember(f"We sell {name} by the kilo")
    signet(room, "export", "--markdown", str(tmp_path / "d"), told=False)
    forget(room, "apples", permanently=permanently)
    if edited != "none":
        name = "pears" if edited == "another" else "apples"
        (file,) = [path for path in (tmp_path / "d").rglob("*.md") if name in path.read_text()]
        file.write_text(file.read_text().replace("by the kilo", "by the crate"))
    told = signet(room, "import", str(tmp_path / "d"), "--from", "signet-markdown")
    assert (told["memories"], told["forgotten"]) == (0, 1)
    pears = "We sell pears by the crate" if edited == "another" else "We sell pears by the kilo"
    assert contents(room) == {pears, "We sell plums by the kilo"}
    shown = signet(room, "import", str(tmp_path / "d"), "--from", "signet-markdown", told=False)
    assert "1 forgotten here, left out (`--restore` brings it back)" in shown
    told = signet(room, "import", str(tmp_path / "d"), "--from", "signet-markdown", "--restore")
    assert (told["memories"], told["forgotten"]) == (1, 0)
    assert len(contents(room)) == 3
    told = signet(room, "import", str(tmp_path / "d"), "--from", "signet-markdown")
    assert (told["memories"], told["forgotten"]) == (0, 0), "it is stored again"


NOTE = "# Fruit\n\n## Apples\n\nWe sell apples by the kilo.\n\n## Pears\n\nWe sell pears by the kilo.\n"
APPLES, PEARS = "We sell apples by the kilo.", "We sell pears by the kilo."


def json_lines(*memories: dict[str, str]) -> str:
    return "".join(f"{json.dumps(memory)}\n" for memory in memories)


SOURCES: dict[str, tuple[str, str, list[str]]] = {
    "an export": ("in.jsonl", "", []),
    "lines without ids": ("in.jsonl", json_lines({"content": APPLES}, {"content": PEARS}), []),
    "lines with a source": (
        "in.jsonl",
        json_lines({"content": APPLES, "sourceId": "s1"}, {"content": PEARS, "sourceId": "s2"}),
        [],
    ),
    "a long text": (
        "in.jsonl",
        json_lines({"content": f"{APPLES} {LONG}", "sourceId": "l1"}, {"content": PEARS}),
        [],
    ),
    "a long text without a source": (
        "in.jsonl",
        json_lines({"content": f"{APPLES} {LONG}"}, {"content": PEARS}),
        [],
    ),
    "notes": ("notes.md", NOTE, ["--from", "markdown"]),
    "a text": ("notes.txt", f"{APPLES}\n\n{PEARS}\n", ["--from", "text"]),
    "mem0": (
        "all.json",
        json.dumps({"results": [{"id": "a1", "memory": APPLES}, {"id": "a2", "memory": PEARS}]}),
        ["--from", "mem0"],
    ),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_an_import_does_not_bring_back_what_was_forgotten_from_it(room: Client, tmp_path: Path, kind: str) -> None:
    name, text, options = SOURCES[kind]
    file = tmp_path / name
    if kind == "an export":
        room.remember("We sell apples by the kilo.")
        room.remember("We sell pears by the kilo.")
        signet(room, "export", str(file), told=False)
    else:
        file.write_text(text)
        signet(room, "import", str(file), *options)
    forget(room, "harbour" if kind.startswith("a long text") else "apples")
    told = signet(room, "import", str(file), *options)
    assert (told["imported"], told["forgotten"], told["refusedCount"]) == (0, 1, 0), told
    assert "apples" not in " ".join(contents(room))
    if name.endswith((".md", ".txt")):
        file.write_text(file.read_text().replace("pears by the kilo", "pears by the crate"))
        told = signet(room, "import", str(file), *options)
        assert (told["imported"], told["forgotten"]) == (1, 1)
        assert "apples" not in " ".join(contents(room))
    told = signet(room, "import", str(file), *options, "--restore")
    assert (told["imported"], told["forgotten"]) == (1, 0)
    assert "apples" in " ".join(contents(room))


def test_what_is_remembered_again_or_is_another_memory_is_not_left_out(room: Client, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"content": "We sell apples by the kilo."}\n{"content": "Apples come on Monday."}\n')
    signet(room, "import", str(file))
    forget(room, "sell apples")
    room.remember("We sell apples by the kilo.")
    told = signet(room, "import", str(file))
    assert (told["imported"], told["deduped"], told["forgotten"]) == (0, 2, 0)
    file.write_text('{"content": "We sell apples by the crate."}\n{"content": "Apples come on Friday."}\n')
    told = signet(room, "import", str(file))
    assert (told["imported"], told["forgotten"]) == (2, 0)
    forget(room, "on Friday")
    file.write_text('{"content": "Apples come on Friday.", "project": "shop"}\n')
    told = signet(room, "import", str(file))
    assert (told["imported"], told["forgotten"]) == (1, 0), "it is that of another project"
    room.remember("Apples come on Friday.")
    assert "Apples come on Friday." in contents(room), "a person who says it again is not refused"


PEOPLE = (
    "# Office\n\n## People\n\nThe landlord is Herr Quandt, 0170 5550134. The {crew} crew has a key.\n\n"
    "## Printer\n\nThe printer needs A4.\n"
)


def test_a_section_that_was_forgotten_does_not_come_back_with_other_words(room: Client, tmp_path: Path) -> None:
    note = tmp_path / "office.md"
    bring = ("import", str(note), "--from", "markdown")
    note.write_text(PEOPLE.format(crew="cleaning"))
    signet(room, *bring)
    forget(room, "Quandt")
    note.write_text(PEOPLE.format(crew="window") + "\n## Coffee\n\nThe beans come from Kassel.\n")
    told = signet(room, *bring)
    assert (told["memories"], told["forgotten"]) == (1, 1)
    assert not any("Quandt" in text for text in contents(room))
    note.write_text("# Office\n\n## People\n\nThe landlord is Frau Ebel. The porter comes at nine.\n")
    told = signet(room, *bring)
    assert (told["memories"], told["forgotten"]) == (1, 0), "what says something else is new"
    note.write_text(PEOPLE.format(crew="lift"))
    told = signet(room, *bring, "--restore")
    assert any("Quandt" in text and "lift" in text for text in contents(room))
    note.write_text(PEOPLE.format(crew="roof"))
    assert signet(room, *bring)["forgotten"] == 0, "it is stored again"
    assert any("Quandt" in text and "roof" in text for text in contents(room))


def test_a_section_of_which_most_is_new_is_stored_though_a_sentence_of_it_was_forgotten(
    room: Client, tmp_path: Path
) -> None:
    note = tmp_path / "runbook.md"
    bring = ("import", str(note), "--from", "markdown")
    kept = "The on-call engineer for payments is Marta Keller."
    said = (
        "Deploys go through Jenkins on port 8080. Rollbacks are made by hand with undo.sh. Backups are kept in Hamburg."
    )
    note.write_text(f"# Runbook\n\n## Payments\n\n{kept} {said} The old server stands in the cellar of the office.\n")
    signet(room, *bring)
    forget(room, "Jenkins")
    said = "Deploys go through Argo CD. Rollbacks are made with git revert. Backups are kept in Falkenstein."
    note.write_text(f"# Runbook\n\n## Payments\n\n{kept} {said} Secrets come from Vault.\n")
    told = signet(room, *bring)
    assert (told["memories"], told["forgotten"]) == (1, 0)
    assert any("Argo CD" in text for text in contents(room))


SECRETS = "The annex key is under the third flower pot. Helga Baum pays 18400 euros for the Nordwind contract."
OTHER = " ".join(f"Shelf {number} of the library holds maps of region {number * 7}." for number in range(14))


@pytest.mark.parametrize("whole", [True, False], ids=["all of it", "one part"])
def test_a_long_section_that_was_forgotten_does_not_come_back_with_other_words(
    room: Client, tmp_path: Path, whole: bool
) -> None:
    note = tmp_path / "archive.md"
    bring = ("import", str(note), "--from", "markdown")
    text = f"## Rooms\n\n{OTHER} {SECRETS} The {{colour}} folder lies beside it. {OTHER.replace('Shelf', 'Rack')}\n"
    note.write_text(text.format(colour="blue"))
    assert signet(room, *bring)["memories"] > 2
    for part in ("Shelf", "Rack", "Nordwind") if whole else ("Nordwind",):
        if any(part in content for content in contents(room)):
            forget(room, part)
    note.write_text(text.format(colour="green"))
    told = signet(room, *bring)
    assert told["forgotten"] == int(whole)
    assert not any("Nordwind" in content or "annex" in content for content in contents(room))
    assert any("Shelf 3 " in content for content in contents(room)) is not whole
    note.write_text(
        text.format(colour="green")
        + "\nThe attic has a new lock since the burglary in Kassel, says the caretaker.\n" * 9
    )
    signet(room, *bring)
    assert any("burglary" in content for content in contents(room)), "what is new is stored"
    assert not any("Nordwind" in content for content in contents(room))


def test_a_part_of_a_growing_log_that_was_forgotten_does_not_come_back_when_a_line_is_added(
    room: Client, tmp_path: Path
) -> None:
    log = tmp_path / "log.md"
    bring = ("import", str(log), "--from", "markdown")
    lines = [f"- 2026-09-{day:02}: Station {day} was measured, {day * 13} litres of rain fell." for day in range(1, 19)]
    lines[15] = "- 2026-09-16: Jonas stays at the clinic in Lindau until Friday."
    log.write_text("# Log\n\n" + "\n".join(lines) + "\n")
    signet(room, *bring)
    forget(room, "Jonas")
    for day in (19, 20):
        lines.append(f"- 2026-09-{day}: Station {day} was sold to the harbour office, pier {day * 7}.")
        log.write_text("# Log\n\n" + "\n".join(lines) + "\n")
        signet(room, *bring)
        assert not any("Jonas" in text for text in contents(room))
        assert any(f"Station {day} was sold" in text for text in contents(room)), "what is new is stored"
        assert any("Station 3 was measured" in text for text in contents(room))


def test_only_what_was_forgotten_of_a_long_section_is_left_out(room: Client, tmp_path: Path) -> None:
    note = tmp_path / "server.md"
    bring = ("import", str(note), "--from", "markdown")
    gate = (
        "The gate of the north yard opens at eight; the key hangs in the office. Jonas stays at the clinic in Lindau."
    )
    block = "```bash\nrestic backup /srv --tag nightly\n```\n- Status: open."
    note.write_text(f"## Server\n\n{gate}\n\n{block}\n\n{OTHER}\n")
    signet(room, *bring)
    forget(room, "Jonas")
    again = "Before that: the boiler room was painted grey by the caretaker. Jonas stays at the hospital in Lindau."
    other = "The north yard gate key hangs at the office of Marta since Monday. Her phone number is 0170 5550134."
    block = block.replace("/srv", "/home --exclude cache").replace("open", "closed")
    note.write_text(f"## Server\n\n{again} {other}\n\n{block}\n\n{OTHER}\n")
    signet(room, *bring)
    said = "\n".join(contents(room))
    assert "Jonas" not in said
    for kept in (
        "painted grey",
        "office of Marta",
        "0170 5550134",
        "```bash\nrestic backup /home",
        "Status: closed",
        "Shelf 9 ",
    ):
        assert kept in said, kept
    stored = contents(room)
    told = signet(room, *bring)
    assert (told["imported"], told["refusedCount"]) == (0, 0)
    assert contents(room) == stored
