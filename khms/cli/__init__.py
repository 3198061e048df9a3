"""The command line: parse, load, call one function, print. One file per family of commands.

Importing this package is cheap; each command's module, and what it needs, is imported when the command runs. Errors
are shown here and nowhere else: one line what, one line where, one line what to do.
"""

import os
import sys
from gc import freeze, set_threshold  # by name: `khms gc` has a module of that name in this package

from khms.cli import streams
from khms.errors import KhmsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

BUG = 70
INTERRUPTED = 130
UNWRITTEN = 4


def run(argv: "Sequence[str]") -> int:
    """Runs one command line and returns its exit code; nothing is raised."""
    # A command is one short run over many small values that live until its end: looking for rubbish among them
    # took a third of the time of reading 10,000 cards.
    set_threshold(200_000, 50, 100)
    status = guard(lambda: _click(argv), argv, debug="--debug" in argv)
    freeze()  # the interpreter looks once more before it ends: 30 ms over 10,000 cards
    return status


def guard(work: "Callable[[], int]", argv: "Sequence[str]", *, debug: bool = False) -> int:
    """Does `work` and returns its exit code, or shows what it raised and returns the code that stands for it. An
    answer that could not be written changes a good end into UNWRITTEN; a reader who has seen enough changes nothing."""
    streams.secure()
    status = _outcome(work, argv, debug)
    why = streams.lost()
    if why and status in (0, 1):
        unwritten(why)
        return UNWRITTEN
    return status


def unwritten(why: str) -> None:
    print(f"khms: the answer could not be written: {why}; what was asked is done", file=sys.stderr)


def _outcome(work: "Callable[[], int]", argv: "Sequence[str]", debug: bool) -> int:
    try:
        return work()
    except KeyboardInterrupt:
        return _stop()
    except KhmsError as error:
        if debug:
            import traceback

            traceback.print_exc()
        show(error)
        return error.exit_code
    except MemoryError:
        print("khms: out of memory", file=sys.stderr)
        return 4
    except Exception as error:
        return _bug(error, argv, debug)


def _click(argv: "Sequence[str]") -> int:
    import click

    from khms.cli.group import khms

    try:
        result = khms.main(args=list(argv), prog_name="khms", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.Abort:
        return _stop()
    except click.ClickException as error:
        error.show()
        return 2


def show(error: KhmsError) -> None:
    """Prints an error for a person, on standard error."""
    from khms.cli.output import clean, folded

    told = [f"khms: {clean(error.message)}"]
    told += ["\n".join("  " + part for part in clean(line).splitlines()) for line in (error.where, error.hint) if line]
    for text in told:
        print(folded(text) if sys.stderr.isatty() else text, file=sys.stderr)


def _stop() -> int:
    print("khms: stopped; nothing is half done, run the command again to go on", file=sys.stderr)
    return INTERRUPTED


def _bug(error: Exception, argv: "Sequence[str]", debug: bool) -> int:
    import time
    import traceback

    from khms import __version__
    from khms.config import user_data

    if debug:
        traceback.print_exc()
    log: Path | None = user_data() / "log" / f"bug-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    try:
        assert log is not None
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(
            f"khms {__version__}, Python {sys.version}\n{list(argv)}\n\n{traceback.format_exc()}", encoding="utf-8"
        )
    except OSError:
        log = None
    print(f"khms: this is a bug of khms: {type(error).__name__}: {error}", file=sys.stderr)
    print(f"  {log}" if log else "  (its log could not be written; --debug shows it)", file=sys.stderr)
    print("  please report it with that file", file=sys.stderr)
    return BUG
