"""This machine's own folder in a base, `.khms`: made when it is first needed, and never seen by git."""

from khms.store import files
from khms.store.layout import Base


def make(base: Base) -> None:
    """Makes `.khms` with a `.gitignore` of its own, so that a base which does not name it needs no change. Raises
    Unavailable where the base cannot be written."""
    if not (base.local / ".gitignore").exists():
        files.write_atomic(base.local / ".gitignore", b"*\n")
