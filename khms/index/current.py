"""The index that counts now: what the manifest names, opened for reading. Reading waits for no writer."""

import os

from khms.errors import Unavailable
from khms.index import manifest
from khms.index.lexical import Damaged, Reader
from khms.index.manifest import Manifest, Unusable
from khms.store.layout import Base

HINT = "build it: khms index"


def opened(base: Base) -> tuple[Reader, Manifest]:
    """Raises Unavailable where there is no index, or none that can be trusted; an empty answer is never given for one
    that is damaged."""
    reason = ""
    for _ in range(2):  # a rebuild may put a new index in place between reading the manifest and opening what it names
        try:
            known = manifest.load(base.index)
            if known is None:
                raise Unavailable("this base has no index yet", where=str(base.root), hint=HINT)
            reader = Reader(base.index / known.generation, known.language)
            reason = _cut(base, known)
            if not reason:
                return reader, known
        except (Unusable, Damaged) as error:
            reason = str(error)
    raise Unavailable(f"the index cannot be used: {reason}", where=str(base.index), hint=HINT)


def _cut(base: Base, known: Manifest) -> str:
    """The index file that has another size than was written. One that is missing was merged away by a writer, unless
    the opening failed; meta.json changes with every write."""
    place = f"{base.index}{os.sep}{known.generation}{os.sep}"
    for name, (size, _) in known.stored.items():
        now = manifest.mark(place + name)[0]
        if now not in (size, -1) and name != "meta.json":
            return f"{known.generation}/{name} was cut"
    return ""
