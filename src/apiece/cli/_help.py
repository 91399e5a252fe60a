"""The list of commands, grouped by task."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import click

Tasks = Mapping[str, Sequence[tuple[click.Command, str]]]


class NamedGroup(click.Group):
    """A group that offers the nearest of its commands for one that is not there."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is asked for, or offer the nearest."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            close = get_close_matches(args[0], self.commands, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else "Pick one of them."
            ctx.fail(
                f"there is no command {args[0]!r}: expected one of "
                f"{', '.join(self.commands)}. {hint}"
            )
        return super().resolve_command(ctx, args)


class TaskGroup(NamedGroup):
    """A group whose help lists commands by task, each in one line of at most 79 characters."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.tasks: Tasks = {}

    def add_tasks(self, tasks: Tasks) -> None:
        """Add commands, by task, each with the words that the list shows."""
        self.tasks = tasks
        for commands in tasks.values():
            for command, _ in commands:
                self.add_command(command)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands alone; ``--help`` and ``--version`` are known."""
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write commands by task, and under ``More`` those that have none."""
        known = {command.name for commands in self.tasks.values() for command, _ in commands}
        more = [
            (command, command.get_short_help_str(60))
            for name, command in self.commands.items()
            if name not in known
        ]
        widest = max(len(name) for name in self.commands)
        width = max(50, min(80, shutil.get_terminal_size().columns)) - 1
        for task, commands in (*self.tasks.items(), *([("More", more)] if more else [])):
            formatter.write_paragraph()
            formatter.write(f"{task}\n")
            for command, words in commands:
                begin = f"  {command.name:<{widest}}  "
                formatter.write(
                    textwrap.fill(
                        words, width, initial_indent=begin, subsequent_indent=" " * len(begin)
                    )
                    + "\n"
                )


class SectionedCommand(click.Command):
    """A command whose help separates its options from those that say how a table is read."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write options in sections."""
        from apiece.cli._data import READING
        from apiece.cli._source import COLLECTING

        is_collected = {"run_or_table", *COLLECTING} <= {param.name for param in self.params}
        sections: dict[str, list[tuple[str, str]]] = {
            "Options": [],
            "How a table is read": [],
            "How it is collected, if it has not been yet": [],
        }
        own, read, collected = sections.values()
        for param in self.get_params(ctx):
            if not isinstance(param, click.Option):
                continue
            line = param.get_help_record(ctx)
            if line is None:
                continue
            if param.name in READING:
                read.append(line)
            elif is_collected and param.name in COLLECTING:
                collected.append(line)
            else:
                own.append(line)
        for title, lines in sections.items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)
