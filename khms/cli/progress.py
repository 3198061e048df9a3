"""A bar for work that takes long enough to be seen: on a terminal's standard error, nothing in a pipe."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from khms.cli.output import console


@contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """Gives a function that is told (done, all); None where no bar is shown."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console(error=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
