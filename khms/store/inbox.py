"""Inbox units: a folder with one candidate a file, or the older tools' single file. Read only; units are published by
one commit and changed by reviewers."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from khms.errors import Refused
from khms.model.approval import plain_bytes
from khms.model.candidate import Candidate
from khms.model.card import as_text
from khms.store import branches, files, markdown
from khms.store.layout import INBOX, RECEIPTS, Base
from khms.store.markdown import Unreadable

SECTIONS = ("deferred", "dropped")
_TITLE = re.compile(r"^###\s+(C\d+)\s*(?::\s*(.*?))?\s*$")


@dataclass(frozen=True, slots=True)
class Unit:
    """`name` is the stem, `path` the folder's or file's path in the base, `files` the bytes of each candidate file.

    `single` marks the older single-file form. `broken` names what cannot be read; it hides no other candidate.
    """

    name: str
    path: str
    single: bool
    candidates: tuple[Candidate, ...]
    broken: tuple[Unreadable, ...] = ()
    deferred: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)

    def candidate(self, label: str) -> Candidate | None:
        return next((c for c in self.candidates if c.label == label), None)


def label_order(label: str) -> tuple[int, str]:
    digits = label[1:]
    return (int(digits), label) if digits.isdigit() else (1 << 30, label)


def units(base: Base) -> Iterator[Unit]:
    """Every unit, by name. Temporary folders of a publication that was cut off are not units."""
    if not base.inbox.is_dir():
        return
    for path in sorted(base.inbox.iterdir()):
        if path.name.startswith((".", files.TEMPORARY)):
            continue
        if path.is_dir():
            yield _folder(base, path)
        elif path.suffix == ".md":
            yield _single(base, path)


def find(base: Base, name: str) -> Unit:
    """The unit that `name` means: its name, or its path in the base or on disk. Raises Refused naming what there is."""
    wanted = name.rstrip("/")
    stem = Path(wanted).name.removesuffix(".md")
    for path in (base.inbox / stem, base.inbox / f"{stem}.md"):
        named_here = wanted in (stem, f"{stem}.md", base.relative(path)) or _same(wanted, path)
        if stem in ("", ".", "..") or not path.exists() or not named_here:
            continue
        files.inside(base.root, path)
        return _folder(base, path) if path.is_dir() else _single(base, path)
    branch = branches.unmerged_unit(base, name)
    if branch is not None:
        raise Refused(
            f"{branch.unit} is not merged: it stands on the branch {branch.name}",
            where=str(base.inbox),
            hint=f"merge that branch (its pull request), or take the unit over as it is: git checkout {branch.name}"
            f" -- {unit_path(branch.unit)} {RECEIPTS}",
        )
    known = ", ".join(unit.name for unit in units(base)) or "none"
    raise Refused(f"there is no inbox unit {name!r}", where=str(base.inbox), hint=f"units: {known}")


def _same(wanted: str, path: Path) -> bool:
    return os.path.realpath(wanted) == os.path.realpath(path)


def _folder(base: Base, folder: Path) -> Unit:
    candidates: list[Candidate] = []
    broken: list[Unreadable] = []
    for path in sorted((p for p in folder.glob("*.md") if p.name != "REPORT.md"), key=lambda p: label_order(p.stem)):
        shown = base.relative(path)
        try:
            _take(shown, files.read(files.inside(base.root, path)), candidates, broken)
        except (Refused, OSError) as error:
            broken.append(Unreadable(str(error), path=shown, line=1, mend="put the file itself here, readable"))
    return Unit(
        name=folder.name,
        path=base.relative(folder),
        single=False,
        candidates=tuple(candidates),
        broken=tuple(broken),
        deferred=_withheld(folder / "deferred"),
        dropped=_withheld(folder / "dropped"),
        meta=_meta(base, folder / "unit.json"),
    )


def _take(shown: str, data: bytes, candidates: list[Candidate], broken: list[Unreadable]) -> None:
    label = shown.rpartition("/")[2].removesuffix(".md")
    try:
        page = markdown.parse(data, shown)
    except Unreadable as error:
        broken.append(error)
    else:
        candidates.append(Candidate(label, page.meta, page.body, shown, page.body_line, plain_text(data)))


def folder_of(path: str, found: Mapping[str, bytes]) -> Unit:
    """The unit at the base path `path` that is made of these files, by base path: one that is not in the work tree."""
    inner = {name.removeprefix(f"{path}/"): data for name, data in found.items()}
    candidates: list[Candidate] = []
    broken: list[Unreadable] = []
    for name in sorted(inner, key=lambda name: label_order(name.removesuffix(".md"))):
        if "/" not in name and name.endswith(".md") and name != "REPORT.md":
            _take(f"{path}/{name}", inner[name], candidates, broken)
    try:
        meta = files.parse_json(inner.get("unit.json", b"{}"))
    except ValueError:
        meta = {}
    below: dict[str, list[str]] = {section: [] for section in SECTIONS}
    for name in inner:
        section, _, file = name.partition("/")
        if section in below and file.endswith(".md") and "/" not in file:
            below[section].append(file.removesuffix(".md"))
    return Unit(
        name=path.rpartition("/")[2],
        path=path,
        single=False,
        candidates=tuple(candidates),
        broken=tuple(broken),
        deferred=tuple(sorted(below["deferred"], key=label_order)),
        dropped=tuple(sorted(below["dropped"], key=label_order)),
        meta=meta if isinstance(meta, dict) else {},
    )


def _withheld(folder: Path) -> tuple[str, ...]:
    return tuple(sorted((path.stem for path in folder.glob("*.md")), key=label_order))


def _meta(base: Base, path: Path) -> dict[str, Any]:
    try:
        value = files.read_json(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Refused(
            f"this unit's description cannot be read: {error}",
            where=base.relative(path),
            hint=f"restore it: git checkout -- {base.relative(path)}",
        ) from error
    return value if isinstance(value, dict) else {}


def _single(base: Base, path: Path) -> Unit:
    return single(files.inside(base.root, path).read_bytes(), path.stem, base.relative(path))


def single(data: bytes, name: str, shown: str) -> Unit:
    """The older form: `### C1: title` and a fenced block of frontmatter and body under `## Cards`, or plain consecutive
    frontmatter blocks. Its Flagged, Deferred and Dropped sections hold prose and are never candidates."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        broken = Unreadable("this file is not UTF-8", path=shown, line=1, mend="save it as UTF-8")
        broken.__cause__ = error
        return Unit(name, shown, True, (), (broken,))
    candidates: list[Candidate] = []
    problems: list[Unreadable] = []
    for label, title, line, block in _fenced_cards(text):
        try:
            page = markdown.parse("---\n" + block, shown, line - 1)
        except Unreadable as error:
            problems.append(error)
            continue
        meta = dict(page.meta)
        if title and not meta.get("title"):
            meta = _with_title(meta, title)
        candidates.append(Candidate(label, meta, page.body, shown, page.body_line, "---\n" + block))
    if not candidates and not problems:
        for found in markdown.blocks(text, shown):
            if found.error is not None:
                problems.append(found.error)
                continue
            own = as_text(found.meta.get("id")) or f"C{len(candidates) + 1}"
            place = found.line + found.text[: len(found.text) - len(found.body)].count("\n")
            candidates.append(Candidate(own, found.meta, found.body, shown, place, found.text))
    return Unit(name, shown, True, tuple(candidates), tuple(problems))


def _with_title(meta: dict[str, Any], title: str) -> dict[str, Any]:
    """`meta` with the heading's title where a card has it: after status, else at the end."""
    at = list(meta).index("status") + 1 if "status" in meta else len(meta)
    items = list(meta.items())
    return dict([*items[:at], ("title", title), *items[at:]])


def _fenced_cards(text: str) -> Iterator[tuple[str, str, int, str]]:
    """(label, title, line of the block's first line, text) of each `### C1: title` with a fenced block under it."""
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        heading = _TITLE.match(lines[i])
        i += 1
        if heading is None:
            continue
        while i < len(lines) and not lines[i].strip():
            i += 1
        fence = re.match(r"(`{3,}|~{3,})(?:yaml|yml|markdown|md)?\s*$", lines[i]) if i < len(lines) else None
        if fence is None:
            continue
        start = i + 1
        end = start
        while end < len(lines) and lines[end].rstrip() != fence[1]:
            end += 1
        block = "\n".join(lines[start:end]) + "\n"
        yield heading[1], heading[2] or "", start + 1, block.removeprefix("---\n")
        i = end + 1


def plain_text(data: bytes) -> str:
    return plain_bytes(data).decode("utf-8")


def unit_path(name: str) -> str:
    return f"{INBOX}/{name}"
