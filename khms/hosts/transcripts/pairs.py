"""What belongs together in a transcript and stands apart: a call and its outcome, and one thing that the host wrote
down twice. Both are kept in mind for a bounded number of records."""

from __future__ import annotations

from khms.hosts.transcripts.words import text_of

MOST = 1000  # the oldest is given up


class Pairs:
    """The calls that go on, by the host's id of them: the tool's name stands with the call alone."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def begin(self, identity: object, tool: str) -> None:
        self._names[text_of(identity)] = tool
        if len(self._names) > MOST:
            self._names.pop(next(iter(self._names)))

    def end(self, identity: object) -> str:
        """The tool of a call, and an end of it; empty for one that nobody began."""
        return self._names.pop(text_of(identity), "")


class Twins:
    """Things that two sources tell, each in a record of its own: the one that comes second is told already.

    They are matched one to one, so that the same words said twice are two things and not four or one."""

    def __init__(self) -> None:
        self._alone: dict[tuple[str, int], tuple[str, int]] = {}

    def told(self, source: str, kind: str, words: str) -> bool:
        key = kind, hash(" ".join(words.split()))
        by, count = self._alone.pop(key, (source, 0))
        if by != source:
            if count > 1:
                self._alone[key] = by, count - 1
            return True
        self._alone[key] = source, count + 1
        if len(self._alone) > MOST:
            self._alone.pop(next(iter(self._alone)))
        return False
