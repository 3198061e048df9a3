"""Lint: every rule over every file of a base, as findings with file, line and mend.

One broken file is one finding and hides no other. A run over a few files (`paths`, `staged`, `proposed`) reads only
those and knows the rest of the base by its file names.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from khms.check import ahead
from khms.check.context import Context
from khms.check.rulebook import (
    BODILESS,
    BY_KIND,
    CONFLICT,
    DECIDED,
    OLDER,
    PROPOSAL,
    RULES,
    SCREENED,
    UNREADABLE,
    Rules,
)
from khms.check.subject import CANDIDATE, CARD, CHANGE, NOTE, PART, SINGLE, Fault, Subject, kind_of, subjects
from khms.check.survey import survey
from khms.model.card import Card
from khms.model.finding import Finding
from khms.store import tracked
from khms.store.layout import ARCHIVE, INBOX, KNOW, Base
from khms.store.repo import Repo
from khms.store.tracked import Entry

Progress = Callable[[int, int], None]
Generated = Callable[[Mapping[str, Card]], Mapping[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Report:
    """`checked` counts files; the findings are in the order of their places."""

    checked: int
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors


def lint(
    base: Base,
    config: Mapping[str, Any],
    repo: Repo | None = None,
    *,
    paths: Sequence[str] | None = None,
    staged: bool = False,
    index: str = "",
    generated: Generated | None = None,
    progress: Progress | None = None,
) -> Report:
    """What is wrong with the base's files, or with those at or below the base paths `paths`, or (of these) with what is
    `staged`, which needs `repo`; `index` names the staging area where it is not git's usual one.

    `generated` says, given the cards, which generated files differ: path -> the bytes that should be there, None for no
    file. It is asked in a whole run in which every card could be read. `progress` is told (files judged, files in all).
    """
    if staged and repo is not None:
        entries = [entry for entry in tracked.staged(repo, index) if paths is None or _below(entry.path, paths)]
        names = tracked.staged_names(repo, KNOW, ARCHIVE, INBOX, index=index)
    else:
        if repo is not None:
            repo.demand_whole("memory")
        listed = tracked.listing(base, repo) if paths is None else _named(base, repo, paths)
        entries = [entry for entry in (tracked.entry(base, path) for path in listed) if entry is not None]
        names = listed if paths is None else tracked.names(base, (KNOW, ARCHIVE, INBOX))
    screening = ahead.start(base, entries)
    found = [subject for entry in entries for subject in subjects(entry)]
    context = survey(base, config, found, names, whole=paths is None and not staged)
    adopted = bool(config["index.notes"])
    findings: list[Finding] = []
    for done, subject in enumerate(found, 1):
        findings += _judge(subject, context, adopted, BY_KIND)
        if progress is not None and done % 100 == 0:
            progress(done, len(found))
    hits = screening.found() if screening else None
    for subject in found:
        if hits is not None:
            if subject.path not in hits:
                continue
            subject.take(hits[subject.path])
        findings += _judge(subject, context, adopted, SCREENED)
    if generated is not None and context.whole and not any(s.kind == CARD and s.is_unreadable for s in found):
        findings += _generated(base, generated(context.cards))
    return Report(len(entries), tuple(sorted(findings, key=lambda f: (f.path, f.line, f.code))))


def proposed(
    base: Base, config: Mapping[str, Any], changes: Mapping[str, bytes | None], known: Container[str]
) -> list[Finding]:
    """What is wrong with the new cards among `changes`, as if the change had been made and they were approved. What was
    wrong before with other cards is not told."""
    fresh = {path: data for path, data in changes.items() if data is not None and kind_of(path) == CARD}
    kept = [path for path in tracked.names(base, (KNOW, ARCHIVE)) if changes.get(path, b"") is not None]

    def read(path: str) -> bytes | None:
        if path in changes:
            return changes[path]
        entry = tracked.entry(base, path)
        return entry.data if entry is not None else None

    found = [subject for path, data in fresh.items() for subject in subjects(Entry(path, data, len(data)))]
    found = [subject for subject in found if subject.name not in known]
    assumed = frozenset(subject.name for subject in found)
    names = sorted({*kept, *fresh})
    context = survey(base, config, found, names, whole=False, read=read, assumed=assumed)
    rules = (BY_KIND, SCREENED)
    return [f for table in rules for subject in found for f in _judge(subject, context, False, table)]


def _below(path: str, folders: Iterable[str]) -> bool:
    return any(folder in ("", ".", path) or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _named(base: Base, repo: Repo | None, paths: Sequence[str]) -> list[str]:
    """The files at `paths`; of a folder those that git tracks or would add."""
    folders = [path for path in paths if base.path(path).is_dir() and not base.path(path).is_symlink()]
    listed = tracked.listing(base, repo) if folders else []
    return sorted({*(set(paths) - set(folders)), *(path for path in listed if _below(path, folders))})


def _judge(subject: Subject, context: Context, adopted: bool, rules: Rules) -> Iterator[Finding]:
    """Each of these rules for this kind of file. What the state of the file makes pointless is not asked."""
    asked = _asked(subject, context)
    for code, judge in rules[subject.kind]:
        if asked is not None and code not in asked:
            continue
        for fault in judge(subject, context):
            severity = _severity(code, fault, subject, context, adopted)
            yield Finding(code, severity, subject.path, fault.line, fault.message, fault.mend)


def _asked(subject: Subject, context: Context) -> frozenset[str] | None:
    """The only codes to ask for, None for all."""
    if subject.entry.link is not None or subject.entry.nested:
        return BODILESS
    if subject.conflict:
        return CONFLICT
    if subject.is_unreadable:
        return UNREADABLE
    if subject.kind in (CANDIDATE, PART) and (subject.unit, subject.name) in context.taken:
        return DECIDED
    return None


def _severity(code: str, fault: Fault, subject: Subject, context: Context, adopted: bool) -> str:
    severity = fault.severity or RULES[code].severity
    if subject.kind == CARD and code in OLDER and context.is_older(subject.name):
        return "error" if code == "KH010" and context.is_approved(subject.name) else "warning"
    if subject.kind in (CANDIDATE, CHANGE, PART, SINGLE) and code in PROPOSAL:
        return "warning"
    if subject.kind == NOTE and code == "KH001":
        return "warning"
    return "warning" if adopted and not subject.is_own else severity


def _generated(base: Base, differing: Mapping[str, bytes | None]) -> Iterator[Finding]:
    """KH016. A file that was never written, as in a base that is older than khms, is not missed."""
    for path in differing:
        if tracked.entry(base, path) is not None:
            message = "this generated file is not as khms writes it: changed by hand, or out of date"
            yield Finding("KH016", RULES["KH016"].severity, path, 1, message, "khms views writes it anew")
