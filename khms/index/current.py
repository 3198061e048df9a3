"""The index that counts now: what the manifest names, opened for reading. Reading waits for no writer."""

import os

from khms.errors import Unavailable
from khms.index import manifest
from khms.index.lexical import Damaged, Reader
from khms.index.manifest import Manifest, Unusable
from khms.store.layout import Base

HINT = "build it: khms index"
ANEW = "build it anew: khms index --rebuild"


def opened(base: Base) -> tuple[Reader, Manifest]:
    """Raises Unavailable where there is no index, or none that can be trusted; an empty answer is never given for one
    that is damaged."""
    reason = ""
    for _ in range(2):  # a rebuild may put a new index in place between reading the manifest and opening what it names
        try:
            known = manifest.load(base.index)
            if known is None:
                raise Unavailable("this base has no index yet", where=str(base.root), hint=HINT)
            reason = _changed(base, known)  # before it is opened: damaged bytes can end in a panic of the library
            if not reason:
                return Reader(base.index / known.generation, known.language), known
        except (Unusable, Damaged) as error:
            reason = str(error)
    raise unusable(base, reason)


def unusable(base: Base, reason: str) -> Unavailable:
    return Unavailable(f"the index cannot be used: {reason}", where=str(base.index), hint=ANEW)


def _changed(base: Base, known: Manifest) -> str:
    """The index file that is not as it was written. One that is missing was merged away by a writer, unless the opening
    failed; meta.json changes with every write. A file of another time was touched, or copied: its bytes tell."""
    place = f"{base.index}{os.sep}{known.generation}{os.sep}"
    for name, (size, at, digest) in known.stored.items():
        now = manifest.mark(place + name)
        if name == "meta.json" or now == manifest.NOTHING or now[:2] == (size, at):
            continue
        try:
            if now[0] != size or manifest.sha256(place + name) != digest:
                return f"{known.generation}/{name} was changed"
        except FileNotFoundError:
            continue
    return ""
