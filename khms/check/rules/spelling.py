"""File names as other machines see them."""

from collections.abc import Iterator

from khms.check.context import Context
from khms.check.subject import Fault, Subject


def twin(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH017: no other file has this name in other cases. A disk that does not tell them apart keeps one of the two."""
    other = context.twins.get(subject.path)
    if other is not None:
        mend = "give one of them another name (git mv): macOS and Windows keep only one of the two"
        yield Fault(0, f"this name differs from {other} by case only", mend)
