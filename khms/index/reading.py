"""Reading the file behind a document: what is there, or why it is not read."""

import errno
import os
import stat
from pathlib import Path

from khms.index import sources
from khms.index.sources import Rules
from khms.model.finding import Finding
from khms.store import files
from khms.store.layout import is_card_file


def content(root: Path, rules: Rules, path: str) -> bytes | Finding | None:
    """The bytes of the file at `path`; None where there is none, a finding where it must not or cannot be read.

    A link is followed only to a file in the base, or in the included folder that the link stands in; a card is none.
    """
    where = root / path
    try:
        path.encode("utf-8")
        info = where.lstat()
        if stat.S_ISLNK(info.st_mode):
            if is_card_file(path):
                return Finding("KH015", "error", path, 0, "a symbolic link is no card", "put the file itself here")
            if not _contained(root, rules, path):
                return sources.link_out(path)
            info = where.stat()
        if not stat.S_ISREG(info.st_mode):
            return None
        if info.st_size > rules.max_bytes:
            message = f"the file has {info.st_size} bytes, more than {rules.max_bytes}"
            return Finding("KH015", "error", path, 0, message, "split it, or raise lint.max_bytes")
        return files.read(where)
    except UnicodeEncodeError:
        name = path.encode("utf-8", "replace").decode("utf-8")
        return Finding("KH001", "error", name, 0, "the file's name is not UTF-8", "rename the file")
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        message = f"the file cannot be read: {error.strerror}"
        return Finding("KH001", "error", path, 0, message, "check the file and its permissions")


def _contained(root: Path, rules: Rules, path: str) -> bool:
    target = os.path.realpath(root / path)
    homes = [root, *(root / folder for folder in sources.outside(rules) if path.startswith(folder + "/"))]
    return any(sources.contains(os.path.realpath(home), target) for home in homes)
