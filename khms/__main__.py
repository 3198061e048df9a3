"""Where the `khms` command starts. `mark` in its plain form, `hook run`, and `recall` where a server answers go past
the command line library: they are paid for on every note and at every moment of a session."""

import sys


def main() -> int:
    """Runs one command line and returns its exit code."""
    argv = sys.argv[1:]
    if argv[:2] == ["hook", "run"] and not {"-h", "--help"} & set(argv):
        from khms.hooks.run import command

        return command(argv[2:])
    if argv[:1] == ["mark"] and len(argv) == 3 and not argv[1].startswith("-") and not argv[2].startswith("-"):
        from khms.cli.jot import jot

        return jot(argv[1], argv[2])
    if "recall" in argv:
        from khms.cli.quick import recall

        status = recall(argv)
        if status is not None:
            return status
    from khms.cli import run

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())
