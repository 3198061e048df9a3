"""Which files of a base are documents, of which kind and under which id. Paths only; `documents` reads them."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from khms.model.finding import Finding
from khms.store.layout import ARCHIVE, INBOX, JOURNAL, KNOW, VIEWS, Base, seems_card

LESSONS = "memory/lessons"
FOLDERS = {KNOW: "card", ARCHIVE: "card", LESSONS: "lesson", JOURNAL: "journal", INBOX: "inbox"}
SUFFIXES = (".md", ".markdown")
HEADED = ("MEMORY.md", "AGENTS.md")  # khms's own where they carry its header; the reader of their bytes decides
NEVER = (".git", ".khms")


@dataclass(frozen=True, slots=True)
class Rules:
    """What of the configuration decides which documents there are and how they are cut. `include` holds each further
    folder as (name, path from the base)."""

    language: str = "english"
    notes: bool = False
    include: tuple[tuple[str, str], ...] = ()
    max_bytes: int = 262144

    def as_json(self) -> dict[str, Any]:
        return {
            "language": self.language,
            "notes": self.notes,
            "include": [list(pair) for pair in self.include],
            "max_bytes": self.max_bytes,
        }


@dataclass(frozen=True, slots=True)
class Place:
    kind: str
    id: str


def rules(base: Base, config: Mapping[str, Any]) -> Rules:
    """The rules that the configuration sets for this base."""
    include = []
    for name, folder in config["index.include"].items():
        path = os.path.normpath(base.root / Path(str(folder)).expanduser())
        include.append((str(name), os.path.relpath(path, base.root).replace(os.sep, "/")))
    return Rules(
        str(config["index.language"]), bool(config["index.notes"]), tuple(sorted(include)), config["lint.max_bytes"]
    )


def place(rules: Rules, path: str) -> Place | None:
    """What the file at `path` (from the base, with forward slashes) is to the index; None if it is no document."""
    if not path.lower().endswith(SUFFIXES) or any(part in NEVER for part in path.split("/")):
        return None
    if seems_card(path):
        return None
    stem = path.rpartition(".")[0]
    for folder, kind in FOLDERS.items():
        if not path.startswith(folder + "/"):
            continue
        rest = stem[len(folder) + 1 :]
        if kind == "journal":
            if not rules.notes or _is_day(rest):
                return Place(kind, stem)
        elif kind == "inbox":
            return None if rest.endswith("/REPORT") else Place(kind, rest)
        else:
            return Place(kind, rest.rpartition("/")[2])
    if path.startswith(VIEWS + "/"):
        return None
    for name, folder in rules.include:
        if path.startswith(folder + "/"):
            return Place("note", f"{name}/{stem[len(folder) + 1 :]}")
    return Place("note", stem) if rules.notes and not path.startswith("../") else None


def folders(rules: Rules) -> list[str]:
    """The base's own folders that can hold documents; "." where every note counts."""
    if rules.notes:
        return ["."]
    return [*FOLDERS, *(folder for _, folder in rules.include if not _outside(folder))]


def outside(rules: Rules) -> list[str]:
    """The included folders that do not lie in the base."""
    return [folder for _, folder in rules.include if _outside(folder)]


def walk(root: Path, folder: str) -> Iterator[str]:
    """Every file below `folder`, as a path from `root`; links to folders are not followed."""
    top = root if folder == "." else root / folder
    for parent, children, files in os.walk(top):
        children[:] = sorted(child for child in children if child not in NEVER)
        for name in sorted(files):
            yield os.path.relpath(os.path.join(parent, name), root).replace(os.sep, "/")  # noqa: PTH118


def led_out(root: Path, rules: Rules) -> Iterator[Finding]:
    """The folders of documents that are links out of the base: what is in them is not read."""
    real = os.path.realpath(root)
    for folder in (*FOLDERS, *(name for name in folders(rules) if name != "." and name not in FOLDERS)):
        if not contains(real, os.path.realpath(root / folder)):
            yield link_out(folder)


def link_out(path: str) -> Finding:
    return Finding(
        "KH015", "error", path, 0, "a symbolic link that leaves the base", "put the file itself here, or remove it"
    )


def contains(root: str, path: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _outside(folder: str) -> bool:
    return folder == ".." or folder.startswith(("../", "/")) or ":" in folder.partition("/")[0]  # a drive


def _is_day(name: str) -> bool:
    day = name[:10].split("-")
    return [len(part) for part in day] == [4, 2, 2] and "".join(day).isdigit() and name[10:11] in ("", ".")
