"""Run real agent programs against a scripted model on loopback, each with a daemon of its own, and print a table.

    python tests/harnesses/run.py install --root DIR              # npm packages and node, once: 1.7 GB, two minutes
    python tests/harnesses/run.py run --root DIR --signet .venv/bin [--only claude-code,gemini] [--skip delay,backfill]

`run` restarts itself in a network namespace that has only loopback (root on Linux), so nothing that a program tries
can leave the machine; `--shared-network` leaves that out. Each program has its own HOME, workspace and port below
DIR/runs/NAME, which is deleted at the start. What the model was sent is in DIR/runs/NAME.requests.jsonl, the results
are in DIR/results-NAME.json. A program takes about four minutes, OpenCode ten.

Verdicts: `works`, `FAILS`, `ERROR` (the check itself broke), `-` (cannot be tested without a terminal), `note` (a
measurement). "tools in the first request" may fail for Codex, whose first request does not wait for MCP servers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = {
    "claude-code": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
}
FAKE_PORT = 4911
RULE = "never push to main without a review"
FACT = "The staging database listens on port 5433"
LATE = "The release train of Halcyon leaves on Thursdays"
STORED = "The billing service is written in Elixir"
LINE = "[signet:recall"
SUMMARY = (
    "<analysis>DRAFT of the model</analysis>\n"
    "<summary>The user asked for a port, and was told that it is 5433.</summary>"
)
LONG = "It listens on port 5433, and here is why. " + " ".join(f"Reason {n} is about item {n * 7}." for n in range(60))


def flat(value):
    """All strings of a JSON value, joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(flat(one) for one in value.values())
    if isinstance(value, list):
        return "\n".join(flat(one) for one in value)
    return ""


def said(request):
    """What the model is told: the request without its list of tools."""
    return flat({name: value for name, value in (request["body"] or {}).items() if name != "tools"})


def tool_names(request):
    names = []
    for tool in (request["body"] or {}).get("tools") or []:
        names += [one.get("name") for one in tool.get("functionDeclarations", [])]
        names += [one.get("name") for one in tool.get("tools", [])]
        names.append((tool.get("function") or {}).get("name") or tool.get("name"))
    return [name for name in names if name]


def http(url, body=None, timeout=20):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return json.loads(error.read() or b"null")


class Model:
    def __init__(self, log, port=FAKE_PORT):
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen([sys.executable, HERE / "fake_model.py", "--port", str(port), "--log", log])
        for _ in range(100):
            with contextlib.suppress(OSError):
                self.tools()
                return
            time.sleep(0.1)
        raise SystemExit("the fake model did not start")

    def script(self, *replies):
        return http(self.url + "/_script", {"replies": list(replies)})["n"]

    def tools(self):
        return http(self.url + "/_tools")

    def requests(self, after):
        """The requests of the conversation itself: those that offer tools."""
        return [one for one in http(f"{self.url}/_log?after={after}") if (one["body"] or {}).get("tools")]

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Ran:
    def __init__(self, code, output, seconds, requests, started):
        self.code, self.output, self.seconds, self.requests = code, output, seconds, requests
        self.first = said(requests[0]) if requests else ""
        self.last = said(requests[-1]) if requests else ""
        self.first_after = requests[0]["t"] - started if requests else None
        self.tools = {name for request in requests for name in tool_names(request)}
        keys = re.findall(r'\[signet:session \| session_key="([^"]+)"', self.last)
        self.key = keys[0] if keys else None


class Harness:
    name = program = ""
    port = 0

    def __init__(self, arguments, model):
        self.root, self.bin = arguments.root, arguments.signet.absolute()
        self.home = self.root / "runs" / self.name
        shutil.rmtree(self.home, ignore_errors=True)
        self.model = model
        self.workspace = self.home / "workspace"
        self.projects = [self.home / "shop", self.home / "ferry"]
        for project in self.projects:
            project.mkdir(parents=True)
            subprocess.run(["git", "init", "-q", project], check=True)
        self.env = {
            "HOME": str(self.home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "SIGNET_WORKSPACE": str(self.workspace),
            "SIGNET_PORT": str(self.port),
            "PATH": f"{self.bin}:{self.root}/npm/node_modules/.bin:/usr/local/bin:/usr/bin:/bin",
            **self.variables(),
        }
        self.originals = {}
        for path, text in self.settings().items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            self.originals[path] = text.encode()

    # -- to be told by each harness

    def variables(self):
        return {}

    def settings(self):
        return {}

    def command(self, prompt, resume):
        raise NotImplementedError

    def tool_prelude(self):
        return []

    # -- the daemon

    def signet(self, *words, code=0, env=None):
        done = subprocess.run(
            [self.bin / "signet", *words],
            check=False,
            env={**self.env, **(env or {})},
            cwd=self.home,
            text=True,
            capture_output=True,
            timeout=180,
        )
        if code is not None and done.returncode != code:
            raise RuntimeError(f"signet {' '.join(words)}: {done.returncode} {done.stdout[-500:]} {done.stderr[-500:]}")
        return done.stdout + done.stderr

    def api(self, path, body=None):
        return http(f"http://127.0.0.1:{self.port}{path}", body)

    def transcript(self, key, wait_s=6):
        """The text of a stored session; the end of a session may come a moment after the program has ended."""
        until = time.time() + wait_s
        while True:
            found = self.api(f"/api/sessions/{key}/transcript")
            if found.get("content") or time.time() > until:
                return found.get("content") or ""
            time.sleep(0.5)

    def start_daemon(self):
        self.signet("start")

    def kill_daemon(self):
        """kill -9 of every process of this daemon, found by its workspace."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if f"SIGNET_WORKSPACE={self.workspace}".encode() in environment and b"signet_actors" in line:
                found.append(int(entry.name))
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return found

    # -- the program

    def start(self, prompt, project=0, resume=None, env=None):
        return subprocess.Popen(
            self.command(prompt, resume),
            cwd=self.projects[project],
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, prompt, *replies, project=0, resume=None, env=None, timeout=150, during=None):
        after = self.model.script(*(replies or ({"say": "Understood, thank you."},)))
        started = time.time()
        process = self.start(prompt, project, resume, env)
        if during:
            threading.Thread(target=during, daemon=True).start()
        try:
            output, _ = process.communicate(timeout=timeout)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, code = process.communicate()[0], "timeout"
        return Ran(code, output, time.time() - started, self.model.requests(after), started)


class ClaudeCode(Harness):
    name, program, port = "claude-code", "claude", 3921

    def variables(self):
        return {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "sk-ant-not-a-key",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
        }

    def settings(self):
        return {
            self.home
            / ".claude/settings.json": '{\n   "permissions": {"allow": ["Bash(ls:*)"]},\n\t"env": { "A" : "b" }\n}',
            self.home / ".claude.json": '{"numStartups": 3, "hasCompletedOnboarding": true,  "theme":"dark"}\n',
        }

    def command(self, prompt, resume):
        words = [
            "claude",
            "-p",
            prompt,
            "--output-format",
            "json",
            "--allowedTools",
            "mcp__signet__memory_search,mcp__signet__memory_store",
        ]
        return words + (["--resume", resume] if resume else [])

    def own_command(self):
        path = self.home / ".claude/commands/greet.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("GREETING-EXPANDED for $ARGUMENTS\n")
        return "/greet Bob", "GREETING-EXPANDED for Bob"

    def compact(self, session):
        return [self.run("/compact", {"say": SUMMARY}, {"say": SUMMARY}, resume=session)]


class Codex(Harness):
    name, program, port = "codex", "codex", 3922
    limits = ()

    def variables(self):
        return {"OPENAI_API_KEY": "sk-not-a-key"}

    def settings(self):
        return {
            self.home / ".codex/config.toml": f"""# mine
model = "fake-model"
model_provider = "fake"   # on loopback
approval_policy = "never"

[model_providers.fake]
name = "Fake"
base_url = "{self.model.url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""
        }

    def command(self, prompt, resume):
        words = ["codex", "exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", *self.limits]
        return words + (["resume", resume, prompt] if resume else [prompt])

    def compact(self, session):
        self.limits = ["-c", "model_auto_compact_token_limit=9000"]
        try:
            return [
                self.run(
                    "go on with the port",
                    {"tool": "get_goal", "input_tokens": 20000},
                    {"say": "Going on."},
                    resume=session,
                )
            ]
        finally:
            self.limits = []

    def tool_prelude(self):
        return [{"tool": "get_goal", "args": {}, "sleep": 10}]


class Gemini(Harness):
    name, program, port = "gemini", "gemini", 3923

    def variables(self):
        return {
            "GEMINI_API_KEY": "not-a-key",
            "GOOGLE_GEMINI_BASE_URL": self.model.url,
            "GEMINI_TELEMETRY_ENABLED": "false",
        }

    def settings(self):
        return {
            self.home / ".gemini/settings.json": """{
  // mine
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
  "general": { "disableAutoUpdate": true, "enableAutoUpdate": false },
  "privacy": {"usageStatisticsEnabled": false}
}
"""
        }

    def own_command(self):
        path = self.home / ".gemini/commands/greet.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text('prompt = "GREETING-EXPANDED for {{args}}"\n')
        return "/greet Bob", "GREETING-EXPANDED for Bob"

    def command(self, prompt, resume):
        words = ["gemini", "--approval-mode", "yolo", "-m", "gemini-2.5-flash", "-p", prompt]
        return words + (["--resume", resume] if resume else [])


class OpenCode(Harness):
    name, program, port = "opencode", "opencode", 3924

    def variables(self):
        # Before it loads a plugin, OpenCode waits for `npm install` of its package; an answer of 404 ends that.
        return {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "npm_config_registry": self.model.url + "/npm/",
        }

    def settings(self):
        directory = self.home / ".config/opencode"
        return {
            directory / "opencode.json": f"""{{
  "$schema": "https://opencode.ai/config.json",
  // mine
  "model": "fake/fake-model", "small_model": "fake/fake-model", "autoupdate": false, "share": "disabled",
  "provider": {{"fake": {{"npm": "@ai-sdk/openai-compatible", "name": "Fake",
     "options": {{"baseURL": "{self.model.url}/v1", "apiKey": "x"}},
     "models": {{"fake-model": {{"name": "Fake", "tool_call": true,
                                "limit": {{"context": 100000, "output": 4000}}}}}}}}}}
}}
"""
        }

    def compact(self, session):
        return [
            self.run("go on with the port", {"say": "Going on.", "input_tokens": 99500}, resume=session),
            self.run("and go on once more", {"say": SUMMARY}, {"say": SUMMARY}, resume=session),
        ]

    def command(self, prompt, resume):
        words = ["opencode", "run"]
        return words + (["-s", resume] if resume else []) + [prompt]


HARNESSES = {one.name: one for one in (ClaudeCode, Codex, Gemini, OpenCode)}


class Checks:
    """The checks of one harness, in order; each notes (name, verdict, evidence)."""

    def __init__(self, harness, skip):
        self.h, self.skip, self.results = harness, skip, []
        self.session = None
        self.sessions = []

    def note(self, name, verdict, evidence=""):
        verdict = {True: "works", False: "FAILS", None: "-"}.get(verdict, verdict)
        self.results.append({"check": name, "verdict": verdict, "evidence": str(evidence)[:700]})
        print(f"  {verdict:<7} {name}: {str(evidence)[:230]}", flush=True)

    def all(self):
        for step in (
            self.connect,
            self.first,
            self.late_memory,
            self.unrelated,
            self.tools,
            self.other_project,
            self.two_at_once,
            self.own_words,
            self.compaction,
            self.twice,
            self.daemon_away,
            self.daemon_killed,
            self.delay,
            self.backfill,
            self.disconnect,
        ):
            if step.__name__ in self.skip:
                continue
            print(f" {step.__name__} ({time.strftime('%H:%M:%S')}, load {os.getloadavg()[0]:.1f})", flush=True)
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the other checks go on
                self.note(step.__name__, "ERROR", f"{type(error).__name__}: {error}")
                traceback.print_exc()
        self.h.signet("stop", code=None)
        return self.results

    def connect(self):
        h = self.h
        h.start_daemon()
        h.signet("remember", f"critical: {RULE}")
        h.signet("remember", FACT, "--tags", "ops,db", "--type", "decision")
        h.signet("connect", h.name)
        h.signet("disconnect", h.name)
        same = {path.name: path.read_bytes() == text for path, text in h.originals.items()}
        self.note("connect, disconnect: byte for byte", all(same.values()), same)
        h.signet("connect", h.name)
        said_ = h.signet("connect", h.name, "--check", code=None)
        self.note("connect, --check", "✓ prompt" in said_ and "✗" not in said_, " ".join(said_.split())[-420:])
        listed = [one["key"] for one in h.api("/api/sessions")["sessions"]]
        self.note(
            "session of --check has ended", not listed, f"still listed: {listed}" if listed else "not listed any more"
        )

    def first(self):
        h = self.h
        ran = h.run("which port has the staging database?", {"say": "It listens on port 5433, as noted."})
        self.session = ran.key
        self.note("program answers", ran.code == 0 and "5433" in ran.output, f"rc {ran.code}, {ran.seconds:.1f} s")
        self.note(
            "start: pinned rule reaches the model",
            RULE in ran.first,
            f"{ran.first.count(RULE)} times in the first request",
        )
        self.note("fact reaches the model", FACT in ran.first, f"{ran.first.count(FACT)} times in the first request")
        text = h.transcript(ran.key) if ran.key else ""
        self.note("transcript stored", "staging database" in text and "as noted" in text, text[:200])
        self.note("transcript without injected text", bool(text) and RULE not in text and LINE not in text, text[:100])
        time.sleep(2)
        listed = [one["key"] for one in h.api("/api/sessions")["sessions"]]
        self.note("session has ended (not listed as active)", ran.key not in listed, f"listed: {listed}")

    def late_memory(self):
        h = self.h
        if not self.session:
            self.note("resume", None, "no session")
            return
        h.signet("remember", LATE)
        ran = h.run("on which day does the release train of Halcyon leave?", resume=self.session)
        history = re.sub(r"- Recent prompt:.*", "", ran.last)
        self.note(
            "resume: the model has the user's first prompt",
            "which port has the staging database" in history,
            f"rc {ran.code}",
        )
        self.note("resume: the model has the pinned rule", RULE in ran.last, f"{ran.last.count(RULE)} times")
        self.note(
            "memory written just before reaches the next prompt", LATE in ran.last, f"{ran.last.count(LATE)} times"
        )
        before = ran.last.count(LATE)
        again = h.run("and once more, which day does the Halcyon release train leave?", resume=self.session)
        self.note(
            "not repeated in the prompt after it",
            again.last.count(LATE) <= max(before, 1),
            f"{before} times before, {again.last.count(LATE)} after",
        )
        text = h.transcript(self.session)
        self.note("transcript goes on", "once more" in text, f"{text.count('User:')} turns of the user")
        self.note("transcript once", text.count("which port has the staging database?") == 1, "")

    def unrelated(self):
        ran = self.h.run("write a haiku about autumn leaves in the wind")
        self.note(
            "nothing injected for an unrelated prompt",
            LINE not in ran.first,
            re.findall(r"\[signet:recall[^\]]*\]", ran.first),
        )

    def tools(self):
        h = self.h
        ran = h.run(
            "look up the port, then keep what I said about billing",
            *h.tool_prelude(),
            {"tool": "memory_search", "args": {"query": "port of the staging database"}},
            {"tool": "memory_store", "args": {"content": STORED, "tags": ["billing"]}},
            {"say": "All is done now."},
        )
        state = h.model.tools()
        offered = [len([name for name in tool_names(one) if "memory_" in name]) for one in ran.requests]
        self.note(
            "tools offered",
            any(offered),
            f"memory tools in each request: {offered}; missing: {[m['wanted'] for m in state['missing']]}",
        )
        self.note(
            "tools in the first request",
            bool(offered and offered[0]),
            "deferred or not ready yet" if not (offered and offered[0]) else "",
        )
        found = f'"content":"{FACT}"' in ran.last
        self.note("memory_search works", found, "")
        rows = h.api("/api/memories?limit=20")["memories"]
        row = next((one for one in rows if one["content"] == STORED), None)
        self.note(
            "memory_store works",
            row is not None,
            {name: row.get(name) for name in ("who", "project", "type")} if row else [one["content"] for one in rows],
        )
        result = next(iter(re.findall(r'\{"results".*', ran.last)), "")
        if result:
            useful = sum(map(len, re.findall(r'"content":"([^"]*)', result)))
            timings = len("".join(re.findall(r'"timings":\{.*?\]\}', result)))
            self.note(
                "size of a search result",
                "note",
                f"{len(result)} characters, of them {useful} content, {timings} timings of stages",
            )

    def other_project(self):
        h = self.h
        ran = h.run("in what language is the billing service written?", project=1)
        self.note("note of another project is not injected", STORED not in ran.first, "")
        self.note("global fact is known in another project", RULE in ran.first, "")
        ran = h.run("in what language is the billing service written?", project=0)
        self.note("note of the project is injected in a new session", STORED in ran.first, "")

    def two_at_once(self):
        h = self.h
        after = h.model.script({"say": "One of the two.", "sleep": 2}, {"say": "One of the two.", "sleep": 2})
        both = [
            h.start(f"session number {number}: which port has the staging database?", number - 1) for number in (1, 2)
        ]
        codes = []
        for process in both:
            try:
                process.communicate(timeout=150)
                codes.append(process.returncode)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                codes.append("timeout")
        keys = {}
        for request in h.model.requests(after):
            text = said(request)
            number = re.findall(r"session number (\d)", text)
            key = re.findall(r'\[signet:session \| session_key="([^"]+)"', text)
            if number and key:
                keys[number[-1]] = key[0]
        texts = {number: h.transcript(key) for number, key in keys.items()}
        good = len(keys) == 2 and all(
            f"session number {n}" in text and f"session number {3 - int(n)}" not in text for n, text in texts.items()
        )
        self.note("two at once: each has its own session", good, f"rc {codes}, keys {keys}")

    def hook_count(self, hook):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.h.port}/metrics", timeout=20) as answer:
            text = answer.read().decode()
        found = re.findall(rf'signet_http_requests_total\{{[^}}]*route="/api/hooks/{hook}"[^}}]*\}} ([0-9.]+)', text)
        return int(sum(map(float, found)))

    def compaction(self):
        h = self.h
        if not hasattr(h, "compact"):
            self.note("compaction", None, "cannot be forced in headless mode")
            return
        first = h.run("which port has the staging database? answer at length", {"say": LONG})
        before = self.hook_count("pre-compaction"), self.hook_count("compaction-complete")
        rans = h.compact(first.key)
        how = [f"rc {one.code}, {len(one.requests)} requests" for one in rans]
        count = self.hook_count("pre-compaction") - before[0], self.hook_count("compaction-complete") - before[1]
        self.note(
            "compaction: reported to the daemon",
            count[0] > 0,
            f"pre-compaction {count[0]}, compaction-complete {count[1]}; {how}",
        )
        after = h.run("and what did we say about the port?", resume=first.key)
        gone = LONG[:40] not in after.last
        self.note(
            "compaction: memories come again after it",
            (RULE in after.last) if gone else None,
            f"{'replaced by a summary' if gone else 'not compacted'}; rule {after.last.count(RULE)} times",
        )
        rows = h.api("/api/memories?limit=50")["memories"]
        stored = [one["content"] for one in rows if "told that it is 5433" in one["content"]]
        self.note(
            "compaction: stored summary has no draft",
            (not any("DRAFT" in one or "<summary>" in one for one in stored)) if stored else None,
            [one[:120] for one in stored],
        )

    def twice(self):
        """With MEMORY.md, which the daemon makes by itself: with a model at once, else ten minutes after its start."""
        h = self.h
        ollama = Model(h.home / "ollama.jsonl", 11434)  # the daemon looks for one every minute
        try:
            until = time.time() + 100
            while time.time() < until and not (h.workspace / "MEMORY.md").exists():
                h.signet("synthesis", "run", code=None)
                time.sleep(3)
        finally:
            ollama.stop()
        ran = h.run("good morning to you")
        counts = {text[:24]: ran.first.count(text) for text in (RULE, FACT)}
        self.note(
            "each memory once in a start (MEMORY.md exists)",
            max(counts.values()) <= 1 if (h.workspace / "MEMORY.md").exists() else None,
            counts,
        )

    def own_words(self):
        """A checkpoint tells what memory was searched for: the words of the prompt, not of what was injected."""
        h = self.h
        h.signet("remember", "The quokka enclosure is cleaned by the night shift")
        ran = h.run("who cleans the enclosure of the quokka?")
        time.sleep(3)
        found = h.api(f"/api/checkpoints/{ran.key}")["checkpoints"] if ran.key else []
        searched = [
            line for one in found for line in one["digest"].splitlines() if line.startswith("- Searched memory for")
        ]
        self.note(
            "the prompt is searched by its own words",
            not any("auto-loaded" in one or "hook context" in one for one in searched),
            searched,
        )
        command = getattr(h, "own_command", None)
        if command:
            prompt, sign = command()
            ran = h.run(prompt)
            self.note(
                "the user's own slash command still works",
                sign in ran.last,
                f"{prompt!r}: {'expanded' if sign in ran.last else 'sent as text'}",
            )

    def daemon_away(self):
        h = self.h
        h.signet("stop")
        ran = h.run("what do you know about my quarterly plan?", {"say": "I know nothing of a quarterly plan."})
        self.note(
            "daemon away: program answers",
            ran.code == 0 and "quarterly plan" in ran.output,
            f"rc {ran.code}, {ran.seconds:.1f} s",
        )
        self.note(
            "daemon away: the model is told",
            "no memory in this session" in ran.first,
            re.findall(r"Signet: no memory[^\n\"]*", ran.first)[:1],
        )
        self.note(
            "daemon away: the user is told", "no memory" in ran.output or None, ran.output[:150].replace("\n", " ")
        )
        spool = [path.name for path in (h.workspace / "memory/spool").glob("*")]
        h.start_daemon()
        deadline, hits = time.time() + 90, []
        while time.time() < deadline and not hits:
            hits = h.api("/api/sessions/search", {"query": "quarterly plan"}).get("hits", [])
            time.sleep(1)
        self.note(
            "daemon away: the transcript comes later",
            bool(hits),
            f"spooled: {len(spool)}; hits: {[one['excerpt'][:60] for one in hits]}",
        )

    def daemon_killed(self):
        h = self.h
        killed = []

        def kill():
            until = time.time() + 120
            while time.time() < until:
                if h.model.tools()["left"] == []:
                    break
                time.sleep(0.1)
            time.sleep(0.5)
            killed.extend(h.kill_daemon())

        ran = h.run(
            "remind me of the zeppelin timetable", {"say": "The zeppelin leaves at noon.", "sleep": 4}, during=kill
        )
        self.note(
            "daemon killed in the middle: program answers",
            ran.code == 0 and "noon" in ran.output,
            f"rc {ran.code}, {ran.seconds:.1f} s, {len(killed)} processes killed",
        )
        h.start_daemon()
        deadline, hits = time.time() + 90, []
        while time.time() < deadline and not hits:
            hits = h.api("/api/sessions/search", {"query": "zeppelin timetable"}).get("hits", [])
            time.sleep(1)
        self.note(
            "daemon killed: the session is kept after a restart", bool(hits), [one["excerpt"][:60] for one in hits]
        )

    def delay(self):
        h = self.h
        times = {"with": [], "without": []}
        for number in range(6):
            kind = ("with", "without")[number % 2]
            ran = h.run("which port has the staging database?", env={} if kind == "with" else {"SIGNET_NO_HOOKS": "1"})
            if ran.first_after is not None:
                times[kind].append((ran.first_after, ran.seconds))
        medians = {
            kind: tuple(round(statistics.median(one[i] for one in found), 2) for i in (0, 1)) if found else None
            for kind, found in times.items()
        }
        self.note("delay (median s: first request, whole run)", "note", f"{medians}, load {os.getloadavg()[0]:.1f}")

    def backfill(self):
        h = self.h
        known = {
            one["sessionKey"]: self.h.transcript(one["sessionKey"], 0)
            for one in h.api(
                "/api/sessions/search",
                {"query": "the a which port staging leaves zeppelin billing plan haiku", "limit": 20},
            )["hits"]
        }
        other = {"SIGNET_WORKSPACE": str(h.home / "second"), "SIGNET_PORT": str(h.port + 50)}
        h.signet("start", env=other)
        try:
            dry = h.signet("backfill", h.name, "--dry-run", env=other, code=None)
            done = h.signet("backfill", h.name, "-y", env=other, code=None)
            again = h.signet("backfill", h.name, "-y", env=other, code=None)
            same, differ, missing = 0, [], []
            for key, text in known.items():
                found = http(f"http://127.0.0.1:{h.port + 50}/api/sessions/{key}/transcript").get("content")
                if found is None:
                    # Gemini removes its file of a session that is resumed in a later minute than it began.
                    if h.name != "gemini" or any((h.home / ".gemini").rglob(f"*{key[:8]}*")):
                        missing.append(key)
                elif found == text:
                    same += 1
                else:
                    differ.append((key, text[:80], found[:80]))
            self.note("backfill: dry run", "sessions" in dry, " / ".join(dry.strip().splitlines()[-3:]))
            self.note("backfill: stores", "Stored" in done, " ".join(done.split())[-250:])
            self.note(
                "backfill: again stores nothing",
                True if re.search(r"\b0 |nothing|no session", again) else "note",
                " ".join(again.split())[-200:],
            )
            self.note(
                "backfill = what hooks stored",
                not differ and not missing and same > 0,
                f"{same} the same, {len(missing)} missing, differ: {differ[:2]}",
            )
        finally:
            h.signet("stop", env=other, code=None)

    def disconnect(self):
        h = self.h
        h.signet("disconnect", h.name)
        state = {path.name: path.exists() and path.read_bytes() == text for path, text in h.originals.items()}
        rest = [
            str(path.relative_to(h.home))
            for path in h.home.rglob("*signet*")
            if "workspace" not in str(path)
            and "second" not in str(path)
            and "requests" not in str(path)
            and "/cache/" not in str(path)
            and ".cache" not in str(path)
            and "/projects/" not in str(path)
        ]
        named = [path.name for path in h.originals if path.exists() and b"signet" in path.read_bytes()]
        for path in h.originals:
            if not state[path.name] and not named:  # the program has changed it itself: only our entries may be gone
                (h.home / f"after-{path.name}").write_bytes(path.read_bytes())
                ours = [name for name in ("mcpServers", "mcp_servers", "hooks") if name.encode() in path.read_bytes()]
                state[path.name] = f"changed by the program; still in it: {ours}"
        self.note(
            "disconnect: settings as before",
            all(state.values()) and not named and not rest,
            f"byte for byte: {state}; still naming signet: {named}; left: {rest[:4]}",
        )
        ran = h.run("which port has the staging database?")
        self.note(
            "disconnect: nothing injected any more",
            RULE not in ran.first and not any("memory_search" in one for one in ran.tools),
            "",
        )


def install(root):
    root.mkdir(parents=True, exist_ok=True)
    directory = root / "npm"
    directory.mkdir(exist_ok=True)
    if not (directory / "package.json").exists():
        (directory / "package.json").write_text('{"private": true}\n')
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "node@22", *PACKAGES.values()], cwd=directory, check=True
    )
    print(
        "versions:",
        {
            name: json.loads((root / "npm/node_modules" / package / "package.json").read_text())["version"]
            for name, package in PACKAGES.items()
        },
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("install", "run"))
    parser.add_argument("--root", required=True, type=Path)
    parser.add_argument(
        "--signet", default=".venv/bin", type=Path, help="directory of the programs signet and signet-hook"
    )
    parser.add_argument("--only", default=",".join(HARNESSES))
    parser.add_argument("--skip", default="")
    parser.add_argument("--shared-network", action="store_true")
    parser.add_argument("--fake-port", type=int, default=FAKE_PORT)
    arguments = parser.parse_args()
    arguments.root = arguments.root.resolve()
    if arguments.what == "install":
        install(arguments.root)
        return
    if not arguments.shared_network and not os.environ.get("IN_OWN_NETWORK"):
        words = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv]
        os.execvpe("unshare", words, {**os.environ, "IN_OWN_NETWORK": "1"})
    (arguments.root / "runs").mkdir(exist_ok=True)
    table = {}
    for name in arguments.only.split(","):
        print(f"{name}", flush=True)
        log = arguments.root / "runs" / f"{name}.requests.jsonl"
        log.unlink(missing_ok=True)
        model = Model(log, arguments.fake_port)
        try:
            table[name] = Checks(HARNESSES[name](arguments, model), arguments.skip.split(",")).all()
        finally:
            model.stop()
        (arguments.root / f"results-{name}.json").write_text(json.dumps(table[name], indent=1))
    names = list(dict.fromkeys(one["check"] for found in table.values() for one in found))
    print("\n| check | " + " | ".join(table) + " |\n|---|" + "---|" * len(table))
    for check in names:
        cells = [next((one["verdict"] for one in found if one["check"] == check), "") for found in table.values()]
        print(f"| {check} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
