"""Examples of every command, which its help and the manual page show; a test parses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "up": ("signet up", "signet up --workspace ~/work-agents"),
    "start": ("signet start",),
    "stop": ("signet stop", "signet stop --now"),
    "restart": ("signet restart",),
    "status": ("signet status", "signet status --json"),
    "remember": (
        'signet remember "User prefers vim keybindings" --tags editor',
        "signet remember - --type decision < decision.md",
    ),
    "recall": (
        'signet recall "which editor does the user like?"',
        "signet recall deployments --since yesterday -n 5",
        "signet recall 'duplicate SKUs' --turns",
        "signet recall 'how is the shop deployed?' --aggregate",
    ),
    "search": ("signet search vim keybindings", "signet search --expression 'deploy* NOT friday'"),
    "list": (
        "signet list -n 5",
        "signet list --tags ops --since 'last week'",
        "signet list --deleted",
        "signet list --facets",
    ),
    "show": (
        "signet show 01a2059b-7c1e",
        "signet show 01a2059b-7c1e --history",
        "signet show 01a2059b-7c1e --whole",
        "signet show 0b7d8a52-3f0e",
    ),
    "sessions": ("signet sessions", "signet sessions --project . -n 5"),
    "why": ("signet why 0b7d8a52", "signet why 0b7d8a52 3", "signet why 0b7d8a52 3 --memory 01a2059b-7c1e"),
    "history": ("signet history 01a2059b-7c1e",),
    "edit": ("signet edit 01a2059b-7c1e", 'signet edit 01a2059b-7c1e --content "Prefers Emacs" --reason "asked again"'),
    "forget": ("signet forget 01a2059b-7c1e", "signet forget --tags scratch --since 'last week' --preview"),
    "recover": ("signet recover 01a2059b-7c1e", "signet recover 01a2059b-7c1e 01a2059b-9d03-7c41"),
    "graph": ("signet graph", "signet graph show shop", "signet graph path shop PostgreSQL"),
    "graph list": ("signet graph list --type project", "signet graph list sql -n 5"),
    "graph show": ("signet graph show shop",),
    "graph neighbours": ("signet graph neighbours shop",),
    "graph path": ("signet graph path shop PostgreSQL",),
    "graph pin": ("signet graph pin shop",),
    "graph unpin": ("signet graph unpin shop",),
    "graph suppress": ('signet graph suppress today --reason "no name"', "signet graph suppress Linux --weight 0.2"),
    "graph unsuppress": ("signet graph unsuppress Linux",),
    "graph merge": ("signet graph merge Postgres PostgreSQL",),
    "graph unmerge": ("signet graph unmerge Postgres",),
    "timeline": ("signet timeline 01a2059b-7c1e --newest", "signet timeline PostgreSQL"),
    "export": (
        "signet export memories.jsonl",
        "signet export - --agent alice | gzip > alice.jsonl.gz",
        "signet export --markdown ~/memories",
    ),
    "import": (
        "signet import memories.jsonl",
        "signet import ~/notes --from markdown",
        "signet import docs/notes --project .",
        "signet import ~/memories --from signet-markdown",
        "signet import notes.log --from text",
        "signet import ~/basic-memory --from basic-memory",
        "signet import all.json --from mem0",
        "signet import ~/.claude-mem/claude-mem.db --from claude-mem",
        "signet import old/memories.db --from reference",
        "signet import --from claude-memory",
        "signet import --from codex-memory",
        "signet import ~/.openclaw/workspace-ops --from openclaw",
    ),
    "backfill": (
        "signet backfill --dry-run",
        "signet backfill codex --since 'last month'",
        "signet backfill --export ~/Downloads/conversations.json",
    ),
    "pipeline": ("signet pipeline",),
    "pipeline runs": ("signet pipeline runs --memory 01a2059b-7c1e",),
    "pipeline show": ("signet pipeline show 0b0d7c1e-13f0-4d7f-8a54-2f6d6c1d7d50",),
    "pipeline undo": ("signet pipeline undo 0b0d7c1e-13f0-4d7f-8a54-2f6d6c1d7d50",),
    "pipeline requeue": ("signet pipeline requeue --kind extract",),
    "providers": ("signet providers",),
    "review": ("signet review list",),
    "review list": ("signet review list --state all",),
    "review approve": ("signet review approve 2d0d7c1e-13f0-4d7f-8a54-2f6d6c1d7d50",),
    "synthesis": ("signet synthesis status",),
    "synthesis status": ("signet synthesis status", "signet synthesis status --agent reviewer"),
    "synthesis run": ("signet synthesis run", "signet synthesis run --again"),
    "synthesis diff": ("signet synthesis diff",),
    "review reject": ("signet review reject 2d0d7c1e-13f0-4d7f-8a54-2f6d6c1d7d50 --reason outdated",),
    "token": ("signet token list",),
    "token create": (
        "signet token create --role agent --agent ada --days 30",
        "signet token create --role readonly --project . --ttl 12h --name reviewer",
    ),
    "token rotate": ("signet token rotate 9f86d081884c",),
    "token key": ("signet token key 'nightly import' --connector openclaw",),
    "token list": ("signet token list",),
    "token revoke": ("signet token revoke 9f86d081884c",),
    "login": (
        "signet login https://signet.example.com",
        "signet login https://signet.example.com --token-stdin < token",
    ),
    "logout": ("signet logout https://signet.example.com",),
    "top": ("signet top", "signet top --every 5"),
    "logs": ("signet logs -f", "signet logs --level error -n 20"),
    "config": ("signet config show",),
    "config show": ("signet config show",),
    "config path": ("signet config path",),
    "config check": ("signet config check",),
    "config set": ("signet config set search.alpha 0.6",),
    "config edit": ("signet config edit",),
    "config schema": ("signet config schema > agent.schema.json",),
    "retention": ("signet retention sweep",),
    "retention sweep": ("signet retention sweep",),
    "backup": ("signet backup --to /media/usb/", "signet backup --prune --keep 3"),
    "restore": ("signet restore latest",),
    "doctor": ("signet doctor", "signet doctor --deep"),
    "repair": ("signet repair", "signet repair check-fts"),
    "audit": ("signet audit --kind denied --since yesterday", "signet audit --verify"),
    "bench": ("signet bench quick",),
    "bench quick": ("signet bench quick --seconds 3",),
    "eval": ("signet eval --own", "signet eval questions.jsonl --compare embedding.provider=none"),
    "call": ("signet call memories.list --limit 5",),
    "mcp": ("signet mcp", "signet mcp --agent alice"),
    "setup": ("signet setup", "signet setup --yes"),
    "connect": (
        "signet connect",
        "signet connect claude-code",
        "signet connect claude-code --dry-run",
        "signet connect --check",
        "signet connect claude-code --check -v",
        "signet connect generic",
    ),
    "disconnect": ("signet disconnect claude-code",),
    "service": ("signet service install", "signet service status"),
    "service install": ("signet service install", "signet service install --dry-run"),
    "service uninstall": ("signet service uninstall",),
    "service status": ("signet service status",),
    "uninstall": ("signet uninstall", "signet uninstall --data"),
    "hook": ("signet hook session-start -H claude-code < event.json",),
    "completion": ("signet completion fish",),
    "help": ("signet help pipeline undo",),
    "version": ("signet version",),
}


def with_examples(command: click.Command, name: str) -> click.Command:
    """Add the examples to the help of the command and of its subcommands; return the command."""
    if isinstance(command, click.Group) and name != "call":
        for sub_name, sub_command in command.commands.items():
            with_examples(sub_command, f"{name} {sub_name}")
    if name in EXAMPLES:
        command.epilog = "\n".join(("\b", "Examples:", *(f"  {line}" for line in EXAMPLES[name])))
    return command
