"""Files of a scheduler that change together, or not at all."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from khms.errors import KhmsError, Unavailable
from khms.store import files


def held(path: Path) -> bytes | None:
    """The bytes of a file, None where there is none; raises Unavailable where it cannot be read."""
    try:
        return files.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"cannot read: {error.strerror}", where=str(path), hint="move it away") from error


def put(contents: Mapping[Path, bytes | None]) -> None:
    """Writes each file, or removes it where it has no content."""
    for path, content in contents.items():
        if content is None:
            files.unlink(path)
        else:
            files.write_atomic(path, content, 0o644)


@contextlib.contextmanager
def changed(contents: Mapping[Path, bytes | None]) -> Iterator[Mapping[Path, bytes | None]]:
    """`contents` in their places for the block, which is to make the scheduler take notice; yields what stood there.
    Where the block raises, that stands there again."""
    before = {path: held(path) for path in contents}
    try:
        put(contents)
        yield before
    except BaseException:
        with contextlib.suppress(KhmsError):
            put(before)
        raise
