"""The files that make a git host's CI check a base and approve what was merged: written, recognised, taken away.

A file's first line says that khms wrote it and holds the hash of all that follows, so that one which somebody changed
is told from one of an older khms.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from khms import __version__
from khms.errors import Refused, Unavailable
from khms.resources import folder
from khms.store import files
from khms.store.layout import INBOX

# host -> the file in the repository -> the template
WORKFLOWS = {
    "github": {
        ".github/workflows/khms-review.yml": "github-review.yml",
        ".github/workflows/khms-approve.yml": "github-approve.yml",
    },
    "gitlab": {".gitlab/khms.yml": "gitlab-ci.yml"},
}
MAIN = ".gitlab-ci.yml"  # the only file that GitLab reads by itself
INCLUDE = "include:\n  - local: .gitlab/khms.yml\n"
_HEAD = re.compile(rb"\A# Written by `khms hook install \w+`; sha256 of what follows: ([0-9a-f]{64})\r?\n")
_BASE = re.compile(rb"^ *KHMS_BASE: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one file: written, updated, unchanged, removed, absent or kept (it is not as khms wrote it)."""

    path: str
    done: str


def render(host: str, template: str, prefix: str, branch: str) -> bytes:
    """A workflow for the base below `prefix` (empty, or ending in a slash) with approvals on `branch`."""
    values = {
        "@BASE@": _quoted(_literal(prefix.rstrip("/") or ".", host)),
        "@PACKAGE@": _quoted(f"khms=={__version__}"),
        "@INBOX@": _quoted(_glob(prefix, host) + INBOX + ("/**" if host == "github" else "/**/*")),
        "@BRANCH@": _quoted(_glob(branch, host)),
    }
    text = (folder("templates") / "ci" / template).read_text(encoding="utf-8")
    for mark, value in values.items():
        text = text.replace(mark, value)
    return _headed(host, text.encode("utf-8"))


def install(host: str, top: Path, prefix: str, branch: str) -> list[Report]:
    """Writes the host's files below `top`; a second time changes nothing. Raises Refused, and writes none, where one of
    them was changed by hand or is another base's."""
    wanted = {path: render(host, template, prefix, branch) for path, template in WORKFLOWS[host].items()}
    if host == "gitlab" and (_read(top, MAIN) is None or _is_ours(_read(top, MAIN))):
        wanted[MAIN] = _headed(host, INCLUDE.encode())
    held = {path: _read(top, path) for path in wanted}
    for path, there in held.items():
        if there is not None and not _is_ours(there):
            raise Refused(
                "this file is not as khms wrote it; nothing was changed",
                where=str(top / path),
                hint="move it away and install again, then put your changes back",
            )
        if there is not None and (other := _base_of(there)) not in (None, _base_of(wanted[path])):
            raise Refused(
                f"this workflow checks another base, {other}; nothing was changed",
                where=str(top / path),
                hint="move it to another name in the same folder and install again",
            )
    done = []
    for path, data in wanted.items():
        state = "written" if held[path] is None else "unchanged" if held[path] == data else "updated"
        if state != "unchanged":
            files.write_atomic(files.inside(top, top / path), data)
        done.append(Report(path, state))
    return done


def uninstall(host: str, top: Path) -> list[Report]:
    """Removes the host's files where they are as khms wrote them."""
    done = []
    for path in _paths(host):
        there = _read(top, path)
        if there is None:
            done.append(Report(path, "absent"))
        elif not _is_ours(there):
            if path != MAIN:
                done.append(Report(path, "kept"))
        else:
            files.unlink(top / path)
            files.remove_empty((top / path).parent, top)
            done.append(Report(path, "removed"))
    return done


def status(host: str, top: Path) -> list[Report]:
    """Which of the host's files are there: written (as khms wrote them), kept (changed since) or absent."""
    found = [(path, _read(top, path)) for path in WORKFLOWS[host]]
    return [Report(path, "absent" if data is None else "written" if _is_ours(data) else "kept") for path, data in found]


def is_included(top: Path) -> bool:
    """Whether GitLab's own file names ours."""
    return b".gitlab/khms.yml" in (_read(top, MAIN) or b"")


def _paths(host: str) -> list[str]:
    return [*WORKFLOWS[host], *([MAIN] if host == "gitlab" else [])]


def _headed(host: str, body: bytes) -> bytes:
    return f"# Written by `khms hook install {host}`; sha256 of what follows: {_sha256(body)}\n".encode() + body


def _is_ours(data: bytes | None) -> bool:
    """Whether khms wrote these bytes, line ends aside."""
    found = _HEAD.match(data or b"")
    return found is not None and _sha256((data or b"")[found.end() :]) == found[1].decode()


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body.replace(b"\r\n", b"\n")).hexdigest()


def _base_of(data: bytes) -> str | None:
    found = _BASE.search(data)
    return found[1].decode("utf-8", "replace").strip() if found else None


def _quoted(text: str) -> str:
    """A text as YAML takes it: JSON, whose every form is YAML's."""
    return json.dumps(text, ensure_ascii=False)


def _literal(text: str, host: str) -> str:
    """`text` as the value of a variable in which the host replaces nothing; raises Refused where it would."""
    if host == "github" and "${{" in text:
        raise Refused("GitHub would take this folder's name for an expression", where=text, hint="name it otherwise")
    return text.replace("$", "$$") if host == "gitlab" else text


def _glob(text: str, host: str) -> str:
    """`text` as a pattern that matches it alone. GitHub escapes by a backslash, GitLab knows classes of one."""
    if host == "github":
        return re.sub(r"([*?+\[\]!\\])", r"\\\1", text)
    return re.sub(r"([*?\[{\\])", r"[\1]", text)


def _read(top: Path, path: str) -> bytes | None:
    try:
        return files.read_inside(top, path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        hint = "give yourself access to it, or move away what stands there"
        raise Unavailable(f"cannot read: {error.strerror or error}", where=str(top / path), hint=hint) from error
