"""Telling people how far long work is: on standard error, and only where someone is looking."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Protocol, Self


class Reporter(Protocol):
    """Hears how far the work is."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop showing."""
        ...

    def start(self, total: int, done: int) -> None:
        """Hear how many contributions there are altogether, and how many are done already."""
        ...

    def advance(self, count: int) -> None:
        """Hear that more contributions are done."""
        ...

    def say(self, text: str) -> None:
        """Hear something worth telling."""
        ...


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def start(self, total: int, done: int) -> None:
        """Ignore the start."""

    def advance(self, count: int) -> None:
        """Ignore the step."""

    def say(self, text: str) -> None:
        """Ignore the text."""


class Bar:
    """A progress bar with units of work per second and the time left.

    Where standard error is not a terminal the bar is left out and messages are plain lines.
    """

    def __init__(self, title: str = "collecting", unit: str = "contributions") -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TaskID,
            TextColumn,
            TimeRemainingColumn,
        )

        self._title = title
        self._console = Console(stderr=True, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def start(self, total: int, done: int) -> None:
        """Show the bar with what is done already."""
        self._task = self._bar.add_task(self._title, total=total, completed=done, rate="")

    def advance(self, count: int) -> None:
        """Move the bar."""
        if self._task is None:
            return
        self._bar.advance(self._task, count)
        speed = next(task.speed for task in self._bar.tasks if task.id == self._task)
        self._bar.update(self._task, rate=f"{speed:,.0f}/s" if speed else "")

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text, markup=False, soft_wrap=True)


def reporter(
    progress: bool | None, *, title: str = "collecting", unit: str = "contributions"
) -> Reporter:
    """Return a bar if asked for, silence if refused, and a bar on a terminal otherwise."""
    if progress is None:
        progress = sys.stderr.isatty()
    return Bar(title, unit) if progress else Silent()
