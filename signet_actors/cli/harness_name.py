"""The names of harnesses as an argument of a command."""

from __future__ import annotations

import click

from signet_actors.cli.harnesses.registry import HARNESSES
from signet_actors.config.suggest import closest


class HarnessName(click.Choice[str]):
    """The name of a harness; its program (`claude`) and its title mean it, too, in any case."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name. Raises BadParameter, with a name that is like the given one."""
        given = value.lower().replace(" ", "-").replace("_", "-")
        for harness in HARNESSES:
            if given in (harness.program, harness.title.lower().replace(" ", "-")):
                given = harness.name
        if given in self.choices:
            return given
        near = closest(given, self.choices)
        hint = f"did you mean {near}?" if near else f"one of {', '.join(self.choices)}."
        raise click.BadParameter(f"{value!r} is no program that Signet knows; {hint}", ctx, param)
