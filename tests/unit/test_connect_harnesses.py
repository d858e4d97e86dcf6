"""Every harness of ``signet connect``: hooks and memory tools come and go, and nothing else in its files changes.

The fixtures have the real formats, by the pages that ``signet_actors/cli/harnesses/registry.py`` names.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from signet_actors.cli.harnesses import json_text
from signet_actors.cli.harnesses.hook_settings import HookGroups
from signet_actors.cli.harnesses.json_text import InvalidText
from signet_actors.cli.harnesses.registry import (
    CLAUDE_CODE,
    CODEX,
    CURSOR,
    GEMINI,
    HARNESSES,
    OPENCLAW,
    OPENCODE,
    VSCODE,
    WINDSURF,
    Harness,
)
from signet_actors.cli.harnesses.server_entry import ServerEntry, TomlServer, server_words
from signet_actors.cli.main import cli
from signet_actors.hook.harness_events import HOOKS, NAME_OF_EVENT
from tests.support.harness_home import Home, make_home
from tests.support.scripted_daemon import ScriptedDaemon

FIXTURES = Path(__file__).parent / "fixtures" / "harnesses"
RICH = {
    "claude-code": {".claude.json": "claude.json", ".claude/settings.json": "claude-code-settings.json"},
    "codex": {".codex/config.toml": "codex-config.toml", ".codex/hooks.json": "codex-hooks.json"},
    "gemini": {".gemini/settings.json": "gemini-settings.json"},
    "cursor": {".cursor/hooks.json": "cursor-hooks.json", ".cursor/mcp.json": "cursor-mcp.json"},
    "vscode": {f"{VSCODE.directory}/mcp.json": "vscode-mcp.json"},
    "windsurf": {".codeium/windsurf/mcp_config.json": "windsurf-mcp_config.json"},
    "opencode": {".config/opencode/opencode.jsonc": "opencode.jsonc"},
    "openclaw": {".openclaw/openclaw.json": "openclaw.json"},
}
"""A home in which the harness has been used: the fixture of each file."""
by_name = {"ids": lambda harness: harness.name}
every = pytest.mark.parametrize("harness", HARNESSES, **by_name)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("OPENCODE_CONFIG_DIR", raising=False)
    made = make_home(tmp_path, monkeypatch)
    made.install_signet()
    return made


def furnish(home: Home, harness: Harness) -> dict[str, str]:
    """Write the files of the harness, and return their texts by path."""
    texts = {}
    for path, fixture in RICH[harness.name].items():
        texts[path] = (FIXTURES / fixture).read_text()
        (home.root / path).parent.mkdir(parents=True, exist_ok=True)
        (home.root / path).write_text(texts[path])
    return texts


def document(path: Path) -> Any:
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else json_text.parsed(text, comments=True)


def server_of(home: Home, harness: Harness) -> Any:
    return harness.installed_server({"HOME": str(home.root)})


@every
def test_in_an_empty_home_nothing_is_left_after_disconnect(home: Home, harness: Harness) -> None:
    before = home.files()
    done = home.connect(harness)
    assert done.exit_code == 0, done.output
    assert home.files() != before
    assert home.disconnect(harness).exit_code == 0
    left = {path: content for path, content in home.files().items() if content is not None or path in before}
    assert left == before


@every
def test_in_a_used_home_every_byte_comes_back(home: Home, harness: Harness) -> None:
    texts = furnish(home, harness)
    before = home.files()
    done = home.connect(harness)
    assert done.exit_code == 0, done.output
    for path, text in texts.items():
        changed = (home.root / path).read_text()
        assert changed != text
        rest = iter(changed)
        assert all(character in rest for character in text), "something was only inserted"
    connected = home.files()
    assert "is connected already" in home.connect(harness).output
    assert home.files() == connected
    assert home.disconnect(harness).exit_code == 0
    assert home.files() == before


LAYOUTS = {
    "line ends of Windows": lambda raw: raw.replace(b"\n", b"\r\n"),
    "line ends of two kinds": lambda raw: raw.replace(b"\n", b"\r\n", 3),
    "no line end at the end": lambda raw: raw.rstrip(b"\n"),
    "tabs": lambda raw: raw.replace(b"  ", b"\t"),
    "blanks at line ends": lambda raw: raw.replace(b"\n", b"  \n"),
    "blank lines around": lambda raw: b"\n\n" + raw + b"\n\n\n",
    "nothing": lambda raw: b"",
    "white space": lambda raw: b" \n\n",
}
"""How a text editor may leave a file."""


@every
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_byte_comes_back_whatever_the_layout(home: Home, harness: Harness, layout: str) -> None:
    for path in furnish(home, harness):
        (home.root / path).write_bytes(LAYOUTS[layout]((home.root / path).read_bytes()))
    before = home.files()
    done = home.connect(harness)
    assert done.exit_code == 0, done.output
    for path in RICH[harness.name]:
        raw = (home.root / path).read_bytes()
        assert raw != before[path]
        assert layout != "line ends of Windows" or raw.count(b"\n") == raw.count(b"\r\n")
    assert home.disconnect(harness).exit_code == 0
    assert home.files() == before


@every
def test_the_files_of_a_dotfiles_directory_stay_links_and_keep_their_modes(home: Home, harness: Harness) -> None:
    dotfiles = home.root / "dotfiles"
    dotfiles.mkdir()
    for number, path in enumerate(furnish(home, harness)):
        file = home.root / path
        target = dotfiles / f"{number}{file.suffix}"
        file.rename(target)
        target.chmod(0o640)
        file.symlink_to(target)
    before = home.files()
    assert home.connect(harness).exit_code == 0
    for path in RICH[harness.name]:
        assert (home.root / path).is_symlink()
        assert (home.root / path).stat().st_mode & 0o777 == 0o640
        assert (home.root / path).read_bytes() != before[path]
    assert home.disconnect(harness).exit_code == 0
    assert home.files() == before
    for path in RICH[harness.name]:
        assert (home.root / path).is_symlink()
        assert (home.root / path).stat().st_mode & 0o777 == 0o640


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("harness", "path"),
    [
        (CLAUDE_CODE, ".claude/settings.json"),
        (CODEX, ".codex/config.toml"),  # the crate toml, https://github.com/toml-rs/toml-rs/pull/75
        (VSCODE, f"{VSCODE.directory}/mcp.json"),  # white space for microsoft/vscode, src/vs/base/common/json.ts
        (OPENCLAW, ".openclaw/openclaw.json"),  # white space in JSON5, section 8
    ],
    ids=lambda value: value.name if isinstance(value, Harness) else "",
)
def test_a_byte_order_mark_stays_if_the_program_reads_such_a_file(home: Home, harness: Harness, path: str) -> None:
    furnish(home, harness)
    file = home.root / path
    file.write_bytes(MARK + file.read_bytes())
    before = home.files()
    assert home.connect(harness).exit_code == 0
    assert file.read_bytes() != before[path]
    assert file.read_bytes().startswith(MARK)
    assert home.disconnect(harness).exit_code == 0
    assert home.files() == before


@pytest.mark.parametrize("harness", [GEMINI, CURSOR, WINDSURF, OPENCODE], **by_name)
def test_another_file_with_a_byte_order_mark_is_left_alone(home: Home, harness: Harness) -> None:
    for path in furnish(home, harness):
        (home.root / path).write_bytes(MARK + (home.root / path).read_bytes())
    before = home.files()
    done = home.connect(harness)
    assert (done.exit_code, "line 1: not valid JSON (Unexpected UTF-8 BOM" in done.output) == (78, True)
    assert home.files() == before


@every
def test_the_entry_starts_the_memory_tools_for_this_harness(home: Home, harness: Harness) -> None:
    furnish(home, harness)
    home.connect(harness, "--agent", "alice")
    entry = server_of(home, harness)
    words = [str(home.program.with_name("signet")), "mcp", "--harness", harness.name, "--agent", "alice"]
    expected = {
        "claude-code": {"type": "stdio", "alwaysLoad": True, "command": words[0], "args": words[1:]},
        "vscode": {"type": "stdio", "command": words[0], "args": words[1:]},
        "opencode": {"type": "local", "command": words},
    }
    assert entry == expected.get(harness.name, {"command": words[0], "args": words[1:]})


@every
@pytest.mark.parametrize("times", [0, 2], ids=["disconnect", "connect and disconnect"])
def test_memory_tools_of_an_earlier_release_are_brought_up_to_date_and_leave_no_trace(
    home: Home, harness: Harness, times: int
) -> None:
    """In a virtual environment an isolated Python starts them, as it starts the hooks."""
    furnish(home, harness)
    before, signet = home.files(), str(home.program.with_name("signet"))
    home.connect(harness)
    former = server_words(server_of(home, harness))
    assert former[:2] == [signet, "mcp"]
    (home.root / "pyvenv.cfg").write_text("")
    python = home.program.with_name("python")
    python.symlink_to(sys.executable)
    for _ in range(times):
        assert home.connect(harness).exit_code == 0
        assert server_words(server_of(home, harness)) == [str(python), "-I", *former]
        assert {signet, str(python)} <= set(harness.installed_programs({"HOME": str(home.root)}))
    assert harness.tools_from({"HOME": str(home.root)})
    assert home.disconnect(harness).exit_code == 0
    assert home.files() == {**before, "pyvenv.cfg": b"", "bin/python": python.read_bytes()}


@every
def test_what_others_change_in_between_stays(home: Home, harness: Harness) -> None:
    """Comments and servers that are there after our entries, too."""
    texts = furnish(home, harness)
    home.connect(harness)
    for path, text in texts.items():
        file = home.root / path
        changed = file.read_text()
        assert changed.count("signet") > text.count("signet")
        file.write_text(changed.replace("npx", "bunx").replace("copilot", "pilot") + "\n")
    assert home.disconnect(harness).exit_code == 0
    for path, text in texts.items():
        assert (home.root / path).read_text() == text.replace("npx", "bunx").replace("copilot", "pilot") + "\n"


@every
def test_dry_run_prints_the_change_of_each_file_and_makes_none(home: Home, harness: Harness) -> None:
    furnish(home, harness)
    before = home.files()
    done = home.connect(harness, "--dry-run")
    assert done.exit_code == 0
    for path in RICH[harness.name]:
        assert f"--- {home.root / path}\n+++ {home.root / path}\n@@ " in done.output
    assert home.files() == before
    home.connect(harness)
    connected = home.files()
    done = home.disconnect(harness, "--dry-run")
    assert any(line.startswith("-") and "signet" in line for line in done.output.splitlines())
    assert home.files() == connected


@pytest.mark.parametrize("harness", [harness for harness in HARNESSES if harness.events], **by_name)
def test_every_event_calls_the_hook_that_its_name_means(harness: Harness) -> None:
    for event in harness.events:
        assert NAME_OF_EVENT[event.name] == event.hook
        assert HOOKS[event.hook].limit_s < event.timeout_s


def test_the_hooks_of_gemini_have_milliseconds_and_those_of_cursor_no_time(home: Home) -> None:
    for harness in (GEMINI, CURSOR):
        furnish(home, harness)
        home.connect(harness)
    gemini = document(home.root / ".gemini/settings.json")["hooks"]
    assert set(gemini) == {"BeforeTool", "SessionStart", "BeforeAgent", "PreCompress", "AfterAgent", "SessionEnd"}
    command = f"{home.program} user-prompt-submit -H gemini"
    assert gemini["BeforeAgent"] == [{"hooks": [{"type": "command", "command": command, "timeout": 5000}]}]
    assert gemini["PreCompress"][0]["matcher"] == "manual", "an automatic one is announced before each request"
    cursor = document(home.root / ".cursor/hooks.json")
    assert cursor["version"] == 1
    assert cursor["hooks"]["stop"][1] == {"command": f"{home.program} checkpoint -H cursor"}
    assert set(cursor["hooks"]) == {"beforeShellExecution", *(event.name for event in CURSOR.events)}


def test_hooks_that_gemini_does_not_run_are_told(home: Home) -> None:
    (home.root / ".gemini").mkdir()
    (home.root / ".gemini/settings.json").write_text('{"hooksConfig": {"enabled": false}}')
    assert "Gemini CLI runs no hooks: hooksConfig.enabled is false" in home.connect(GEMINI).output


def test_a_server_of_the_users_own_stays_and_is_told(home: Home) -> None:
    own = '{"servers": {"signet": {"type": "http", "url": "http://127.0.0.1:3850/mcp"}}}'
    path = home.root / VSCODE.directory / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text(own)
    done = home.connect(VSCODE)
    assert done.exit_code == 0
    assert "has an MCP server named signet that `signet connect` did not add; it stays as it is." in done.output
    home.disconnect(VSCODE)
    assert path.read_text() == own


@pytest.mark.parametrize(
    "harness", [found for found in HARNESSES if found is not CODEX], ids=lambda harness: harness.name
)
def test_servers_that_are_null_are_left_alone(home: Home, harness: Harness) -> None:
    path = harness.servers_file({"HOME": str(home.root)}).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"mcpServers": null, "servers": null, "mcp": null}')
    done = home.connect(harness)
    assert done.exit_code == 78
    assert f"{path}, line 1" in done.output
    assert "is not an object in braces. Nothing was changed" in done.output
    assert "is not an object in braces" in home.run("connect").output


def test_a_pipe_in_place_of_the_settings_of_codex_is_not_waited_for(home: Home) -> None:
    (home.root / ".codex").mkdir()
    os.mkfifo(home.root / ".codex" / "config.toml")
    listed = home.run("connect")
    assert listed.exit_code == 0
    assert "is a FIFO but must be a regular file" in listed.output


def test_without_the_command_line_only_hooks_are_connected(home: Home) -> None:
    home.program.with_name("signet").unlink()
    before = home.files()
    done = home.connect(VSCODE)
    assert done.exit_code == 78
    assert f"VS Code gets no memory tools, because {home.program.with_name('signet')} does not exist" in done.output
    assert home.files() == before
    done = home.connect(CURSOR)
    assert done.exit_code == 0
    assert done.output.startswith("! Cursor will read memories but cannot store any: it gets no memory tools")
    assert (home.root / ".cursor/hooks.json").exists()
    assert not (home.root / ".cursor/mcp.json").exists()


def test_a_check_says_for_which_opencode_the_tools_are_entered(home: Home, daemon: ScriptedDaemon) -> None:
    script(daemon, answers=True)
    home.connect(OPENCODE)
    said = "as OpenCode 1 reads them. For OpenCode 2, run `signet disconnect opencode`"
    assert any(
        said in note for note in json.loads(home.run("connect", "--check", "--json").stdout)["harnesses"][0]["notes"]
    )
    home.disconnect(OPENCODE)
    settings = home.root / ".config/opencode/opencode.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('{"mcp": {"servers": {}}}')
    home.connect(OPENCODE)
    assert said not in home.run("connect", "--check").output


def test_opencode_2_has_its_servers_one_level_deeper(home: Home) -> None:
    path = home.root / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True)
    path.write_bytes((FIXTURES / "opencode-2.json").read_bytes())
    home.connect(OPENCODE)
    assert set(document(path)["mcp"]["servers"]) == {"docs", "signet"}
    home.disconnect(OPENCODE)
    assert path.read_bytes() == (FIXTURES / "opencode-2.json").read_bytes()


def test_the_variables_that_move_settings_count(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home.root / "xdg"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.root / "work"))
    home.connect(OPENCODE)
    home.connect(CLAUDE_CODE)
    assert (home.root / "xdg/opencode/opencode.json").exists()
    assert {path.name for path in (home.root / "work").iterdir()} >= {"settings.json", ".claude.json"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mcp_servers = { a = { command = 'x' } }\n", "cannot be added"),
        ("a = 1\na = 2\n", "not valid TOML"),
        ('mcp_servers = "none"\n', "cannot be added"),
    ],
)
def test_toml_in_which_no_table_can_be_added_is_left_alone(home: Home, text: str, problem: str) -> None:
    path = home.root / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text(text)
    done = home.connect(CODEX)
    assert done.exit_code == 78
    assert f"{path}, line " in done.output
    assert problem in done.output
    assert path.read_text() == text
    assert not (home.root / ".codex/hooks.json").exists()


OURS = {"command": "/opt/bin/signet", "args": ["mcp", "--harness", "codex"]}


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n", "# a comment", "\n# a comment\n"])
def test_a_table_at_the_end_of_toml_comes_and_goes(end: str) -> None:
    for text in ("", "a = 1", '[b]\nc = [\n  [1],\n]\nd = """\n[x]\n"""', "[mcp_servers.other]\ncommand = 'x'"):
        connected = TomlServer().connected(text + end, OURS)
        assert TomlServer().installed(connected) == OURS
        back = TomlServer().stripped(connected)
        assert tomllib.loads(back.replace("\r\n", "\n")) == tomllib.loads((text + end).replace("\r\n", "\n"))
        assert back.rstrip() == (text + end).rstrip()
        assert TomlServer().stripped(connected, text + end) == text + end
        below = TomlServer().stripped(connected + "[c]\ne = 1", text + end)
        assert below.endswith("[c]\ne = 1")
        assert below.startswith(text + end)


def test_what_users_add_to_our_table_goes_with_it_and_what_follows_stays() -> None:
    connected = TomlServer().connected("a = 1\n", OURS)
    changed = (
        f'{connected}enabled_tools = ["memory_search"]\n\n[mcp_servers.signet.env]\nX = "1"\n\n# next\n[next]\nb = 2\n'
    )
    assert TomlServer().stripped(changed) == "a = 1\n\n# next\n[next]\nb = 2\n"


def test_a_table_in_another_form_is_not_guessed() -> None:
    text = 'mcp_servers.signet = { command = "/opt/bin/signet", args = ["mcp"] }\n'
    with pytest.raises(InvalidText, match="remove it by hand"):
        TomlServer().stripped(text)


JSON_LAYOUTS = (
    *("{}", "{}\n", "{ }\n", "{\n}\n", "{\n\n}", "{\n  // x\n}\n", "{ // x\n}", '{"a":1}', '{"a": 1, "b": 2}\n'),
    *('{\n  "a": 1\n}\n', '{\n  "a": 1,\n}\n', '{\n  "a": 1 // t\n}\n', '{\n  "a": 1, // t\n}\n'),
    *('{\n  "a": 1\n  // last\n}\n', '{\n  "a": 1, /* q\n r */\n}\n', '{\r\n  "a": 1 // t\r\n}\r\n'),
    *('{\n\t"a": {\n\t\t"b": 1\n\t}\n}', '{"a":1 // t\n}', '{\n  "a": 1 /* one\n two */\n}'),
    *("{KEY:{}}", '{KEY:{},"inputs":[]}', '{\n  KEY: {},\n  "inputs": []\n}\n', "{\n  KEY: {\n  }\n}\n"),
    *("{\n  KEY: {\n    // mine\n  }\n}\n", '{"a":1, KEY: { /* none */ }}', "{\n  KEY: {}, // t\n}\n"),
    *('{\n  "a": 1, // t\n  KEY: {} // u\n}\n', "// c\n{\n  // x\n  KEY: {\n    // y\n  },\n}\n"),
    *("{\n  KEY: {\n    OTHER\n  }\n}\n", "{\n  KEY: {\n    OTHER // trailing\n  }\n}\n", "{KEY: {OTHER}}"),
    *("{\n  KEY: {\n    OTHER, // trailing\n  },\n}\n", "{\n  KEY: {\n    OTHER /* b */ // c\n  }\n}\n"),
    *("{KEY: {OTHER, /* z */ }}\r\n", "{KEY: {OTHER , }}", "{\n  KEY: { OTHER }\n}\n", "{KEY: {OTHER} // t\n}"),
    *("{\n  KEY:\n  {\n    OTHER\n  }\n}\n", "{\n    KEY: {\n        OTHER\n        // end\n    }\n}\n"),
)
SERVER = {"command": "/opt/bin/signet", "args": ["mcp"]}
HOOK = {"type": "command", "command": "/opt/bin/signet-hook stop"}
PARTS: tuple[tuple[Any, Any, str, str], ...] = (
    (ServerEntry(("servers",), comments=True), SERVER, "servers", '"x": {"command": "y"}'),
    (ServerEntry(("mcp", "servers"), comments=True), SERVER, "mcp", '"x": {}'),
    (HookGroups(comments=True), {"Stop": {"hooks": [HOOK]}, "Start": {"hooks": [HOOK]}}, "hooks", '"x": []'),
    (HookGroups(comments=True), {"Stop": {"hooks": [HOOK]}}, "hooks", '"Stop": []'),
    (HookGroups(comments=True), {"Stop": {"hooks": [HOOK]}}, "hooks", '"Stop": [{"hooks": []}], "End": [ ]'),
    (
        HookGroups(comments=True, flat=True),
        {"stop": {"command": HOOK["command"]}, "start": {"command": HOOK["command"]}},
        "hooks",
        '"stop": []',
    ),
)


def test_what_was_there_before_comes_back_with_its_layout_also_after_another_change() -> None:
    for part, wanted, key, other in PARTS:
        for layout in JSON_LAYOUTS:
            text = layout.replace("KEY", f'"{key}"').replace("OTHER", other)
            connected = part.connected(text, wanted)
            assert part.installed(connected) == wanted, text
            assert part.stripped(connected, text) == text
            theirs = connected.replace("{", '{"theirs": 1, ', 1)
            assert json_text.parsed(part.stripped(theirs, text), comments=True) == {
                "theirs": 1,
                **json_text.parsed(text, comments=True),
            }
            bare = re.sub(r"//.*|/\*[^*]*\*/", "", text)
            back = part.stripped(part.connected(bare, wanted), text)
            assert "".join(back.split()) == "".join(bare.split()), "a comment that is deleted since stays away"


def test_a_comment_stays_beside_the_entry_that_it_is_about() -> None:
    for comment in ("// about x", "/* about x */", "/* about\n x */", "/* a */ // about x"):
        for comma in ("", ","):
            text = f'{{\n  "servers": {{\n    "x": {{}}{comma} {comment}\n  }}\n}}\n'
            connected = ServerEntry(("servers",), comments=True).connected(text, SERVER)
            assert f'"x": {{}}, {comment}\n    "signet": ' in connected


def test_an_empty_object_of_the_user_stays_when_the_file_has_changed_since(home: Home) -> None:
    path = home.root / VSCODE.directory / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"servers":{},"inputs":[]}')
    home.connect(VSCODE)
    path.write_text(path.read_text().replace('"inputs"', '/* n */ "inputs"'))
    assert home.disconnect(VSCODE).exit_code == 0
    assert path.read_text() == '{"servers":{},/* n */ "inputs":[]}'


SPACE = st.sampled_from(["", " ", "\n", "\n  ", ' // c ] } , "\n', "/* , } */", ' /* " */ '])
COMMA = st.sampled_from(["", ","])


@st.composite
def commented_objects(draw: st.DrawFn) -> str:
    """An object of servers, with comments and perhaps a comma at its end."""
    names = draw(st.lists(st.sampled_from(["a", "b", "//", 'q"', "/*x"]), unique=True, max_size=3))
    members = [
        f'{draw(SPACE)}{json.dumps(name)}{draw(SPACE)}:{draw(SPACE)}{{"url": "http://x"}}{draw(SPACE)}'
        for name in names
    ]
    return "{" + ",".join(members) + (draw(COMMA) if names else "") + draw(SPACE) + "}"


@given(inner=commented_objects(), before=SPACE, after=SPACE)
def test_comments_survive_that_our_entry_comes_and_goes(inner: str, before: str, after: str) -> None:
    text = f'{before}{{{after}"servers":{before}{inner}{after}}}{after}'
    part = ServerEntry(("servers",), comments=True)
    connected = part.connected(text, OURS)
    assert part.installed(connected) == OURS
    back = part.stripped(connected)
    servers = json_text.parsed(text, comments=True)["servers"]
    assert json_text.parsed(back, comments=True).get("servers", {}) == servers
    if servers:
        assert back == text


@example(text="// nothing but a comment")
@example(text="{,}")
@given(text=st.text(alphabet='{}[]",:\\ \n1ae/*', max_size=30))
def test_no_text_with_comments_makes_connect_fail_in_another_way(text: str) -> None:
    part = ServerEntry(("servers",), comments=True)
    try:
        connected = part.connected(text, OURS)
    except InvalidText:
        return
    assert part.installed(connected) == OURS


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Any:
    scripted = ScriptedDaemon()
    monkeypatch.setenv("SIGNET_DAEMON_URL", scripted.url)
    yield scripted
    scripted.close()


def script(daemon: ScriptedDaemon, *, answers: bool) -> None:
    """Have the daemon answer prompts and searches with the memory that was stored last, or with nothing."""
    stored: list[str] = []
    answer = daemon._next

    def next_answer(method: str, path: str) -> Any:
        if path == "/api/memory/remember":
            stored.append(daemon.asked[-1].body["content"])
        scripted = answer(method, path)
        if path == "/api/hooks/user-prompt-submit":
            scripted.body = {"inject": f"- {stored[-1]}" if answers else ""}
        elif path == "/api/memory/recall":
            scripted.body = {"results": [{"id": "01a2", "content": stored[-1]}] if answers else [], "query": "x"}
        return scripted

    daemon._next = next_answer
    daemon.on("POST", "/api/hooks/session-start", {"inject": "[memory active]\n- prefers vim"})
    daemon.on("POST", "/api/hooks/session-end", {"memoriesSaved": 0, "reason": "No such file or directory"})
    daemon.on("POST", "/api/hooks/user-prompt-submit", {})
    daemon.on("POST", "/api/memory/recall", {})
    daemon.on("POST", "/api/memory/remember", {"id": "01a2", "type": "fact", "content": "x"})
    daemon.on("POST", "/api/memory/forget", {"confirmToken": "t-1", "mode": "preview"})


@pytest.mark.parametrize("harness", [GEMINI, CURSOR, VSCODE, OPENCODE], **by_name)
def test_check_asks_by_hooks_and_by_tools(home: Home, daemon: ScriptedDaemon, harness: Harness) -> None:
    home.install_signet("--url", daemon.url)
    script(daemon, answers=True)
    home.connect(harness)
    done = home.run("--url", daemon.url, "connect", harness.name, "--check")
    assert done.exit_code == 0, done.output
    assert ("✓ start " in done.output, "✓ prompt " in done.output) == (bool(harness.events),) * 2
    assert "✓ tools       12 tools; memory_search finds the same memory" in done.output
    assert daemon.asked[-1].path == "/api/memory/forget"


def test_check_tells_that_the_tools_find_nothing_or_do_not_start(home: Home, daemon: ScriptedDaemon) -> None:
    home.install_signet("--url", daemon.url)
    script(daemon, answers=False)
    home.connect(WINDSURF)
    done = home.run("--url", daemon.url, "connect", "windsurf", "--check")
    assert (done.exit_code, "✗ tools       memory_search did not find a memory" in done.output) == (1, True), (
        done.output
    )
    home.program.with_name("signet").write_text("#!/bin/sh\necho no such luck >&2; exit 3\n")
    done = home.run("--url", daemon.url, "connect", "windsurf", "--check")
    assert (done.exit_code, "it ended without an answer (no such luck)" in done.output) == (1, True), done.output


def test_check_of_a_harness_without_hooks_that_is_not_connected_says_so(home: Home) -> None:
    done = home.run("connect", "vscode", "--check")
    assert (done.exit_code, "✗ tools       not installed; `signet connect vscode` adds them" in done.output) == (
        1,
        True,
    )


def test_setup_lists_what_it_finds_and_changes_nothing_without_a_terminal(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home.program.parent))
    monkeypatch.setattr(sys, "executable", str(home.program.parent / "python"))
    assert "None of the harnesses" in home.run("setup").stdout
    for harness in (GEMINI, WINDSURF):
        furnish(home, harness)
    home.connect(WINDSURF)
    before = home.files()
    done = home.run("setup")
    assert done.stdout.splitlines() == [
        "Gemini CLI: not connected; `signet connect gemini` connects it",
        "Windsurf: connected",
    ]
    assert "`signet setup --yes`" in done.stderr
    assert home.files() == before


NEAR_NAMES = {
    "claude": "claude-code",
    "Claude": "claude-code",
    "Claude Code": "claude-code",
    "claude_code": "claude-code",
    "code": "vscode",
    "VS Code": "vscode",
    "Gemini CLI": "gemini",
    "gemini-cli": "gemini",
    "OpenCode": "opencode",
    "CURSOR": "cursor",
}
SUGGESTED = {
    "claud": "claude-code",
    "claude-cod": "claude-code",
    "codx": "codex",
    "codex-cli": "codex",
    "gemeni": "gemini",
    "cursr": "cursor",
    "vs-cod": "vscode",
    "windserf": "windsurf",
    "open-code": "opencode",
    "open-claw": "openclaw",
}


def test_a_program_may_be_called_by_its_command_or_its_title_and_a_mistyped_name_is_corrected(home: Home) -> None:
    for called, name in NEAR_NAMES.items():
        for command in ("connect", "disconnect"):
            assert json.loads(home.run("--json", command, called, "--dry-run").stdout)["harness"] == name
    for called, name in SUGGESTED.items():
        refused = home.run("connect", called)
        assert (refused.exit_code, f"did you mean {name}?" in refused.stderr) == (2, True), refused.stderr
    assert home.run("backfill", "claude", "Gemini CLI", "--dry-run").exit_code == 0
    assert "did you mean codex?" in home.run("backfill", "codx", "--dry-run").stderr
    for called in ("emacs", "x", "zed"):
        refused = home.run("disconnect", called)
        assert "one of claude-code, codex, gemini, cursor, vscode, windsurf, opencode, openclaw." in refused.stderr
        assert "did you mean" not in refused.stderr


def test_what_is_connected_by_another_installation_is_not_replaced_without_a_question(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(home.program.parent / "python"))
    monkeypatch.setenv("PATH", str(home.program.parent))
    other = home.install(home.root / "other" / "bin")
    for harness in (CODEX, GEMINI, CURSOR, OPENCODE):
        home.run("connect", harness.name, "--command", str(other))
        before = home.files()
        states = {row["harness"]: row["state"] for row in json.loads(home.run("--json", "connect").stdout)["harnesses"]}
        assert states[harness.name] == f"connected, by another installation ({other})"
        for typed in ("n\n", "\n", ""):
            refused = CliRunner().invoke(cli, ["connect", harness.name], prog_name="signet", input=typed)
            assert refused.exit_code == 1
            asked = f"{harness.title} is connected by another installation ({other}); replace it? [y/N]"
            assert asked in refused.stderr
            assert home.files() == before
        done = CliRunner().invoke(cli, ["connect", harness.name], prog_name="signet", input="y\n")
        assert "✓ Connected" in done.output
        home.run("connect", harness.name, "--command", str(other))
        done = home.run("connect", harness.name, "--yes")
        assert ("✓ Connected" in done.output, "[y/N]" in done.output) == (True, False)
        assert str(other) not in str(home.files())


def test_a_connection_whose_program_is_gone_is_told_and_replaced_without_a_question(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(home.program.parent / "python"))
    monkeypatch.setenv("PATH", str(home.program.parent))
    other = home.install(home.root / "other" / "bin")
    for harness in (CODEX, GEMINI, CURSOR, OPENCODE):
        home.run("connect", harness.name, "--command", str(other))
    other.unlink()
    for harness in (CODEX, GEMINI, CURSOR, OPENCODE):
        states = {row["harness"]: row["state"] for row in json.loads(home.run("--json", "connect").stdout)["harnesses"]}
        assert states[harness.name] == f"connected, but {other} does not exist"
        assert "✓ Connected" in home.run("connect", harness.name).output


@every
def test_directories_that_were_there_stay_and_those_that_connect_made_go(home: Home, harness: Harness) -> None:
    directory = harness.settings(os.environ).path.parent
    made = [directory, *directory.parents[: len(directory.relative_to(home.root).parts) - 1]]
    for number in range(len(made) + 1):  # of the directories above the file, the outermost ones are there
        for path in reversed(made[len(made) - number :]):
            path.mkdir(exist_ok=True)
        before = home.files()
        home.connect(harness)
        home.disconnect(harness)
        assert home.files() == before


def test_generic_prints_what_any_program_needs(home: Home) -> None:
    done = home.run("connect", "generic", "--command", str(home.program), "--agent", "alice")
    assert done.exit_code == 0
    words = json.loads(done.stdout)["mcpServers"]["signet"]
    assert words == {"command": str(home.program.with_name("signet")), "args": ["mcp", "--agent", "alice"]}
    assert f"{home.program} session-start --agent alice" in done.stderr
    found = json.loads(home.run("connect", "generic", "--command", str(home.program), "--json").stdout)
    assert found["hooks"]["recall"] == [str(home.program), "recall"]


def test_a_file_of_several_megabytes_is_edited(home: Home) -> None:
    """Claude Code keeps the history of each project in the file with its MCP servers."""
    path = home.root / ".claude.json"
    projects = {f"/home/ann/{number}": {"history": [{"display": "x" * 5000}]} for number in range(1000)}
    path.write_text(json.dumps({"projects": projects}, indent=2))
    before = path.read_bytes()
    assert home.connect(CLAUDE_CODE).exit_code == 0
    assert "signet" in json.loads(path.read_bytes())["mcpServers"]
    assert home.disconnect(CLAUDE_CODE).exit_code == 0
    assert path.read_bytes() == before
