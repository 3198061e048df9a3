"""Which looks at the base have begun and ended, so that those who wait for one need not all look again.

A process that comes while another one looks has to wait, for that look may have begun before the last write. But when
its turn comes, a third may have looked from beginning to end since it came; then nothing is left to do. With ten
processes that ask at once, each for itself, the last of a queue waited for more than two seconds.

Counted, and not told by a clock, which may be set back. What a killed process left says too little, never too much.
"""

import struct
from pathlib import Path

from khms.store import files

_TWO = struct.Struct("<QQ")  # each is written at once, so that nobody reads half a number
_MOST = 1 << 64


class Looks:
    """The count in the file at `path`. Whoever counts holds the lock of the index."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.came = self._counts()[0]  # the looks that had begun when this one came

    def done_since(self) -> bool:
        """Whether a look has begun since this was made, and ended."""
        return self._counts()[1] > self.came

    def begin(self) -> None:
        begun, ended = self._counts()
        files.write_at(self._path, 0, _TWO.pack((begun + 1) % _MOST, ended))

    def end(self) -> None:
        """Every look before is over too: one that was not ended here was killed, and counts for nobody."""
        begun, _ = self._counts()
        files.write_at(self._path, 0, _TWO.pack(begun, begun))

    def _counts(self) -> tuple[int, int]:
        try:
            begun, ended = _TWO.unpack(files.read(self._path))
        except (OSError, struct.error):
            return 0, 0
        return int(begun), int(ended)
