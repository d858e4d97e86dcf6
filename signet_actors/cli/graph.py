"""The command graph: what memories know about entities, how these hang together, and what of it counts.

Source: docs/guides/knowledge-graph.md; docs/compatibility.md "Knowledge graph".
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from signet_actors.cli.connection import DaemonClient, DaemonReply
from signet_actors.cli.exit_codes import REFUSED
from signet_actors.cli.invocation import AGENT, Invocation, command, group, page_options
from signet_actors.cli.memory_rows import UnusableId
from signet_actors.cli.presentation import counted, on_terminal, one_line
from signet_actors.cli.tables import Column, print_records, print_wrapped
from signet_actors.domain.graph.names import canonical_name
from signet_actors.errors import ErrorCode, RequestRefused
from signet_actors.operations.request_path import fill_path

ENTITIES: Final = "/api/knowledge/entities"
NEAREST: Final = 3
COMPARED: Final = 200
"""The most mentioned entities are compared with a name that is not known."""


class _EntityGroup(click.Group):
    """A group in which what is no command is the name of an entity to show."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, args if args[0] in self.commands else ["show", *args])


def _marks(entity: Mapping[str, Any]) -> str:
    return ", ".join(word for word in ("pinned", "suppressed") if entity.get(word))


def _arrow(link: Mapping[str, Any]) -> str:
    arrow = "->" if link.get("direction") == "outgoing" else "<-"
    return f"{arrow} {one_line(link.get('type'))}"


LISTED: Final = (
    Column("entity", form=lambda row: row["entity"].get("name"), wrap=True),
    Column("type", form=lambda row: row["entity"].get("entityType")),
    Column("memories", form=lambda row: row["entity"].get("mentions"), right=True),
    Column("facts", "attributeCount", right=True),
    Column("rules", "constraintCount", right=True, drop=1),
    Column("links", "dependencyCount", right=True, drop=2),
    Column("marks", form=lambda row: _marks(row["entity"])),
)
SAID: Final = ("kind", "aspect", "group", "claim", Column("content", wrap=True))
LINKED: Final = (
    Column("entity", "target", wrap=True),
    Column("type", "entityType"),
    Column("how", form=_arrow),
    Column("strength", form=lambda row: f"{row['strength']:.2f}", right=True),
)


@group(cls=_EntityGroup, invoke_without_command=True)
@click.pass_context
def graph(ctx: click.Context) -> None:
    """Show what memory knows about people, projects and tools.

    Without a name: the entities, the most mentioned first. With a name: what is known about it. An entity that is
    called like a command: `signet graph show NAME`.
    """
    if ctx.invoked_subcommand is None:
        _list(ctx.obj, limit=20)


graph.params.insert(0, AGENT)


@command(graph, "list", agent=True)
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--type", "type_", metavar="TYPE", help="Only entities of this type.")
@page_options(COMPARED, "entities")
def list_entities(invocation: Invocation, text: str | None, type_: str | None, limit: int, offset: int) -> None:
    """List entities, those that are pinned first, then the most mentioned ones; with TEXT those whose name has it.

    On a pipe: entity, type, memories, facts, rules, links, marks; separated by tabs.
    """
    _list(invocation, limit=limit, offset=offset or None, type=type_, q=text)


def _list(invocation: Invocation, **query: Any) -> None:
    answer = invocation.client().get(ENTITIES, **query)
    found = answer.records("items")
    if not invocation.has_printed(answer):
        print_records(LISTED, found, none="No entities yet.")


@command(graph, agent=True)
@click.argument("name")
def show(invocation: Invocation, name: str) -> None:
    """Show what is known about an entity: rules, facts by aspect, and what it is connected with.

    On a pipe: kind, aspect, group, claim, content; separated by tabs.
    """
    client = invocation.client()
    found = entity_named(client, name)
    tree = client.get("/api/knowledge/navigation/tree", entity=found["id"], maxClaims=500)
    if invocation.has_printed(tree):
        return
    links = client.get(f"{_path(found)}/neighbours").records("items")
    if not on_terminal():
        connected = [{"kind": link["kind"], "content": f"{_arrow(link)} {link['target']}"} for link in links]
        print_records(SAID, [*_said(tree.records("items")), *connected])
        return
    about = [found["entityType"], counted(found["mentions"], "memory", "memories"), _marks(found)]
    print_wrapped(f"{found['name']}: {', '.join(filter(None, about))}")
    for branch in tree.records("items"):
        print_wrapped(str(branch["aspect"]["name"]), lead="  ", indent=2)
        for said in _said([branch]):
            place = " / ".join(filter(None, (said["group"], said["claim"])))
            rule = "! " if said["kind"] == "constraint" else ""
            print_wrapped(f"{rule}{f'{place}: ' if place else ''}{said['content']}", lead="    ", indent=6)
    if tree.body.get("unclassifiedCount"):
        print_wrapped(f"{counted(tree.body['unclassifiedCount'], 'fact')} without an aspect yet", lead="  ", indent=2)
    for link in links:
        print_wrapped(f"{_arrow(link)} {link['target']} ({link['entityType']})", lead="  ", indent=4)


def _said(branches: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for branch in branches:
        for part in branch.get("groups") or []:
            key = part.get("groupKey")
            for claim in part.get("claims") or []:
                yield {
                    "kind": claim.get("kind"),
                    "aspect": branch["aspect"].get("name"),
                    "group": "" if key == "general" else key,
                    "claim": claim.get("claimKey") or "",
                    "content": claim.get("preview"),
                }


@command(graph, agent=True)
@click.argument("name")
def neighbours(invocation: Invocation, name: str) -> None:
    """List what an entity is connected with, the strongest connections first.

    On a pipe: entity, type, how, strength; separated by tabs.
    """
    client = invocation.client()
    answer = client.get(f"{_path(entity_named(client, name))}/neighbours")
    found = answer.records("items")
    if not invocation.has_printed(answer):
        print_records(LINKED, found, none=f"{one_line(name)} is connected with nothing.")


@command(graph, agent=True)
@click.argument("source", metavar="A")
@click.argument("target", metavar="B")
def path(invocation: Invocation, source: str, target: str) -> None:
    """Show a shortest path between two entities. Exit code 1 if they are not connected."""
    client = invocation.client()
    ends = [entity_named(client, name)["id"] for name in (source, target)]
    answer = client.ask("/api/graph/path", {"source": ends[0], "target": ends[1]})
    answer.confirm("found", True, False)
    if not invocation.has_printed(answer):
        steps = "".join(f" {_arrow(step)} {step['name']}" for step in answer.records("steps"))
        start = answer.body["source"]["name"]
        print_wrapped(f"{start}{steps}" if answer.body["found"] else f"{start} and {target} are not connected.")
    if not answer.body["found"]:
        click.get_current_context().exit(REFUSED)


@command(graph, agent=True)
@click.argument("name")
def pin(invocation: Invocation, name: str) -> None:
    """Pin an entity: what is known about it is considered in every search."""
    _change(invocation, "POST", name, "pin", "Pinned {}.")


@command(graph, agent=True)
@click.argument("name")
def unpin(invocation: Invocation, name: str) -> None:
    """Unpin an entity."""
    _change(invocation, "DELETE", name, "pin", "{} is not pinned.")


@command(graph, agent=True)
@click.argument("name")
@click.option("--reason", metavar="TEXT", help="Why; kept with the entity.")
@click.option("--weight", type=click.FloatRange(0, 1), metavar="N", help="What it still counts, from 0 to 1.")
def suppress(invocation: Invocation, name: str, reason: str | None, weight: float | None) -> None:
    """Hold an entity back in searches, because it says too little or misleads."""
    _change(invocation, "POST", name, "suppress", "Suppressed {}.", reason=reason, weightOverride=weight)


@command(graph, agent=True)
@click.argument("name")
def unsuppress(invocation: Invocation, name: str) -> None:
    """Hold an entity back no longer."""
    _change(invocation, "DELETE", name, "suppress", "{} is not suppressed.")


def _change(invocation: Invocation, method: str, name: str, what: str, done: str, **fields: Any) -> None:
    client = invocation.client()
    found = entity_named(client, name)
    answer = client.send(method, f"{_path(found)}/{what}", fields)
    invocation.print_done(answer, done.format(one_line(found["name"])))


@command(graph, agent=True)
@click.argument("name", metavar="A")
@click.argument("into", metavar="B")
def merge(invocation: Invocation, name: str, into: str) -> None:
    """Make A another name of B: what is known about A is then known about B. `signet graph unmerge A` undoes it."""
    client = invocation.client()
    merged = _merged(client).get(canonical_name(name))
    if merged is not None:
        raise UnusableId(f"{one_line(name)} is another name of {one_line(merged.get('into'))} already")
    source, target = entity_named(client, name), entity_named(client, into)
    answer = client.send("POST", f"{_path(source)}/merge", {"into": target["id"]})
    invocation.print_done(answer, f"{one_line(source['name'])} is another name of {one_line(target['name'])} now.")


@command(graph, agent=True)
@click.argument("name", metavar="A")
def unmerge(invocation: Invocation, name: str) -> None:
    """Undo a merge: A is an entity of its own again."""
    client = invocation.client()
    merged = _merged(client)
    if canonical_name(name) not in merged:
        names = ", ".join(one_line(row.get("name")) for row in merged.values())
        raise UnusableId(f"{one_line(name)} is merged into nothing{f'; merged are: {names}' if names else ''}")
    answer = client.send("POST", f"{_path(merged[canonical_name(name)])}/unmerge", {})
    invocation.print_done(answer, f"{one_line(name)} is an entity of its own again.")


def _path(entity: Mapping[str, Any]) -> str:
    return fill_path(f"{ENTITIES}/{{id}}", {"id": str(entity["id"])})


def _merged(client: DaemonClient) -> dict[str, dict[str, Any]]:
    """Return the entities that were merged into others, by their names and ids."""
    rows = client.get("/api/knowledge/hygiene", limit=500).records("merged")
    return {canonical_name(str(row.get("name"))): row for row in rows}


def entity_named(client: DaemonClient, name: str) -> dict[str, Any]:
    """Return the entity with this name or id. Raises UnusableId, which names those that are like it."""
    try:
        found: dict[str, Any] = client.get("/api/knowledge/navigation/entity", name=name).body["entity"]
    except RequestRefused as refused:
        if refused.code is not ErrorCode.NOT_FOUND:
            raise
        near = ", ".join(f"`{one_line(each)}`" for each in _nearest(client, name))
        raise UnusableId(
            f"no entity is called {one_line(name)!r}{f'; the nearest: {near}' if near else ''}"
        ) from refused
    return found


def _nearest(client: DaemonClient, name: str) -> list[str]:
    """Return the names that contain the given one, else those that are written like it."""
    containing = _names(client.get(ENTITIES, q=name, limit=NEAREST))
    if containing:
        return containing
    names = {canonical_name(each): each for each in _names(client.get(ENTITIES, limit=COMPARED))}
    return [names[key] for key in difflib.get_close_matches(canonical_name(name), names, n=NEAREST)]


def _names(answer: DaemonReply) -> list[str]:
    return [str(row["entity"].get("name")) for row in answer.records("items")]
