"""What was scheduled for a base, where, and in which environment: one file a base in the user's data folder.

A scheduler starts a job almost without an environment, so what the job needs of the one it was scheduled in is kept
here. It stands outside the base: a base comes from anywhere, and its files must not say which programs are run.
"""

import datetime
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from khms.config import user_data
from khms.errors import Unavailable
from khms.store import files

SCHEMA = "khms.schedule/1"
# What programs, git and certificates need. Nothing that logs in anywhere; a proxy only where it holds no password.
_KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ"),
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"),
    *("KHMS_CONFIG_HOME", "KHMS_DATA_HOME", "KHMS_SERVER_OFF"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES", "GIT_SSH_COMMAND"),
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME"),
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_SECRET = re.compile(r"_(API_KEY|ACCESS_KEY|TOKEN|AUTH_TOKEN|PASSWORD|SECRET)$")
_AGENTS = ("ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_", "GH_", "GITHUB_", "GITLAB_", "KHMS_")


@dataclass(frozen=True, slots=True)
class Record:
    """`jobs` maps each job to its time as text, `since` is when they were scheduled; `trusted` is the hash of those
    settings of the base that need trust, as they were then."""

    root: str
    scheduler: str
    jobs: Mapping[str, str]
    since: str
    trusted: str
    environment: Mapping[str, str]


def name(root: Path) -> str:
    """What tells the base at `root` from all others of this user, and still reads like it."""
    real = root.resolve()
    folder = real.parent if real.name == ".memory" else real
    readable = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")[:32].strip("-") or "base"
    return f"{readable}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:8]}"


def place(name: str) -> Path:
    return user_data() / "schedule" / f"{name}.json"


def load(path: Path) -> Record | None:
    """The record in a file, None where there is none; raises Unavailable for one that cannot be read."""
    try:
        found = files.read_json(path)
        texts = [found[key] for key in ("root", "scheduler", "since", "trusted")]
        tables = [found["jobs"], found["environment"]]
        if not all(
            isinstance(text, str) for text in (*texts, *(t for pair in tables for i in pair.items() for t in i))
        ):
            raise ValueError("it is not what khms wrote")
        root, scheduler, since, trusted = texts
        return Record(root, scheduler, dict(tables[0]), since, trusted, dict(tables[1]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"the record of a schedule cannot be read: {error}"
        raise Unavailable(message, where=str(path), hint="remove it, then run: khms schedule install") from error


def save(path: Path, record: Record) -> None:
    files.make_folder(path.parent, 0o700)
    text = json.dumps({"schema": SCHEMA, **asdict(record)}, indent=2, ensure_ascii=True) + "\n"
    files.write_atomic(path, text.encode("ascii"), 0o600)


def now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def environment(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What of `env` a job gets. Of PATH only absolute folders: others mean what stands where the job happens to run."""
    kept = {key: value for key, value in sorted(env.items()) if value and _is_kept(key, value)}
    if "PATH" in kept:
        kept["PATH"] = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if Path(part).is_absolute())
    return kept


def secrets(env: Mapping[str, str] = os.environ) -> list[str]:
    """The names of those variables that an agent or a git host's program would log in with, and that are not kept."""
    return [key for key in sorted(env) if env[key] and key.startswith(_AGENTS) and _SECRET.search(key)]


def _is_kept(key: str, value: str) -> bool:
    if key.upper() in _PROXIES:
        return "@" not in value
    return key in _KEPT or key.startswith("LC_")
